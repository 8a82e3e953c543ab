"""Check that a rollout begins only moves that it has marked, of the topics that it was planned for, within its limits.

It begins none while it is paused, while a signal says no, or where the room is known not to be enough or was not asked
for, and none of a partition that an administrator has moved since the rollout began.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Final

import trio
from attrs import define, field

from controller.model import rollout_rows
from controller.rollout.judging import TOPIC_DELETED
from simulator.safety.exemptions import Exemptions
from simulator.safety.partitions import PartitionChange, Partitions, is_controller
from simulator.safety.rollout_limits import Flying, Planned, RoomKnown, exceeded, short_of_room
from simulator.signals import Signals
from simulator.store.durable import Durable
from transport.messages import (
    UNTHROTTLED,
    AlterPartitionReassignmentsRequest,
    IncrementalAlterConfigsRequest,
    RolloutMove,
)
from transport.metadata import NO_LEADER, ReplicaAssignment, TopicPartition
from transport.store import formats, paths, rollouts
from transport.store.fields import UndecodableZnode
from transport.store.protocol import Create, Delete, Op, Set
from transport.store.rollouts import StoredRollout

THROTTLES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
RECORDS: Final = ("klamm.before.moves.", "klamm.moves.")
"""The prefixes of settings that record what throttles were before, and what moves have added to them."""

_BELOW: Final = f"{paths.ROLLOUTS}/"


@define
class Rollouts:
    """The plans of all rollouts, by the path of their parts, and the moves by hand."""

    partitions: Partitions
    signals: Signals
    room_known: Callable[[str, str], RoomKnown] | None = None
    """Returns the room on disks that the controller on a host knows of for a rollout; None if that is not judged."""

    brokers_known: Callable[[str], Collection[int]] | None = None
    """Returns the brokers that are alive, as the controller on a host knows; None if all count as alive."""

    are_rates_by_hand: bool = False
    """Whether somebody else has written the rates to which throttles of brokers are restored."""

    _took_office: float = 0.0
    """When the controller took office."""

    _started: dict[str, float] = field(factory=dict, init=False)
    """When each rollout was started."""

    _parts: dict[str, tuple[str, int, list[RolloutMove]]] = field(factory=dict, init=False)
    _asked: defaultdict[TopicPartition, set[tuple[int, ...] | None]] = field(
        factory=lambda: defaultdict(set), init=False
    )
    """The moves that administrators have asked for; None is a cancellation."""

    _by_hand: defaultdict[str, set[tuple[TopicPartition, str]]] = field(factory=lambda: defaultdict(set), init=False)
    """The partitions, with topic ids, that administrators have moved since each rollout began."""

    def asked(self, request: object) -> None:
        """Record the moves that an administrator asks for."""
        if isinstance(request, AlterPartitionReassignmentsRequest):
            for item in request.partitions:
                self._asked[item.tp].add(item.replicas)
        elif isinstance(request, IncrementalAlterConfigsRequest):
            self.are_rates_by_hand = self.are_rates_by_hand or RECORDS[0] in str(request)

    def committed(
        self, host: str, ops: Sequence[Op], changes: Sequence[PartitionChange], durable: Durable
    ) -> Iterator[str]:
        """Check the moves that a commit begins, right after it took effect."""
        for op in ops:
            self._follow(op)
        if not is_controller(host):
            self.are_rates_by_hand = self.are_rates_by_hand or any(map(_has_rates, ops))
            return
        if not self._parts:
            return
        for op in ops:
            yield from self._called_deleted(op, durable)
        turned = [change for change in changes if _is_turned(change)]
        planned = list(self._planned(durable)) if turned else []
        for change in turned:
            if not self.partitions.is_exempt(change.tp.topic):
                yield from self._turned(host, change, planned, durable)

    def _follow(self, op: Op) -> None:
        if op.path == paths.REASSIGN_PARTITIONS and isinstance(op, Create | Set):
            with suppress(formats.UndecodableZnode):
                for tp, target in formats.decode_reassign_partitions(op.data).items():
                    self._asked[tp].add(target)
        if op.path == paths.CONTROLLER_EPOCH and isinstance(op, Create | Set):
            self._took_office = trio.current_time()
        if not op.path.startswith(_BELOW):
            return
        self._forget_exempt()
        match op.path.removeprefix(_BELOW).split("/"):
            case [name] if isinstance(op, Delete) or (isinstance(op, Create | Set) and not op.data):
                self._by_hand.pop(name, None)
                self._started.pop(name, None)
            case [name] if isinstance(op, Create | Set):
                self._started.setdefault(name, trio.current_time())
            case [name, *_] if self.partitions.exempt.has_rollout(name):
                pass
            case [name, "moves", first] if isinstance(op, Create | Set):
                self._parts[op.path] = name, int(first), rollouts.decode_part(op.path, op.data)
            case [_, "moves", _] if isinstance(op, Delete):
                self._parts.pop(op.path, None)

    def _called_deleted(self, op: Op, durable: Durable) -> Iterator[str]:
        """Yield the moves that marks call deleted although their topic is there and is not about to go."""
        match op.path.removeprefix(_BELOW).split("/"):
            case [name, "marks", first] if isinstance(op, Create | Set):
                _, _, moves = self._parts.get(paths.rollout_plan(name, int(first)), (name, 0, []))
                why = rollouts.decode_marks(op.path, op.data).why
                deleted = [move for number, move in enumerate(moves) if why.get(number) == TOPIC_DELETED]
                for move in deleted:
                    topic = durable.topic(move.topic)
                    is_there = topic is not None and topic.topic_id == move.topic_id
                    if is_there and not self.partitions.is_exempt(move.topic):
                        yield f"rollout {name} calls the move of {move.tp} deleted, though its topic is there"

    def _forget_exempt(self) -> None:
        """Judge no move of a rollout whose rows are damaged on purpose."""
        exempt = self.partitions.exempt
        for path in [path for path, (name, _, _) in self._parts.items() if exempt.has_rollout(name)]:
            del self._parts[path]

    def _planned(self, durable: Durable) -> Iterator[Planned]:
        for name, first, moves in self._parts.values():
            path = paths.rollout_marks(name, first)
            znode = durable.tree.read(path)
            marks = bytes(len(moves)) if znode is None else rollouts.decode_marks(path, znode.data).marks
            yield from (Planned.marked(name, move, code) for move, code in zip(moves, marks, strict=True))

    def _turned(
        self, host: str, change: PartitionChange, planned: Sequence[Planned], durable: Durable
    ) -> Iterator[str]:
        """Judge a partition whose target has changed: by a rollout, by an administrator, or by nobody who may."""
        own = [each for each in planned if each.tp == change.tp]
        marked = [each for each in own if each.is_under_way]
        _, now = _assignments(change)
        begun = [each for each in marked if each.target == now.target_replicas]
        for each in begun if _begins(change) else ():
            yield from self._begun(host, change, each, planned, durable)
        if begun or any(now.target_replicas in (each.move.before, each.move.after) for each in marked):
            return
        if self._asked[change.tp] & {now.target_replicas, None}:
            self._moved_by_hand(change, durable)
        elif own and _begins(change):
            yield f"{change.tp} is moved by rollout {own[0].rollout}, whose move is {own[0].state.value}"

    def _moved_by_hand(self, change: PartitionChange, durable: Durable) -> None:
        assert change.after is not None
        for name in {name for name, _, _ in self._parts.values()}:
            if _stored(name, durable) is not None:
                self._by_hand[name].add((change.tp, change.after.topic_id))

    def _begun(
        self, host: str, change: PartitionChange, one: Planned, planned: Sequence[Planned], durable: Durable
    ) -> Iterator[str]:
        stored = _stored(one.rollout, durable)
        if stored is None or change.after is None:
            return
        begins = f"{change.tp} begins to move by rollout {one.rollout}"
        if stored.holds:
            yield f"{begins}, which is paused by {', '.join(stored.holds)}"
        if self.signals.no_since(stored.settings) < max(self._took_office, self._started[one.rollout]):
            yield f"{begins}, whose signal has said no since before the controller asked it"
        if one.move.topic_id != change.after.topic_id:
            yield f"{begins}, which was planned for the topic {one.move.topic_id}, not {change.after.topic_id}"
        if (change.tp, change.after.topic_id) in self._by_hand[one.rollout]:
            yield f"{begins}, though an administrator has moved it since that began"
        flying = [self._flying(each) for each in planned if each.rollout == one.rollout and self._is_flying(each)]
        # Moves in flight that wait for a dead broker use up no limit.
        known = None if self.brokers_known is None else frozenset(self.brokers_known(host))
        counted = [each for each in flying if each.move is one or known is None or known.issuperset(each.move.target)]
        for text in exceeded(self._flying(one), counted, stored.settings):
            yield f"rollout {one.rollout} {text}"
        if stored.settings.throttle != UNTHROTTLED and not self.are_rates_by_hand:
            yield from (f"{begins}, {text}" for text in self._unthrottled(one, durable, known))
        if self.room_known is None or stored.settings.ignore_room:
            return
        for text in short_of_room(one, [each.move for each in flying], self.room_known(host, one.rollout)):
            yield f"{begins}, {text}"

    def _unthrottled(self, one: Planned, durable: Durable, known: Collection[int] | None) -> Iterator[str]:
        """Yield the live brokers of a move that have no rate although its rollout has a throttle."""
        exempt = self.partitions.exempt
        for rate, brokers in zip(THROTTLES[:2], (one.origin, one.adding), strict=True):
            for broker in sorted(brokers) if one.adding else ():
                path = paths.broker_config(broker)
                znode = durable.tree.read(path)
                is_alive = broker in durable.brokers() and (known is None or broker in known)
                if is_alive and (znode is None or rate.encode() not in znode.data) and not exempt.is_damaged(path):
                    yield f"while the live broker {broker} has no {rate}"

    def _is_flying(self, each: Planned) -> bool:
        partition = self.partitions.get(each.tp)
        if not each.is_under_way or partition is None:
            return False
        return partition.assignment.is_being_reassigned and partition.assignment.target_replicas == each.target

    def _flying(self, each: Planned) -> Flying:
        partition = self.partitions.get(each.tp)
        leadership = None if partition is None else partition.leadership
        return Flying(each, NO_LEADER if leadership is None else leadership.leader)


def _assignments(change: PartitionChange) -> tuple[ReplicaAssignment, ReplicaAssignment]:
    assert change.before is not None
    assert change.after is not None
    return change.before.assignment, change.after.assignment


def _is_turned(change: PartitionChange) -> bool:
    """Return whether a controller has changed the replicas that a partition is to have."""
    if not change.is_of_one_topic or not change.is_a_controllers:
        return False
    before, after = _assignments(change)
    return before.target_replicas != after.target_replicas


def _begins(change: PartitionChange) -> bool:
    before, after = _assignments(change)
    return after.is_being_reassigned and not before.is_being_reassigned


def _stored(name: str, durable: Durable) -> StoredRollout | None:
    znode = durable.tree.read(paths.rollout(name))
    if znode is None or not znode.data:
        return None
    try:
        return rollout_rows.read_state(name, znode.data)
    except UndecodableZnode:
        return None


def are_throttles(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Return whether two settings differ only in throttles and in the records of what these were, or repeat some."""
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    if not changed:
        return any(_plain(name) in THROTTLES for name in after)
    return all(_plain(name) in THROTTLES for name in changed)


