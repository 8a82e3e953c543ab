"""A partition as administrators see it: a sequential model, and the operations on it with their answers.

What the model cannot know is None and equals anything: the replicas that a controller places, or where a move that
nobody asked for began. It becomes known with the first answer or commit that shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from attrs import frozen
from msgspec.structs import replace

from simulator.linearizability.checker import Operation
from simulator.linearizability.commits import Committed, by_commit
from transport.errors import ErrorCode
from transport.messages import ElectionType
from transport.metadata import LEADER_DURING_DELETE, OfReplicas

Replicas = tuple[int, ...]


class Doom(Enum):
    """Whether a topic is being deleted. Controllers may not know yet of a marker that others wrote."""

    NONE = "not deleted"
    MARKED = "marked for deletion"
    GRANTED = "deletion granted"


class ModelPartition(Committed, frozen=True, cache_hash=True):
    """The state of a partition in the model."""

    exists: bool = False
    topic_id: str | None = None
    doom: Doom = Doom.NONE
    replicas: Replicas | None = None
    """In their order; the target while the partition is being moved."""

    moving: bool = False
    origin: Replicas | None = None
    """The replicas to which a cancel returns."""

    leader: int | None = None
    requested: tuple[Replicas, ...] = ()
    """The targets in `/admin/reassign_partitions`, which controllers may read at any time."""

    def __str__(self) -> str:
        if not self.exists:
            return "no partition"
        moving = f" moving from {_list(self.origin)}" if self.moving else ""
        doomed = "" if self.doom is Doom.NONE else f", {self.doom.value}"
        return f"{_list(self.replicas)}{moving} led by {self.leader}{doomed}"

    def settled(self) -> ModelPartition:
        """Return the partition after the end of its move."""
        return replace(self, moving=False, origin=None)

    def moved_to(self, target: Replicas) -> Iterator[ModelPartition]:
        """Yield what a new target makes of the partition: no move if it only reorders the replicas.

        A move that was turned back still has the replicas of its former target, which a new one may keep.
        """
        origin = self.origin if self.moving else self.replicas
        yield replace(self, replicas=target, moving=True, origin=origin)
        is_order = origin is None or set(origin) == set(target)
        if is_order or (self.moving and origin is not None and set(origin) < set(target)):
            yield replace(self, replicas=target).settled()


ABSENT = ModelPartition()


def of(
    assignment: OfReplicas, *, leader: int | None = None, topic_id: str | None = None, doom: Doom = Doom.NONE
) -> ModelPartition:
    """Return the model of a partition whose move, if any, began at an unknown order of replicas."""
    moving = assignment.is_being_reassigned
    return ModelPartition(True, topic_id, doom, assignment.target_replicas, moving, None, leader)  # noqa: FBT003  it exists


def marked(state: ModelPartition) -> ModelPartition:
    """Return the partition of a topic that was marked for deletion by hand."""
    return replace(state, doom=Doom.MARKED) if state.exists and state.doom is Doom.NONE else state


def drifts(state: ModelPartition) -> Iterator[ModelPartition]:
    """Yield a state and all that it may become by itself: moves begin as the store requests, and end; deletions end."""
    yield state
    yield from by_commit(state, _drifts(state))


def _drifts(state: ModelPartition) -> Iterator[ModelPartition]:
    if state.exists and state.moving:
        yield state.settled()
    if state.exists and state.doom is not Doom.GRANTED:
        for target in state.requested:
            for moved in state.moved_to(target):
                yield from {moved: None, moved.settled(): None}
    if state.doom is not Doom.NONE:
        yield replace(ABSENT, requested=state.requested)
    if state.doom is Doom.MARKED:
        # Controllers remove the markers of missing topics.
        yield replace(state, doom=Doom.NONE)


@frozen
class Create(Operation[ModelPartition]):
    """The creation of the partition's topic; None for replicas that the controller places."""

    replicas: Replicas | None

    def after(self, state: ModelPartition) -> Iterator[ModelPartition]:
        """Return the new partition."""
        if not state.exists and state.doom is Doom.NONE:
            new = replace(ABSENT, exists=True, replicas=self.replicas, requested=state.requested)
            yield from by_commit(state, [new])

    def __str__(self) -> str:
        return f"creation with {_list(self.replicas)}"


