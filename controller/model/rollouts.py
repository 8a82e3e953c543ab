"""The rollouts that the controller carries out, as it holds them: states, open parts of plans, uploads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from attrs import Factory, define, field
from msgspec.structs import replace

from controller.model.rollout_facts import (
    MovedByHand,
    MovedByHandSifted,
    MoveLeftOut,
    MovesChosen,
    MovesMarked,
    PartOpened,
    PartsClosed,
    RolloutFact,
    RolloutGone,
    RolloutSeen,
    RolloutsSettled,
    RolloutUnusable,
    RolloutWritten,
    RoomTold,
    Sifting,
    SignalSeen,
    Under,
    Upload,
    UploadGrown,
)
from controller.model.rollout_parts import STATES, Part, direction_of, is_of_use, states_of, to_undo
from controller.rollout.forecast import TimeLeft
from controller.rollout.moves import Move
from controller.rollout.room import Disk
from controller.rollout.states import Direction, HeldBy, MoveState, Phase, RolloutState
from controller.rollout.waiting import Wait
from transport.metadata import TopicPartition
from transport.store.rollouts import StoredPart, StoredRollout

_NOT_COPIED: Final = frozenset({MoveState.OVERRIDDEN, MoveState.SKIPPED, MoveState.FAILED, MoveState.DELETED})
_IN_FLIGHT: Final = frozenset({MoveState.IN_FLIGHT, MoveState.GOING_BACK})


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
    """The moment of the last look, of a clock that nobody sets."""

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


@define
class Rollouts:
    """The rollouts of a controllership."""

    by_name: dict[str, Rollout] = Factory(dict)
    unusable: dict[str, str] = Factory(dict)
    """The rollouts that are quarantined, by name, and why: nothing is done for them until an operator removes them."""

    uploads: dict[str, Upload] = Factory(dict)
    flying: dict[TopicPartition, tuple[str, int, int]] = Factory(dict)
    """The moves in flight: rollout, part and number."""

    is_stirred: bool = False
    """Whether something has happened from which the current rollout may go on."""

    @property
    def queue(self) -> list[Rollout]:
        """The rollouts that are not over: the first is carried out, the others wait for it."""
        waiting = [one for one in self.by_name.values() if not one.state.is_over]
        return sorted(waiting, key=lambda one: one.stored.number)

    @property
    def current(self) -> Rollout | None:
        """The rollout that is carried out."""
        return next(iter(self.queue), None)

    @property
    def still_throttled(self) -> list[Rollout]:
        """The rollouts that are over, and may have left rates of brokers behind."""
        return [one for one in self.by_name.values() if one.state.is_over and one.stored.throttled]

    @property
    def asked(self) -> frozenset[int]:
        """The brokers that are asked for the room on their disks."""
        current = self.current
        return frozenset() if current is None or current.state.is_paused else current.asked

    @property
    def awaited(self) -> frozenset[int]:
        """The brokers among them that moves wait for to answer."""
        return self.current.unheard(self.asked) if self.current is not None else frozenset()

    def stir(self, tp: TopicPartition | None = None) -> None:
        """Note that a move in flight may have ended or, without a partition, that brokers have changed."""
        if (tp in self.flying) if tp is not None else self.by_name:
            self.is_stirred = True

    def stir_topic(self, name: str) -> None:
        """Note that a topic is gone, or about to go."""
        for rollout in self.by_name.values():
            if any(name in part.topic_ids for part in rollout.parts.values()):
                # Its moves that wait are looked at as well.
                rollout.is_look_due = self.is_stirred = True

    def open_moves(self, tps: Collection[TopicPartition]) -> Iterator[tuple[Rollout, Part, int]]:
        """Yield the moves of partitions that wait or are in flight, or may still be taken back, in open parts."""
        wanted: defaultdict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(tps):
            wanted[topic].append(partition)
        for rollout in self.by_name.values():
            for part in rollout.parts.values():
                states = {part.direction.pending, part.direction.in_flight, MoveState.DONE}
                numbers = part.numbers(wanted)
                yield from ((rollout, part, number) for number in numbers if part.state(number) in states)

    def take(self, fact: RolloutFact | RolloutsSettled) -> None:
        """Take a fact about rollouts."""
        match fact:
            case RolloutsSettled():
                self.is_stirred = False
            case RolloutWritten():
                self._written(fact)
            case UploadGrown():
                self.uploads[fact.name] = fact.upload
            case RolloutGone():
                self._gone(fact.name)
            case RolloutUnusable():
                self._gone(fact.name)
                # The next one of the queue may go on.
                self.unusable[fact.name], self.is_stirred = fact.fault, True
            case _ if fact.name not in self.by_name:
                pass  # earlier in the same event, its znodes were found removed, or it was quarantined
            case MovedByHandSifted():
                self.by_name[fact.name].sifting, self.is_stirred = fact.sifting, True
            case _:
                self._of_known(fact)

    def _gone(self, name: str) -> None:
        self.uploads.pop(name, None)
        self.unusable.pop(name, None)
        self._forget(name, None)
        self.by_name.pop(name, None)

    def _written(self, fact: RolloutWritten) -> None:
        self.uploads.pop(fact.name, None)
        known = self.by_name.get(fact.name)
        if known is None:
            self.by_name[fact.name] = Rollout(fact.name, fact.stored, fact.version)
        else:
            before = known.direction
            known.stored, known.version = fact.stored, fact.version
            if known.direction is not before:
                known.time_left = TimeLeft()  # what was copied forth says nothing of the way back
            if known.state.is_over:
                known.asked, known.disks, known.untold = frozenset(), {}, frozenset()
        self.is_stirred = True

    def _of_known(self, fact: RolloutFact) -> None:
        rollout = self.by_name[fact.name]
        match fact:
            case PartOpened():
                self._opened(rollout, fact.part)
            case PartsClosed():
                self._forget(fact.name, fact.firsts)
            case MovesMarked():
                self._marked(rollout, fact)
            case MoveLeftOut():
                _leave_out(rollout, fact)
            case MovedByHand():
                rollout.by_hand, rollout.by_hand_version = fact.partitions, fact.version
                rollout.by_hand_needed = max(rollout.by_hand_needed, fact.needed)
            case RolloutSeen():
                _see(rollout, fact)
            case RoomTold():
                self._told(rollout, fact)
            case SignalSeen():
                self.is_stirred = self.is_stirred or rollout.signal != fact.text
                rollout.signal = fact.text
            case MovesChosen():
                rollout.waits, rollout.asked, rollout.is_held = fact.waits, fact.asks, fact.is_held
                rollout.behind = fact.behind
                self.is_stirred = self.is_stirred or fact.are_more

    def _told(self, rollout: Rollout, fact: RoomTold) -> None:
        awaited = rollout.unheard(rollout.asked)
        rollout.disks, rollout.untold, rollout.landed = fact.disks, fact.untold, []
        rollout.lacks(fact.lacking)
        self.is_stirred = self.is_stirred or bool(awaited - rollout.unheard(awaited))

    def _opened(self, rollout: Rollout, part: Part) -> None:
        rollout.parts = dict(sorted({**rollout.parts, part.first: part}.items()))
        for number in part.flying:
            self.flying[part.moves[number].tp] = rollout.name, part.first, number
        rollout.resumed.update(part.moves[number].tp for number in part.flying)
        rollout.is_look_due = True

    def _forget(self, name: str, firsts: tuple[int, ...] | None) -> None:
        rollout = self.by_name.get(name)
        if rollout is None:
            return
        for first in list(rollout.parts) if firsts is None else firsts:
            rollout.parts.pop(first, None)
        gone = [tp for tp, (of, first, _) in self.flying.items() if of == name and first not in rollout.parts]
        for tp in gone:
            del self.flying[tp]

    def _marked(self, rollout: Rollout, fact: MovesMarked) -> None:
        part = rollout.parts[fact.first]
        part.version = fact.version
        for number, (state, why) in fact.changes.items():
            if rollout.disks and number in part.flying and state is part.direction.ended:
                rollout.landed.append(part.moves[number])
            if state in _NOT_COPIED:
                rollout.time_left.correct(part.moves[number].bytes - rollout.arrived(part.moves[number]))
            part.mark(number, state, why)
            tp = part.moves[number].tp
            rollout.lacking.pop(tp, None)
            if state in _IN_FLIGHT:
                self.flying[tp] = rollout.name, part.first, number
            else:
                self.flying.pop(tp, None)


def _leave_out(rollout: Rollout, fact: MoveLeftOut) -> None:
    part = rollout.parts[fact.first]
    if fact.number not in part.left_out:
        rollout.time_left.correct(part.moves[fact.number].bytes)
    part.leave_out(fact.number)


def _see(rollout: Rollout, fact: RolloutSeen) -> None:
    runs = not rollout.is_stopped
    if rollout.looked is not None and runs:
        rollout.ran += fact.now - rollout.looked
    rollout.looked, rollout.under, rollout.is_look_due = fact.now, fact.under, False
    rollout.time_left.add(rollout.ran, rollout.left)
    if rollout.urgent != fact.urgent:
        rollout.urgent = fact.urgent
        left = set(fact.urgent)
        for part in rollout.parts.values():
            # There may be very many parts, and the urgent moves are among the first.
            numbers = [n for n in part.backlog.waiting() if part.moves[n].tp in left] if left else []
            left.difference_update(part.moves[n].tp for n in numbers)
            part.backlog.urge(numbers)