def _plain(name: str) -> str:
    return name.removeprefix(RECORDS[0]).removeprefix(RECORDS[1])


def _has_rates(op: Op) -> bool:
    """Return whether an operation writes the rates that brokers had before moves."""
    is_brokers = op.path.startswith(f"{paths.BROKER_CONFIGS}/")
    return is_brokers and isinstance(op, Create | Set) and RECORDS[0].encode() in op.data


def left_behind(durable: Durable, exempt: Exemptions, *, are_rates_by_hand: bool) -> Iterator[str]:
    """Yield what rollouts leave behind that are over, and those that should be over."""
    found = {name: _stored(name, durable) for name in durable.tree.children(paths.ROLLOUTS) or ()}
    known = {name: stored for name, stored in found.items() if stored is not None}
    queue = sorted(known, key=lambda name: known[name].number)
    under_way = [name for name in queue if known[name].phase not in {"done", "aborted", "undone"}]
    topics = _topics(durable, (name for name in known if not exempt.has_rollout(name)))
    if any(map(exempt.has_topic, topics)):
        return
    if under_way:
        # One that is paused, or damaged on purpose and carried out nevertheless, holds up those behind it.
        due = list(takewhile(lambda name: not known[name].holds and not exempt.has_rollout(name), under_way))
        due = [] if _is_held_up(durable, topics) else due
        yield from (f"rollout {name} is still {known[name].phase}" for name in due)
        return
    if exempt.has_rollouts:
        return
    for name in topics:
        znode = durable.tree.read(paths.topic_config(name))
        if znode is not None and RECORDS[1].encode() in znode.data:
            yield f"topic {name} still has a throttle of a rollout"
    # Moves that others have throttled may have been in progress when the rates of a rollout were restored.
    in_use = set(_throttled_by_others(durable, topics))
    for name in () if are_rates_by_hand or not known else durable.tree.children(paths.BROKER_CONFIGS) or ():
        znode = durable.tree.read(f"{paths.BROKER_CONFIGS}/{name}")
        if name not in in_use and znode is not None and RECORDS[0].encode() in znode.data:
            yield f"broker {name} still has the rate of a rollout"