@frozen
class Grow(Operation[ModelPartition]):
    """A growth of the topic to more partitions than the number of this one."""

    def after(self, state: ModelPartition) -> Iterator[ModelPartition]:
        """Return the partition, which is new if it did not exist."""
        if state.doom is not Doom.GRANTED:
            new = replace(ABSENT, exists=True, requested=state.requested)
            yield from by_commit(state, [state if state.exists else new])

    def __str__(self) -> str:
        return "growth of the topic"


@frozen
class Delete(Operation[ModelPartition]):
    """A deletion of the topic."""

    def after(self, state: ModelPartition) -> Iterator[ModelPartition]:
        """Return the doomed partition."""
        granted = replace(state, doom=Doom.GRANTED) if state.exists else state
        # Where there is a marker, another one is not written.
        yield from by_commit(state, [granted]) if state.doom is Doom.NONE else [granted]

    def __str__(self) -> str:
        return "deletion of the topic"


@frozen
class Reassign(Operation[ModelPartition]):
    """A new target, or None to cancel, and the answer; an unknown answer counts as success."""

    target: Replicas | None
    error: ErrorCode = ErrorCode.NONE

    def after(self, state: ModelPartition) -> Iterable[ModelPartition]:
        """Return the partition with its new target, or unchanged if the answer is a refusal."""
        match self.error:
            case ErrorCode.NONE:
                return list(by_commit(state, self._granted(state)))
            case ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
                is_right = not (state.exists and state.moving)
            case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                is_right = not state.exists or state.doom is not Doom.NONE
            case _:
                is_right = True
        return [state] if is_right else []

    def _granted(self, state: ModelPartition) -> Iterator[ModelPartition]:
        if not state.exists or state.doom is Doom.GRANTED or (self.target is None and not state.moving):
            return
        # A target without replicas is always refused.
        if self.target == ():
            return
        target = state.origin if self.target is None else self.target
        if target is None:
            yield replace(state, replicas=None)
            yield replace(state, replicas=None).settled()
        elif state.replicas == target:
            # It has that target already, as one that returns to where it started and keeps others in the meantime.
            yield state
        else:
            yield from state.moved_to(target)

    def __str__(self) -> str:
        asked = "cancel" if self.target is None else f"move to {_list(self.target)}"
        return f"{asked} answered {self.error.name}"


@frozen
class Elect(Operation[ModelPartition]):
    """An election, perhaps with a new order of the replicas, and the answer."""

    kind: ElectionType
    order: Replicas | None = None
    error: ErrorCode = ErrorCode.NONE

    def after(self, state: ModelPartition) -> Iterable[ModelPartition]:
        """Return the partition, in the new order if there is one, or unchanged if the answer is a refusal."""
        match self.error:
            case ErrorCode.NONE if self.order is not None:
                return list(by_commit(state, self._ordered(state)))
            case ErrorCode.NONE | ErrorCode.ELECTION_NOT_NEEDED:
                is_right = state.exists and self._is_led(state)
            case ErrorCode.REASSIGNMENT_IN_PROGRESS:
                is_right = state.exists and state.moving
            case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                is_right = not state.exists or state.doom is not Doom.NONE
            case ErrorCode.INVALID_TOPIC_EXCEPTION:
                is_right = state.doom is not Doom.NONE
            case _:
                is_right = True
        return [state] if is_right else []

    def _ordered(self, state: ModelPartition) -> list[ModelPartition]:
        assert self.order is not None
        if not state.exists or state.doom is Doom.GRANTED:
            return []
        now = state.replicas
        if now is not None and self._is_order_of(now, moving=state.moving):
            return [state]
        if state.moving or (now is not None and sorted(now) != sorted(self.order)):
            return []
        return [replace(state, replicas=self.order)]

    def _is_order_of(self, now: Replicas, *, moving: bool) -> bool:
        """Return whether the replicas have the order already, in a move those that it removes after its target."""
        assert self.order is not None
        return len(self.order) > len(now) and self.order[: len(now)] == now if moving else self.order == now

    def _is_led(self, state: ModelPartition) -> bool:
        if state.leader is None or state.replicas is None:
            return True
        return state.leader == state.replicas[0] if self.kind is ElectionType.PREFERRED else state.leader >= 0

    def __str__(self) -> str:
        order = "" if self.order is None else f" in the order {_list(self.order)}"
        return f"{self.kind.name.lower()} election{order} answered {self.error.name}"


