"""Check that a rollout begins only moves that it has marked, within its limits, and none while it is paused.

Partitions that an administrator has asked to move are exempt: their moves are not the rollout's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from attrs import define, field, frozen

from controller.model.rollout_parts import CODES
from controller.rollout.states import MoveState
from simulator.safety.exemptions import Exemptions
from simulator.safety.partitions import PartitionChange, Partitions, is_controller
from simulator.store.durable import Durable
from transport.messages import AlterPartitionReassignmentsRequest, RolloutMove
from transport.metadata import NO_LEADER, LeaderAndIsr, TopicPartition
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
_UNDER_WAY: Final = frozenset({MoveState.IN_FLIGHT, MoveState.GOING_BACK})


@frozen
class Planned:
    """A move of a plan, and its state in the store."""

    rollout: str
    move: RolloutMove
    state: MoveState


@define
class Rollouts:
    """The plans of all rollouts, by the path of their parts."""

    partitions: Partitions
    _parts: dict[str, tuple[str, int, list[RolloutMove]]] = field(factory=dict, init=False)
    _by_hand: set[TopicPartition] = field(factory=set, init=False)

    def asked(self, request: object) -> None:
        """Record the moves that an administrator asks for."""
        if isinstance(request, AlterPartitionReassignmentsRequest):
            self._by_hand.update(item.tp for item in request.partitions)

    def committed(
        self, host: str, ops: Sequence[Op], changes: Sequence[PartitionChange], durable: Durable
    ) -> Iterator[str]:
        """Check the moves that a commit begins, right after it took effect."""
        for op in ops:
            self._follow(op)
        began = [change for change in changes if _begins(change)]
        if not self._parts or not began or not is_controller(host):
            return
        planned = list(self._planned(durable))
        for change in began:
            if change.tp not in self._by_hand and not self.partitions.is_exempt(change.tp.topic):
                yield from self._begun(change, planned, durable)

    def _follow(self, op: Op) -> None:
        if op.path == paths.REASSIGN_PARTITIONS and isinstance(op, Create | Set):
            with suppress(formats.UndecodableZnode):
                self._by_hand.update(formats.decode_reassign_partitions(op.data))
        if not op.path.startswith(_BELOW):
            return
        match op.path.removeprefix(_BELOW).split("/"):
            case [name, "moves", first] if isinstance(op, Create | Set):
                self._parts[op.path] = name, int(first), rollouts.decode_part(op.path, op.data)
            case [_, "moves", _] if isinstance(op, Delete):
                self._parts.pop(op.path, None)

    def _planned(self, durable: Durable) -> Iterator[Planned]:
        for name, first, moves in self._parts.values():
            path = paths.rollout_marks(name, first)
            znode = durable.tree.read(path)
            marks = bytes(len(moves)) if znode is None else rollouts.decode_marks(path, znode.data).marks
            yield from (Planned(name, move, CODES[code]) for move, code in zip(moves, marks, strict=True))

    def _begun(self, change: PartitionChange, planned: Sequence[Planned], durable: Durable) -> Iterator[str]:
        own = [each for each in planned if each.move.tp == change.tp]
        marked = [each for each in own if each.state in _UNDER_WAY]
        if not own:
            return
        if not marked:
            yield f"{change.tp} is moved by rollout {own[0].rollout}, whose move is {own[0].state.value}"
        for each in marked:
            stored = _stored(each.rollout, durable)
            if stored is not None:
                yield from self._within(change, each, planned, stored)

    def _within(
        self, change: PartitionChange, one: Planned, planned: Sequence[Planned], stored: StoredRollout
    ) -> Iterator[str]:
        if stored.holds:
            yield f"{change.tp} begins to move, while rollout {one.rollout} is paused by {', '.join(stored.holds)}"
        flying = [each.move for each in planned if each.rollout == one.rollout and self._is_flying(each)]
        if len(flying) > stored.settings.in_all:
            yield f"rollout {one.rollout} has {len(flying)} moves in flight, not at most {stored.settings.in_all}"

    def _is_flying(self, each: Planned) -> bool:
        partition = self.partitions.get(each.move.tp)
        is_moving = partition is not None and partition.assignment.is_being_reassigned
        return each.state in _UNDER_WAY and is_moving and each.move.tp not in self._by_hand


def _begins(change: PartitionChange) -> bool:
    if change.before is None or change.after is None or not change.is_a_controllers:
        return False
    return change.after.assignment.is_being_reassigned and not change.before.assignment.is_being_reassigned


def _stored(name: str, durable: Durable) -> StoredRollout | None:
    znode = durable.tree.read(paths.rollout(name))
    if znode is None or not znode.data:
        return None
    try:
        return rollouts.decode_state(name, znode.data)
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


def left_behind(durable: Durable, exempt: Exemptions) -> Iterator[str]:
    """Yield what rollouts leave behind that are over, and those that should be over."""
    found = {name: _stored(name, durable) for name in durable.tree.children(paths.ROLLOUTS) or ()}
    known = {name: stored for name, stored in found.items() if stored is not None}
    under_way = [name for name, each in known.items() if each.phase not in {"done", "aborted", "undone"}]
    topics = _topics(durable, known)
    if any(map(exempt.has_topic, topics)):
        return
    if under_way:
        # Moves wait for a leader for ever where all that had the data are gone.
        is_led = all(led is not None and led.leader != NO_LEADER for led in _leaderships(durable, topics))
        due = [name for name in under_way if is_led and not known[name].holds]
        yield from (f"rollout {name} is still {known[name].phase}" for name in due)
        return
    for name in topics:
        znode = durable.tree.read(paths.topic_config(name))
        if znode is not None and RECORDS[1].encode() in znode.data:
            yield f"topic {name} still has a throttle of a rollout"


def _leaderships(durable: Durable, topics: Collection[str]) -> Iterator[LeaderAndIsr | None]:
    return (durable.leadership(tp) for tp, _ in durable.partitions() if tp.topic in topics)


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