def _throttled_by_others(durable: Durable, topics: Collection[str]) -> Iterator[str]:
    """Yield the brokers, as text, of throttled replicas that are recorded as those of moves in other topics."""
    for name in durable.topics():
        znode = None if name in topics else durable.tree.read(paths.topic_config(name))
        text = "" if znode is None else znode.data.decode("utf-8", "replace")
        if RECORDS[1] in text:
            yield from re.findall(r"[0-9]+:([0-9]+)", text)


def _is_held_up(durable: Durable, topics: Collection[str]) -> bool:
    """Return whether moves of these topics may wait for ever.

    They do where moves that somebody else has asked for never end and leave no room within the limits; where all that
    had the data of a partition are gone; and while a partition lacks replicas, as it may be under its min ISR.
    """
    for tp, assignment in durable.partitions():
        if tp.topic not in topics and assignment.is_being_reassigned:
            return True
        led = durable.leadership(tp)
        if led is None or led.leader == NO_LEADER or not set(assignment.replicas) <= set(led.isr):
            return True
    return False


def _topics(durable: Durable, names: Iterable[str]) -> list[str]:
    """Return the topics of which rollouts move partitions."""
    found: dict[str, None] = {}
    for name in names:
        for first in durable.tree.children(paths.rollout_plans(name)) or ():
            path = paths.rollout_plan(name, int(first))
            znode = durable.tree.read(path)
            moves = [] if znode is None else rollouts.decode_part(path, znode.data)
            found |= dict.fromkeys(move.topic for move in moves)
    return sorted(found)