@frozen
class List(Operation[ModelPartition]):
    """A list of the reassignments in progress: the one of this partition, or None."""

    move: OfReplicas | None

    def after(self, state: ModelPartition) -> Iterable[ModelPartition]:
        """Return the partition if that is its reassignment."""
        if self.move is None:
            return [] if state.exists and state.moving and state.doom is Doom.NONE else [state]
        return _known(state, of(self.move)) if state.exists and state.moving else []

    def __str__(self) -> str:
        return f"list shows {'no move' if self.move is None else f'a move to {_list(self.move.target_replicas)}'}"


@frozen
class Describe(Operation[ModelPartition]):
    """A description of the partition, or None if it is missing."""

    partition: ModelPartition | None

    def after(self, state: ModelPartition) -> Iterable[ModelPartition]:
        """Return the partition if it is as described."""
        told = self.partition
        if told is None or not state.exists:
            return [state] if told is None and not state.exists else []
        if told.leader == LEADER_DURING_DELETE:
            is_the_one = told.topic_id in (state.topic_id, None) or state.topic_id is None
            return [state] if state.doom is not Doom.NONE and is_the_one else []
        return [] if state.doom is Doom.GRANTED else _known(state, told)

    def __str__(self) -> str:
        return f"description as {self.partition or 'missing'}"


@frozen
class Stored(Operation[ModelPartition]):
    """The partition in the store right before or right after a commit of a controller.

    Who leads is no administrator's business: a commit sets it, unless it `checks` only.
    """

    partition: ModelPartition
    checks: bool = False

    def after(self, state: ModelPartition) -> Iterable[ModelPartition]:
        """Return the partition if the store has it."""
        now = replace(self.partition, changes=int(self.checks))
        if now.exists is not state.exists or (now.doom is Doom.NONE) is not (state.doom is Doom.NONE):
            return []
        if not now.exists:
            return [replace(state, changes=now.changes)]
        leads = replace(now, leader=state.leader) if self.checks else now
        # Nobody is promised anything about the replicas of a topic that is being deleted.
        if state.doom is not Doom.NONE:
            return [replace(leads, doom=state.doom, requested=state.requested)]
        return _known(replace(state, leader=None, changes=now.changes), leads)

    def __str__(self) -> str:
        return f"the store {'still has' if self.checks else 'has'} {self.partition}"


@frozen
class Written(Operation[ModelPartition]):
    """A write by hand: a marker, or a request in the store."""

    is_marked: bool = False
    target: Replicas | None = None

    def after(self, state: ModelPartition) -> Iterable[ModelPartition]:
        """Return the partition with the marker, or with the target among those requested."""
        if self.is_marked:
            state = marked(state)
        if self.target is not None and self.target not in state.requested:
            state = replace(state, requested=(*state.requested, self.target))
        return [state]

    def __str__(self) -> str:
        return "a marker by hand" if self.is_marked else f"a request by hand for {_list(self.target)}"


def _known(state: ModelPartition, shown: ModelPartition) -> list[ModelPartition]:
    """Return the state with what an answer shows of it; nothing if the answer differs from what is known."""
    topic_ids, lists = (state.topic_id, shown.topic_id), (state.replicas, shown.replicas)
    leaders = state.leader, shown.leader
    if state.moving is not shown.moving or any(map(_differ, (topic_ids, lists, leaders))):
        return []
    leader = state.leader if state.leader is not None else shown.leader
    topic_id, replicas = state.topic_id or shown.topic_id, state.replicas or shown.replicas
    return [replace(state, topic_id=topic_id, replicas=replicas, leader=leader)]


def _differ(pair: tuple[object, object]) -> bool:
    return None not in pair and pair[0] != pair[1]


def _list(replicas: Sequence[int] | None) -> str:
    return "[?]" if replicas is None else f"{list(replicas)}"
