"""Compare what controllers write with what the model would write, given the same rows and the same knowledge.

Where a race decides what a controller knows, each outcome that some admissible knowledge leads to is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

import trio
from attrs import define, field

from simulator.frames import correlation_id, leader_and_isr_answer
from simulator.model.row import Row, without
from simulator.model.rules import outcomes
from simulator.model.topics import is_addition
from simulator.model.view import Asked, Standing, View
from simulator.safety.by_hand import ByHand
from simulator.safety.controllership import Controllership
from simulator.safety.dues import Dues
from simulator.safety.failed_leaders import FailedLeaders
from simulator.safety.knowledge import Knowledge
from simulator.safety.log_reports import OrdersInFlight
from simulator.safety.min_isrs import MinIsrs
from simulator.safety.namesakes import Namesakes
from simulator.safety.partitions import Partition, PartitionChange, Partitions, is_controller
from simulator.safety.promises import Promises
from simulator.safety.requests import Requests
from simulator.settings import host_of
from simulator.steps import ControllerStep, Moment
from simulator.store.durable import DecodeBroker, Durable
from transport.messages import ControlledShutdownRequest, LeaderAndIsrRequest
from transport.metadata import NEVER_LED, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Delete, Op, Set, Znode

_BELOW_STRAYS: Final = f"{paths.STRAYS}/"
_BELOW_REASSIGNMENTS: Final = f"{paths.REASSIGNMENTS}/"


@define
class Decisions:
    """The model beside each controller."""

    partitions: Partitions
    controllership: Controllership
    promises: Promises
    min_isrs: MinIsrs
    _namesakes: Namesakes
    decode_broker: DecodeBroker = formats.decode_broker
    storage_id: Callable[[int], str | None] = lambda _: None
    """Returns the storage id that is recorded of a broker, None if there is none that can be decoded."""

    controllers: frozenset[int] = frozenset()
    """The ids of controllers on which brokers place replicas."""

    _knowledge: dict[str, Knowledge] = field(factory=dict, init=False)
    _rounds: dict[str, ControllerStep] = field(factory=dict, init=False)
    """The round that each controller decided last: its next commits belong to it."""

    _requests: Requests = field(factory=Requests, init=False)
    _by_hand: ByHand = field(factory=ByHand, init=False)
    _orders: OrdersInFlight = field(factory=OrdersInFlight, init=False)
    _failed_leaders: FailedLeaders = field(factory=FailedLeaders, init=False)
    _dues: Dues = field(init=False)
    _origins: dict[TopicPartition, tuple[int, ...]] = field(factory=dict, init=False)
    """The replicas of moving partitions before their moves, in their order."""

    _touched: dict[str, None] = field(factory=dict, init=False)
    """The topics below whose reassignments an operator has written."""

    _recalled: dict[tuple[TopicPartition, int], None] = field(factory=dict, init=False)
    """The replicas that have been strays."""

    def __attrs_post_init__(self) -> None:
        self._orders.are_kafkas = self._namesakes.is_kafkas
        self._dues = Dues(self.partitions, self.controllership, self.promises, self._by_hand)

    # --- what a controller learns and does ----------------------------------------------------------------------

    def began_event(self, controller_id: int, *, is_in_office: bool) -> Iterator[str]:
        """Check what a controller leaves behind that ends an event and begins the next."""
        host = host_of(controller_id)
        knowledge = self._of(host)
        has_news = knowledge.began_event()
        yield from self._dues.ended_event(host, knowledge, has_news=has_news, is_in_office=is_in_office)

    def stepped(self, step: ControllerStep) -> bool:
        """Record a step of a controller; a watcher of `Steps`."""
        if step.moment is not Moment.DECIDED:
            return False
        host = host_of(step.controller_id)
        self._rounds[host] = step
        if step.round == "shutting down":
            self._of(host).granted_shutdown()
        elif step.round == "failures":
            partitions = {tp: self.partitions.get(tp) for tp in step.subjects}
            known = {tp: each for tp, each in partitions.items() if each is not None}
            epochs = {tp: _row(each).leadership for tp, each in known.items()}
            self._of(host).took_over_reports(
                {tp: (each.topic_id, (epochs[tp] or NEVER_LED).leader_epoch) for tp, each in known.items()}
            )
            self._dues.concerns(host, step.subjects)
        elif step.round == "forgiven":
            self._of(host).forgave(step.subjects)
            self._dues.concerns(host, step.subjects)
        return False

    def looked(self, host: str, asked: Sequence[str], found: Sequence[Znode | list[str] | None]) -> None:
        """Record what a host has read from the store."""
        if asked and is_controller(host):
            self._of(host).looked(asked, found)

    def received(self, host: str, request: object) -> None:
        """Record a request that a controller takes from the network."""
        self._requests.received(request)
        if isinstance(request, ControlledShutdownRequest):
            self._of(host).asked_to_leave(request.broker_id, request.broker_epoch)

    def ordered(self, connection_id: int, broker_id: int, chunk: bytes, request: object) -> None:
        """Record an order of a controller, as the broker takes it from the network."""
        if isinstance(request, LeaderAndIsrRequest):
            self._orders.ordered(connection_id, correlation_id(chunk), broker_id, request)

    def answered(self, host: str, connection_id: int, chunk: bytes) -> None:
        """Record a broker's answer, as the controller takes it from the network."""
        number = correlation_id(chunk)
        request = self._orders.request(connection_id, number)
        if request is not None:
            for report in self._orders.answered(connection_id, number, leader_and_isr_answer(request, chunk)):
                if report.controller_epoch == self.controllership.epoch:
                    self._of(host).logs.reported(report)
                    self._failed_leaders.reported(report, trio.current_time())

    def _of(self, host: str) -> Knowledge:
        known = self._knowledge.get(host)
        if known is None:
            known = self._knowledge[host] = Knowledge(self.decode_broker, self._namesakes.may_wait, self.storage_id)
        return known

    def has_kept_out(self, broker_id: int) -> bool:
        """Return whether a controller keeps a broker out that lost its data, or has kept it out in its office."""
        return any(known.has_kept_out(broker_id) for known in self._knowledge.values())

    def is_state_by_hand(self, tp: TopicPartition) -> bool:
        """Return whether the controller may not have read a partition's state, because an operator wrote it last."""
        return self._by_hand.has_state(tp)

    # --- the comparison -----------------------------------------------------------------------------------------

    def committed(
        self, host: str, ops: Sequence[Op], changes: Sequence[PartitionChange], durable: Durable
    ) -> Iterator[str]:
        """Compare the changes of a commit, right after it took effect, with those of the model."""
        self._requests.committed(ops)
        self.min_isrs.committed(ops, durable, is_announced=is_controller(host))
        if is_controller(host) and any(isinstance(op, Set) and op.path == paths.CONTROLLER_EPOCH for op in ops):
            self._of(host).took_office()
            self._by_hand.took_office()
            self._dues.took_office(host)
        yield from self._elections(host, changes)
        for change in changes:
            is_exempt = self._by_hand.has(change.tp) or self.partitions.exempt.has_topic(change.tp.topic)
            if change.is_a_controllers and not is_exempt:
                yield from self._judge(change)
        self._by_hand.wrote(changes)
        if is_controller(host):
            self._dues.committed(host, changes)
        for change in changes:
            self._follow(change)
            # Of a topic that is gone no controller keeps reports, even if somebody else has deleted it.
            is_gone = change.before is not None and not change.is_of_one_topic
            for each in self._knowledge if is_gone else [host] if is_controller(host) else ():
                self._of(each).logs.left(change.tp, _left(change))
        self._follow_writes(host, ops)
        self._namesakes.committed(host, ops)

    def _elections(self, host: str, changes: Sequence[PartitionChange]) -> Iterator[str]:
        step = self._rounds.get(host)
        if step is not None and is_controller(host):
            for change in changes:
                yield from self._failed_leaders.changed(change, step.event, trio.current_time())

    def _judge(self, change: PartitionChange) -> Iterator[str]:
        step, knowledge = self._rounds.get(change.host), self._of(change.host)
        if step is None or knowledge.brokers is None:
            return
        if change.after is None or (change.before is not None and change.after.leadership is None):
            yield from self._removed(change, step)
        elif change.before is None:
            first = self.partitions.get(TopicPartition(change.tp.topic, 0)) or change.after
            views = self._views(change, step, knowledge)
            if not any(is_addition(step.round, _row(change.after), _row(first), view) for view in views):
                yield f"{change.tp}: {_title(change.host, step)} added {change.after.assignment}"
        else:
            yield from self._compared(change, step, self._views(change, step, knowledge))

    def _removed(self, change: PartitionChange, step: ControllerStep) -> Iterator[str]:
        before = change.before
        if before is None or before.leadership == (change.after and change.after.leadership):
            return
        names = {(change.tp.topic, before.topic_id), (change.tp.topic, "")}
        if step.round != "remove" or names.isdisjoint(self.promises.doomed):
            yield f"{change.tp}: {_title(change.host, step)} removed it"

    def _compared(self, change: PartitionChange, step: ControllerStep, views: Iterator[View]) -> Iterator[str]:
        assert change.before is not None
        assert change.after is not None
        before, after = _row(change.before), _row(change.after)
        expected: dict[Row, None] = {}
        known: Mapping[int, Standing] = {}
        for view in views:
            known = known or view.standings
            rows = outcomes(step.round, before, view)
            if after in rows:
                break
            expected |= dict.fromkeys(rows)
        else:
            title = _title(change.host, step)
            wanted = " or ".join(map(_text, expected)) or "nothing"
            brokers = ", ".join(f"{id_} {standing.value}" for id_, standing in known.items())
            yield f"{change.tp}: {title} made {_text(after)} of {_text(before)}, not {wanted}; brokers {brokers}"

    def _views(self, change: PartitionChange, step: ControllerStep, knowledge: Knowledge) -> Iterator[View]:
        replicas = [r for side in (change.before, change.after) if side for r in side.assignment.replicas]
        emptied = knowledge.emptied() if step.round == "expel" else frozenset()
        asked = self._asked(change)
        recalled = frozenset(r for r in replicas if (change.tp, r) in self._recalled)
        epoch = self.controllership.epoch
        for standings, min_isr in product(knowledge.views(change.tp, replicas), self.min_isrs.of(change.tp.topic)):
            yield View(epoch, step.event, standings, asked, min_isr, emptied, recalled, self.controllers)

    def _asked(self, change: PartitionChange) -> Asked:
        originals = [self._origins[change.tp]] if change.tp in self._origins else []
        if change.before is not None and (not originals or change.tp.topic in self._touched):
            originals.append(_row(change.before).origin)
        return self._requests.about(change.tp, originals)

    # --- what the model remembers -------------------------------------------------------------------------------

    def _follow(self, change: PartitionChange) -> None:
        before, after = change.before, change.after
        if before is not None and after is not None and before.assignment == after.assignment:
            return
        if before is None or after is None or not after.assignment.is_being_reassigned or not change.is_a_controllers:
            self._origins.pop(change.tp, None)
        # Or else a controller has taken over a move that somebody wrote by hand, and has not begun one.
        elif not before.assignment.is_being_reassigned and set(_row(after).origin) == set(before.assignment.replicas):
            self._origins[change.tp] = before.assignment.replicas

    def _follow_writes(self, host: str, ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, Delete) and op.path.startswith(_BELOW_STRAYS):
                stray = paths.parse_stray(op.path.removeprefix(_BELOW_STRAYS))
                if stray is not None:
                    self._recalled[stray.tp, stray.broker_id] = None
            elif not is_controller(host) and op.path.startswith(_BELOW_REASSIGNMENTS):
                self._touched[op.path.removeprefix(_BELOW_REASSIGNMENTS).partition("/")[0]] = None


def _row(partition: Partition) -> Row:
    return Row(partition.assignment, partition.leadership)


def _left(change: PartitionChange) -> tuple[int, ...]:
    """Return the brokers that a partition leaves."""
    before = () if change.before is None else change.before.assignment.replicas
    if change.after is None or not change.is_of_one_topic:
        return before
    return without(before, change.after.assignment.replicas)


def _title(host: str, step: ControllerStep) -> str:
    return f"{host} in round {step.round} of {step.event}"


def _text(row: Row) -> str:
    assignment, now = row.assignment, row.leadership
    text = f"{list(assignment.replicas)}"
    if row.is_moving:
        text += f" +{list(assignment.adding_replicas)} -{list(assignment.removing_replicas)}"
    if now is None:
        return f"({text}, never led)"
    state = f"leader {now.leader} in epoch {now.leader_epoch}, ISR {list(now.isr)}, version {now.partition_epoch}"
    recovering = " recovering" if now.leader_recovery_state else ""
    return f"({text}, {state}, controller epoch {now.controller_epoch}{recovering})"
