"""Counts what really happened in a random run, for the situations that a campaign must reach often enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import trio
from attrs import define, field

from simulator.actions.processes import Crash, FailDisk, Start
from simulator.actions.requests import AlterTopic, Elect
from simulator.actions.scene import Action, Strike
from simulator.actions.sessions import Disconnect, Expire
from simulator.actions.znodes import WriteElection
from simulator.process import BrokerProcess, Process, ProcessState
from simulator.random_run.happenings import Leave, Replace
from simulator.steps import ControllerStep, Moment
from simulator.store.durable import Durable
from transport.metadata import TopicPartition

CRASH_POINTS: Final = ("U1", "A1", "A2", "ISR", "B1", "B3", "B4", "B5", "B6")
"""The rounds of a reassignment, in order. (What Kafka calls B2 is not a separate step here.)"""

DELETION_POINTS: Final = ("mark", "delete", "stop", "remove")
"""The rounds of a topic's deletion, in order."""

RIGHT_AFTER_SECONDS: Final = 0.02

SEEDS: Final = 1000

NEEDED: Final = {
    **{f"controller crashes right after {name}": 20 for name in CRASH_POINTS},
    **{f"controller crashes right after {name}": 4 for name in DELETION_POINTS},
    "session expiries with a commit in flight": 100,
    "cancels and overrides": 100,
    "broker crashes of a leader": 100,
    "topics deleted": 100,
    "topics created again as soon as they were gone": 30,
    "unclean elections": 30,
    "changes of settings accepted": 100,
    "topics grown": 100,
    "log directories failed": 30,
    "orders of replicas changed by elections": 200,
    "cancels after a failover between B4 and B6": 100,
}
"""The number of times that each situation must happen in SEEDS random runs."""

_ACCEPTED: Final[Mapping[type[Action], str]] = {
    Elect: "elections asked for and accepted",
    WriteElection: "elections asked for and accepted",
    AlterTopic: "changes of settings accepted",
    Replace: "topics created again as soon as they were gone",
}

_TELLS_NOBODY: Final = "B1"
"""The round that neither commits nor publishes: only its decision can be observed."""


@define
class Coverage:
    """The counts of one run."""

    durable: Durable
    counts: Counter[str] = field(factory=Counter)
    _last_rounds: dict[int, tuple[str, float]] = field(factory=dict)
    _moving: dict[int, set[TopicPartition]] = field(factory=dict)

    def step(self, step: ControllerStep) -> bool:
        """Count a step of a controller. Returns False, as a watcher that watches until the end."""
        if step.moment is not Moment.DECIDED or step.round == _TELLS_NOBODY:
            self._last_rounds[step.controller_id] = step.round, trio.current_time()
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
        match action:
            case Crash() if isinstance(process, BrokerProcess):
                self._broker_crashes(process.id)
            case Crash():
                self._controller_crashes(process.id)
            case Leave():
                self.count("processes stopped")
            case FailDisk():
                self.count("log directories failed")
            case Start(elsewhere=True) if isinstance(process, BrokerProcess) and process.state is ProcessState.DEAD:
                self.count("brokers that moved to another port")
            # Only a fault at a commit strikes the same node again.
            case Expire() if again:
                self.count("session expiries with a commit in flight")
            case Disconnect() if again:
                self.count("disconnects with a commit in flight")

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
