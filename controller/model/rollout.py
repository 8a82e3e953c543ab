"""A rollout that the controller carries out: its state, the open parts of its plan, and what its moves wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from attrs import Factory, define, field
from msgspec.structs import replace

from controller.model.rollout_facts import (
    MovedByHand,
    MoveLeftOut,
    NotThrottled,
    RolloutFact,
    RolloutSeen,
    Sifting,
    Under,
)
from controller.model.rollout_parts import STATES, Part, direction_of, is_of_use, states_of, to_undo
from controller.rollout.forecast import TimeLeft
from controller.rollout.moves import Move
from controller.rollout.room import Disk
from controller.rollout.states import Direction, HeldBy, MoveState, Phase, RolloutState
from controller.rollout.waiting import Wait
from transport.metadata import TopicPartition
from transport.store.rollouts import StoredPart, StoredRollout


@define
class Rollout:
    """A rollout."""

    name: str
    stored: StoredRollout
    version: int
    """The dataVersion of its state."""

    parts: dict[int, Part] = Factory(dict)
    """The open parts, by first number, in the order of the plan."""

    by_hand: frozenset[TopicPartition] = frozenset()
    """Partitions that administrators have moved before their part was read."""

    by_hand_version: int = -1
    by_hand_needed: int = 0
    """The number of them that were needed when that was last checked."""

    sifting: Sifting | None = None
    """The look for those that are needed, while it is under way."""

    signal: str | None = None
    """Why the operator's signal says no, empty if it says yes; None until it has been asked."""

    is_held: bool = False
    """Whether a brake held it when it was looked at last."""

    urgent: frozenset[TopicPartition] = frozenset()
    under: Under = field(factory=dict)
    """Partitions under min ISR."""

    waits: Mapping[TopicPartition, Wait] = field(factory=dict)
    behind: Mapping[str, int] = field(factory=dict)
    """The number of moves that were not looked at, by what those before them wait for."""

    asked: frozenset[int] = frozenset()
    """The brokers that are asked for the room on their disks: moves to them wait."""

    disks: Mapping[int, Disk] = field(factory=dict)
    """The room on the disks of brokers that are asked or copy, as far as they tell it."""

    untold: frozenset[int] = frozenset()
    """The brokers that were asked for their room in vain."""

    unthrottled: Mapping[int | str, str] = field(factory=dict)
    """The live brokers and topics that could not be throttled since the last look, and why."""

    lacking: dict[TopicPartition, int] = Factory(dict)
    """The bytes that moves in flight lack, as far as brokers have told them."""

    resumed: set[TopicPartition] = Factory(set)
    """The moves in flight that an earlier controller has begun, until brokers tell what they lack."""

    landed: list[Move] = Factory(list)
    """The moves that have ended since: the brokers may have told of less than all of their bytes."""

    time_left: TimeLeft = field(factory=TimeLeft)
    ran: float = 0.0
    """The seconds that it has run under this controller, pauses not counted."""

    looked: float | None = None
    """The moment of the last look, of a clock that is never set."""

    is_look_due: bool = True
    """Whether something has changed since it was looked around last: a part of the plan was opened."""

    @property
    def scanned(self) -> int:
        """The slice of the cluster that was judged last; -1 before the first one."""
        return next(reversed(list(self.under)), -1)

    @property
    def state(self) -> RolloutState:
        """Its phase and the holds that last."""
        return RolloutState(Phase(self.stored.phase), frozenset(map(HeldBy, self.stored.holds)))

    @property
    def direction(self) -> Direction:
        """The direction in which it moves."""
        return direction_of(Phase(self.stored.phase))

    @property
    def interrupted(self) -> list[StoredPart]:
        """The parts that were open, and are not in memory: they may have moves in flight."""
        return [part for part in self.stored.parts if part.opened and not part.closed and part.first not in self.parts]

    @property
    def unread(self) -> list[StoredPart]:
        """The parts that have not been opened."""
        return [part for part in self.stored.parts if not part.opened and not part.closed]

    @property
    def closed_parts(self) -> list[StoredPart]:
        """The parts that are not in memory, of which moves may still begin, or be taken back."""
        return [part for part in self.stored.parts if part.first not in self.parts and is_of_use(part)]

    @property
    def flying(self) -> list[tuple[Part, int]]:
        """The moves in flight."""
        return [(part, number) for part in self.parts.values() for number in part.flying]

    @property
    def is_stopped(self) -> bool:
        """Whether it begins no moves, because it is paused or a brake holds it."""
        return self.state.is_paused or self.is_held

    def unheard(self, brokers: Iterable[int]) -> frozenset[int]:
        """Return the brokers whose room is neither known nor asked for in vain."""
        return frozenset(brokers) - self.disks.keys() - self.untold

    @property
    def moves_left(self) -> int:
        """The number of moves that have not ended in its direction."""
        counts, direction = self.counts, self.direction
        return counts.get(direction.pending, 0) + counts.get(direction.in_flight, 0)

    @property
    def counts(self) -> dict[MoveState, int]:
        """The number of moves in each state."""
        found: Counter[MoveState] = Counter()
        for part in self.stored.parts:
            if part.first in self.parts:
                found.update(self.parts[part.first].tally)
            else:
                found.update(states_of(part))
        found[MoveState.PENDING] += self.stored.moves - sum(found.values())
        return {state: found[state] for state in STATES if found[state]}

    @property
    def left(self) -> int:
        """The bytes that remain to be copied."""
        open_ = self.parts
        whole = sum(open_[part.first].left if part.first in open_ else part.left for part in self.stored.parts)
        return whole - sum(self.arrived(part.moves[number]) for part, number in self.flying)

    def arrived(self, move: Move) -> int:
        """Return the bytes of a move in flight that have been copied, as far as it is known."""
        return max(move.bytes - self.lacking.get(move.tp, move.bytes), 0)

    def lacks(self, lacking: Mapping[TopicPartition, int]) -> None:
        """Note the bytes that moves in flight lack. What an earlier controller had copied does not tell the rate."""
        self.lacking = dict(lacking)
        known = self.resumed & self.lacking.keys()
        self.resumed -= known
        moves = (part.moves[number] for part, number in self.flying)
        self.time_left.correct(sum(self.arrived(move) for move in moves if move.tp in known))

    def summarised(self, *, closes: Collection[int] = ()) -> tuple[StoredPart, ...]:
        """Return what its state says about its parts once some are closed."""
        found = []
        for part in self.stored.parts:
            is_closed = part.closed or part.first in closes
            open_ = self.parts.get(part.first)
            found.append(replace(part, closed=is_closed) if open_ is None else open_.summary(part, closed=is_closed))
        return tuple(found)

    def to_undo(self) -> tuple[StoredPart, ...]:
        """Return the same for an undo, which looks at all parts again that have moves to take back."""
        return tuple(to_undo(part) for part in self.summarised())

    def leave_out(self, fact: MoveLeftOut) -> None:
        """Leave a move to a later undo."""
        part = self.parts[fact.first]
        if fact.number not in part.left_out:
            self.time_left.correct(part.moves[fact.number].bytes)
        part.leave_out(fact.number)

    def see(self, fact: RolloutSeen) -> None:
        """Take what a look at the cluster has shown."""
        if self.looked is not None and not self.is_stopped:
            self.ran += fact.now - self.looked
        self.looked, self.under, self.is_look_due = fact.now, fact.under, False
        self.unthrottled = {}  # no watch fires when an ACL changes
        self.time_left.add(self.ran, self.left)
        if self.urgent != fact.urgent:
            self.urgent = fact.urgent
            left = set(fact.urgent)
            for part in self.parts.values():
                # There may be very many parts, and the urgent moves are among the first.
                numbers = [n for n in part.backlog.waiting() if part.moves[n].tp in left] if left else []
                left.difference_update(part.moves[n].tp for n in numbers)
                part.backlog.urge(numbers)

    def note(self, fact: RolloutFact) -> None:
        """Take a fact from which nothing else follows."""
        match fact:
            case MoveLeftOut():
                self.leave_out(fact)
            case MovedByHand():
                self.by_hand, self.by_hand_version = fact.partitions, fact.version
                self.by_hand_needed = max(self.by_hand_needed, fact.needed)
            case NotThrottled():
                self.unthrottled = {**self.unthrottled, **fact.faults}
            case RolloutSeen():
                self.see(fact)
