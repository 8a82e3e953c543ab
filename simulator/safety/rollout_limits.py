"""The limits of a rollout, counted anew from the moves that the store shows in flight."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from attrs import frozen

from controller.model.rollout_parts import CODES
from controller.rollout.room import Disk
from controller.rollout.states import MoveState
from transport.messages import UNLIMITED, RolloutMove, RolloutSettings
from transport.metadata import TopicPartition

RoomKnown = Mapping[int, Disk | None]
"""The room on the disks of brokers that have been asked for it; None for those that do not tell it."""


@frozen
class Planned:
    """A move of a plan, and its state in the store."""

    rollout: str
    move: RolloutMove
    state: MoveState

    @classmethod
    def marked(cls, rollout: str, move: RolloutMove, code: int) -> Planned:
        """Return the move with a mark as it is stored."""
        return cls(rollout, move, CODES[code])

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return self.move.tp

    @property
    def is_under_way(self) -> bool:
        """Whether the move is marked as in flight, there or back."""
        return self.state in (MoveState.IN_FLIGHT, MoveState.GOING_BACK)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that the partition is to have after the move, or after the way back."""
        return self.move.before if self.state is MoveState.GOING_BACK else self.move.after

    @property
    def adding(self) -> frozenset[int]:
        """The brokers that get a replica."""
        return frozenset(self.target) - {*self.origin}

    @property
    def removing(self) -> frozenset[int]:
        """The brokers that lose theirs."""
        return frozenset(self.origin) - {*self.target}

    @property
    def bytes(self) -> int:
        """The bytes that the move copies."""
        return max(self.move.size, 0) * len(self.adding)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas that the partition has before the move, or before the way back."""
        return self.move.after if self.state is MoveState.GOING_BACK else self.move.before


@frozen
class Flying:
    """A move in flight, and the leader of its partition."""

    move: Planned
    leader: int

    @property
    def sender(self) -> int | None:
        """The broker that sends a replica, None if the move copies nothing."""
        return self.leader if self.move.adding else None

    @property
    def is_a_leaders(self) -> bool:
        """Whether the move takes the leadership away."""
        return self.leader in self.move.removing


def exceeded(begun: Flying, flying: Collection[Flying], settings: RolloutSettings) -> Iterator[str]:
    """Yield the limits that are exceeded with a move that has begun, among all that are in flight with it."""
    if len(flying) > settings.in_all:
        yield _text(len(flying), "in flight", settings.in_all)
    for broker in sorted(begun.move.adding):
        count = sum(broker in each.move.adding for each in flying)
        if count > settings.into:
            yield _text(count, f"into broker {broker}", settings.into)
    count = sum(each.sender == begun.sender for each in flying)
    if begun.sender is not None and count > settings.out_of:
        yield _text(count, f"out of broker {begun.sender}", settings.out_of)
    count = sum(each.is_a_leaders and each.leader == begun.leader for each in flying)
    if begun.is_a_leaders and count > settings.leaders:
        yield _text(count, f"that take broker {begun.leader} leaderships away", settings.leaders)
    total = sum(each.move.bytes for each in flying)
    if begun.move.bytes and total > max(settings.bytes, begun.move.bytes) and settings.bytes != UNLIMITED:
        yield f"has {total:,} bytes in flight, not at most {settings.bytes:,}"


def short_of_room(begun: Planned, flying: Collection[Planned], known: RoomKnown) -> Iterator[str]:
    """Yield the brokers on which a move needs more room than is known, after all that are in flight with it.

    So are those that nobody has asked for their room.
    """
    for broker in sorted(begun.adding):
        needed = sum(max(each.move.size, 0) for each in flying if broker in each.adding)
        disk = known.get(broker)
        if disk is not None and needed > disk.free:
            yield f"though broker {broker} has told of {disk.free:,} bytes, and {needed:,} are needed"
        if broker not in known and begun.bytes:
            yield f"though broker {broker} has not been asked for its room"


def _text(count: int, what: str, most: int) -> str:
    return f"has {count} moves {what}, not at most {most}"
