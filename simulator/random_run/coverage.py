"""Counts what really happened in a random run, for the situations that a campaign must reach often enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import trio
from attrs import define, field

from simulator.actions.edits import TopicEdit
from simulator.actions.network import IgnoreConnections, RefuseConnections
from simulator.actions.processes import (
    ChangeEndpoint,
    Crash,
    FailDisk,
    FailOrders,
    Hesitate,
    MendDisk,
    RefuseOrders,
    Start,
    Suspend,
)
from simulator.actions.requests import AlterBroker, AlterTopic, Elect, ValidateBrokerSettings, ValidateSettings
from simulator.actions.scene import Action, Strike
from simulator.actions.sessions import Disconnect, Expire
from simulator.actions.znodes import Damage, WriteElection
from simulator.broker_process import BrokerProcess
from simulator.process import Process, ProcessState
from simulator.random_run.happenings import Leave, Replace
from simulator.steps import ControllerStep, Moment
from simulator.store.durable import Durable
from transport.messages import ElectionType
from transport.metadata import TopicPartition

CRASH_POINTS: Final = ("U1", "A1", "ISR", "B3", "B4", "B6")
"""The rounds of a reassignment, in order; A1 is part of one that another controller resumes."""

DELETION_POINTS: Final = ("mark", "delete", "stop", "remove")
"""The rounds of a topic's deletion, in order."""

RIGHT_AFTER_SECONDS: Final = 0.02

SEEDS: Final = 1000

_ASKED_WITH_SURVIVORS: Final = "unclean requests with a live member of the ISR"
_ASKED_WITHOUT_SURVIVORS: Final = "unclean requests with no live member"

_AT_ONCE: Final = "requests at the moment of another"
_MANY: Final = 100
_LARGE: Final = f"moments of rounds of more than {_MANY} partitions"

NEEDED: Final = {
    **{f"controller crashes right after {name}": 20 for name in CRASH_POINTS},
    **{f"controller crashes right after {name}": 4 for name in DELETION_POINTS},
    "session expiries with a commit in flight": 100,
    "cancels and overrides": 100,
    "broker crashes of a leader": 100,
    "topics deleted": 100,
    "topics created again as soon as they were gone": 30,
    "unclean elections": 120,
    _ASKED_WITH_SURVIVORS: 25,
    _ASKED_WITHOUT_SURVIVORS: 50,
    "changes of settings accepted": 100,
    "checks of settings accepted": 50,
    "topics grown": 80,
    "log directories failed": 200,
    "log directories mended under a live broker": 80,
    "disks replaced by empty ones": 30,
    "rows of topics damaged": 50,
    "other rows damaged": 100,
    "settings written by hand": 100,
    _AT_ONCE: 300,
    _LARGE: 30,
    "znodes closed to controllers": 100,
    **{f"edits by hand: {edit.value}": 15 for edit in TopicEdit},
    "topics created again by hand": 60,
    "endpoints changed at once": 60,
    "orders of replicas changed by elections": 200,
    "cancels after a failover between B4 and B6": 100,
    "processes suspended": 150,
    "requests about leadership: repeated": 150,
    "requests about leadership: delayed": 30,
    "requests about leadership: torn": 40,
    "hosts that refuse or ignore connections": 100,
    "connections silent in one direction": 40,
    "requests answered with an error": 200,
    "requests answered with an error though done": 10,
    "requests answered with nothing": 50,
    "requests answered with nothing though done": 10,
    "brokers that refuse orders about a partition": 20,
    "brokers whose services raise": 20,
    "brokers that hesitate": 20,
    "losses of the store's quorum": 100,
    "starts without the store": 50,
    "sessions ended while their holder is away": 30,
}
"""The number of times that each situation must happen in SEEDS random runs."""

_ACCEPTED: Final[Mapping[type[Action], str]] = {
    Elect: "elections asked for and accepted",
    WriteElection: "elections asked for and accepted",
    AlterBroker: "changes of settings accepted",
    AlterTopic: "changes of settings accepted",
    ValidateBrokerSettings: "checks of settings accepted",
    ValidateSettings: "checks of settings accepted",
    Replace: "topics created again as soon as they were gone",
}

_STRUCK: Final[Mapping[type[Action], str]] = {
    Leave: "processes stopped",
    FailDisk: "log directories failed",
    Suspend: "processes suspended",
    RefuseConnections: "hosts that refuse or ignore connections",
    IgnoreConnections: "hosts that refuse or ignore connections",
    FailOrders: "brokers whose services raise",
    RefuseOrders: "brokers that refuse orders about a partition",
    Hesitate: "brokers that hesitate",
    ChangeEndpoint: "endpoints changed at once",
}
_IN_FLIGHT: Final[Mapping[type[Action], str]] = {
    Expire: "session expiries with a commit in flight",
    Disconnect: "disconnects with a commit in flight",
}


