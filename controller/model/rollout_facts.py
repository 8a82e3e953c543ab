"""Facts about rollouts, see `controller.model.facts`."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from controller.model.rollout_parts import Part
from controller.rollout.room import Disk
from controller.rollout.states import MoveState
from controller.rollout.waiting import Wait
from transport.metadata import TopicPartition
from transport.store.rollouts import StoredPart, StoredRollout


@frozen
class Upload:
    """A plan that is being uploaded: the parts in the store, and how many moves were sent for each request."""

    digest: str
    parts: Mapping[int, StoredPart] = field(factory=dict)
    sent: Mapping[int, int] = field(factory=dict)


@frozen
class RolloutFact:
    """The base class of facts about a rollout."""

    name: str


@frozen
class RolloutWritten(RolloutFact):
    """The state of a rollout has this content at this dataVersion."""

    stored: StoredRollout
    version: int


@frozen
class RolloutGone(RolloutFact):
    """A rollout, or a plan that was being uploaded, is gone."""


@frozen
class RolloutUnusable(RolloutFact):
    """A rollout is quarantined, because one of its rows cannot be read or makes no sense, as `fault` says."""

    fault: str


@frozen
class UploadGrown(RolloutFact):
    """A plan that is being uploaded has these parts."""

    upload: Upload


@frozen
class PartOpened(RolloutFact):
    """A part of the plan was read."""

    part: Part = field(eq=False)


@frozen
class PartsClosed(RolloutFact):
    """Parts of the plan are not needed in memory any more; None for all."""

    firsts: tuple[int, ...] | None = None


@frozen
class MovesMarked(RolloutFact):
    """Moves of a part are in these states, as its marks say at this dataVersion."""

    first: int
    changes: Mapping[int, tuple[MoveState, str]]
    version: int


@frozen
class MoveLeftOut(RolloutFact):
    """A move is left to a later undo."""

    first: int
    number: int


@frozen
class MovedByHand(RolloutFact):
    """Administrators have moved these partitions, whose parts may not have been read; `needed` if all of them are."""

    partitions: frozenset[TopicPartition]
    version: int
    needed: int = 0


@frozen
class Sifting:
    """A look for those of some partitions that the plan names, part by part.

    Attributes:
        of: The partitions.
        parts: The first numbers of the parts that have not been read yet.
        needed: The partitions that the other ones name.
    """

    of: frozenset[TopicPartition]
    parts: tuple[int, ...]
    needed: frozenset[TopicPartition] = frozenset()


@frozen
class MovedByHandSifted(RolloutFact):
    """The partitions that administrators have moved have been looked for so far; None once this is over."""

    sifting: Sifting | None


Under = Mapping[int, tuple[TopicPartition, ...]]
"""The first partitions under min ISR of each slice of the cluster; the slice that was judged last comes last."""


@frozen
class RolloutSeen(RolloutFact):
    """A look at the cluster has shown this: the moves that are urgent, and the partitions under min ISR."""

    now: float
    urgent: frozenset[TopicPartition]
    under: Under


@frozen
class SignalSeen(RolloutFact):
    """The operator's signal says this: why nothing may begin, empty if something may."""

    text: str


@frozen
class RoomTold(RolloutFact):
    """The room on the disks of brokers, and the bytes that moves in flight lack, as far as they tell it.

    `untold` are the brokers that have been asked for their room in vain.
    """

    disks: Mapping[int, Disk]
    lacking: Mapping[TopicPartition, int] = field(factory=dict)
    untold: frozenset[int] = frozenset()


@frozen
class NotThrottled(RolloutFact):
    """These live brokers and topics cannot be throttled now, for these reasons: moves that need it wait."""

    faults: Mapping[int | str, str]


@frozen
class MovesChosen(RolloutFact):
    """The moves that were looked at last wait for this; with `are_more`, others may begin right now.

    `is_held` says that a brake holds them, `behind` how many moves wait that were not looked at, by what for,
    and `asks` which brokers are to tell their room.
    """

    waits: Mapping[TopicPartition, Wait]
    are_more: bool = False
    is_held: bool = False
    behind: Mapping[str, int] = field(factory=dict)
    asks: frozenset[int] = frozenset()


@frozen
class RolloutsSettled:
    """The ends of moves in flight have been looked at."""