@define
class Coverage:
    """The counts of one run."""

    durable: Durable
    counts: Counter[str] = field(factory=Counter)
    _asked_at: float = -1.0
    _last_rounds: dict[int, tuple[str, float]] = field(factory=dict)
    _moving: dict[int, set[TopicPartition]] = field(factory=dict)

    def step(self, step: ControllerStep) -> bool:
        """Count a step of a controller. Returns False, as a watcher that watches until the end."""
        if step.moment is not Moment.DECIDED:
            self._last_rounds[step.controller_id] = step.round, trio.current_time()
        if len(step.subjects) > _MANY:
            self.count(_LARGE)
        if step.round == "U1":
            self._request_stored(step)
        if step.round == "grow" and step.moment is Moment.COMMITTED:
            self.counts["topics grown"] += 1
        if step.round == "B6" and step.moment is Moment.COMMITTED:
            self.counts["moves done"] += len(step.subjects)
        if step.round == "order" and step.moment is Moment.COMMITTED:
            self.counts["orders of replicas changed by elections"] += len(step.subjects)
        if step.round == "delete" and step.moment is Moment.PUBLISHED:
            self.counts["topics deleted"] += 1
        return False

    def strikes(self, action: Strike, process: Process, *, again: bool) -> None:
        """Count a fault just before it happens to a process; `again` means the same nodes as before."""
        what = _STRUCK.get(type(action))
        if what is not None:
            self.count(what)
        is_served = process.state is ProcessState.RUNNING and not process.is_away
        if isinstance(action, Crash) and isinstance(process, BrokerProcess):
            self._broker_crashes(process.id)
        elif isinstance(action, Crash):
            self._controller_crashes(process.id)
        elif isinstance(action, Start) and isinstance(process, BrokerProcess) and process.state is ProcessState.DEAD:
            self.counts["brokers that moved to another port"] += action.elsewhere
            self.counts["disks replaced by empty ones"] += action.wipe
        elif isinstance(action, MendDisk) and process.state is ProcessState.RUNNING:
            self.count("log directories mended under a live broker")
        # Only a fault at a commit strikes the same running node again.
        elif isinstance(action, Expire | Disconnect) and again and is_served:
            self.count(_IN_FLIGHT[type(action)])
        if process.is_away:
            self._strikes_away_from_the_store(action, process)

    def _strikes_away_from_the_store(self, action: Strike, process: Process) -> None:
        if isinstance(action, Start) and process.state is ProcessState.DEAD:
            self.count("starts without the store")
        elif isinstance(action, Expire):
            self.count("sessions ended while their holder is away")

    def _controller_crashes(self, controller_id: int) -> None:
        self.counts["controller crashes"] += 1
        name, at = self._last_rounds.pop(controller_id, ("", 0.0))
        if name in (*CRASH_POINTS, *DELETION_POINTS) and trio.current_time() - at <= RIGHT_AFTER_SECONDS:
            self.counts[f"controller crashes right after {name}"] += 1

    def _broker_crashes(self, broker_id: int) -> None:
        self.counts["broker crashes"] += 1
        states = (self.durable.leadership(tp) for tp, _ in self.durable.partitions())
        if any(state is not None and state.leader == broker_id for state in states):
            self.counts["broker crashes of a leader"] += 1

    def asked(self, action: Action) -> None:
        """Count a request just before it is made."""
        now = trio.current_time()
        self.counts[_AT_ONCE] += now == self._asked_at
        self._asked_at = now
        match action:
            case Elect(kind=ElectionType.UNCLEAN):
                self._unclean_asked(action)

    def _unclean_asked(self, action: Elect) -> None:
        live = self.durable.brokers()
        names = None if action.partitions is None else frozenset(action.partitions)
        states = [
            self.durable.leadership(tp) for tp, _ in self.durable.partitions() if names is None or str(tp) in names
        ]
        for state in [state for state in states if state is not None and state.leader not in live]:
            survives = any(member in live for member in state.isr)
            self.count(_ASKED_WITH_SURVIVORS if survives else _ASKED_WITHOUT_SURVIVORS)

    def damaged(self, action: Damage) -> None:
        """Count the rows that somebody damages."""
        topics = self.durable.topics()
        for path in action.rows:
            is_ours = any(f"/{name}" in path for name in topics)
            self.count("rows of topics damaged" if is_ours else "other rows damaged")

    def accepted(self, action: Action) -> None:
        """Count an action that an administrator was told is done, or will be."""
        self.counts["requests accepted"] += 1
        what = _ACCEPTED.get(type(action))
        if what is not None:
            self.counts[what] += 1

    def count(self, what: str) -> None:
        """Count anything else."""
        self.counts[what] += 1

    def _request_stored(self, step: ControllerStep) -> None:
        if step.moment is Moment.DECIDED:
            self._moving[step.controller_id] = {tp for tp in step.subjects if self._is_moving(tp)}
        elif step.moment is Moment.COMMITTED:
            moved = self._moving.get(step.controller_id, set())
            self.counts["cancels and overrides"] += len(moved.intersection(step.subjects))
            self.counts["moves begun"] += len(step.subjects)

    def _is_moving(self, tp: TopicPartition) -> bool:
        assignment = self.durable.assignment(tp)
        return assignment is not None and assignment.is_being_reassigned
