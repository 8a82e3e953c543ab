"""The open parts of a rollout's plan.

A plan is read part by part, as the rollout gets there: a part is open from then until its last move is over. The marks
of a part are the states of its moves, a byte for each, in memory as in the store. So a new controller reads the state
of a rollout and the marks of its open parts, and of the plan only these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import Factory, define, field
from msgspec.structs import replace

from controller.rollout.backlog import Backlog
from controller.rollout.finding import Finder
from controller.rollout.judging import TOPIC_DELETED
from controller.rollout.moves import Move, interned
from controller.rollout.states import BACK, FORTH, Direction, MoveState, Phase
from transport.messages import RolloutMove
from transport.store.rollouts import StoredMarks, StoredPart

CODES: Final = (
    MoveState.PENDING,
    MoveState.IN_FLIGHT,
    MoveState.DONE,
    MoveState.OVERRIDDEN,
    MoveState.SKIPPED,
    MoveState.FAILED,
    MoveState.GOING_BACK,
    MoveState.BACK,
)
"""The states of moves, by the bytes that stand for them in the store.

DELETED is not among them: earlier releases fail at a byte beyond these. A move of a deleted topic is stored as FAILED,
with TOPIC_DELETED as its reason, and in the tally of a part it counts as failed, and apart as deleted.
"""

STATES: Final = (*CODES, MoveState.DELETED)
"""The states of moves, by the bytes that stand for them in memory."""

_CODE: Final = {state: code for code, state in enumerate(STATES)}
_STORED: Final = bytes([*range(len(CODES)), _CODE[MoveState.FAILED]]).ljust(256, b"\0")
"""The bytes in the store for those in memory."""


def direction_of(phase: Phase) -> Direction:
    """Return the direction in which a rollout moves in a phase."""
    return BACK if phase in {Phase.UNDOING, Phase.UNDONE} else FORTH


@define
class Part:
    """An open part of a plan, in one direction. Its moves have numbers from 0."""

    first: int
    moves: Sequence[Move]
    topic_ids: Mapping[str, str]
    direction: Direction
    version: int
    """The dataVersion of its marks; -1 if there are none in the store."""

    why: dict[int, str] = Factory(dict)
    left_out: dict[int, None] = Factory(dict)
    """Moves that wait for another undo, as their original replicas are dead."""

    tally: Counter[MoveState] = field(factory=Counter)
    left: int = 0
    """The bytes that remain to be copied."""

    brokers: frozenset[int] = frozenset()
    """The brokers that are to have replicas after the moves."""

    flying: dict[int, None] = Factory(dict)
    """The moves in flight."""

    _marks: bytearray = field(factory=bytearray)
    _backlog: Backlog = field(init=False)
    _finder: Finder = field(init=False)

    @classmethod
    def of(
        cls, stored: StoredPart, planned: Sequence[RolloutMove], marks: StoredMarks | None, version: int, to: Phase
    ) -> Part:
        """Return the part whose moves and marks are in the store."""
        forth = interned(Move(move.topic, move.partition, move.before, move.after, move.size) for move in planned)
        direction = direction_of(to)
        moves = list(forth) if direction is FORTH else [move.reversed for move in forth]
        found = bytearray(len(moves)) if marks is None else bytearray(marks.marks)
        why = {} if marks is None else dict(marks.why)
        for number, text in why.items():
            if text == TOPIC_DELETED and found[number] == _CODE[MoveState.FAILED]:
                found[number] = _CODE[MoveState.DELETED]
        ids = {move.topic: move.topic_id for move in planned}
        part = cls(stored.first, moves, ids, direction, version, why=why, marks=found)
        part._count(stored.bytes)
        return part

    def _count(self, size: int) -> None:
        marks = self._marks
        self.tally.update({state: count for code, state in enumerate(STATES) if (count := marks.count(code))})
        self._backlog, self._finder = Backlog.of(self.moves), Finder.of(self.moves)
        pending, due = _CODE[self.direction.pending], {_CODE[self.direction.pending], _CODE[self.direction.in_flight]}
        for number in [number for number, code in enumerate(marks) if code != pending]:
            self._backlog.take(number)
        self.flying = dict.fromkeys(self.in_states({self.direction.in_flight}))
        self.brokers = frozenset(broker for replicas in {move.after for move in self.moves} for broker in replicas)
        waiting = [number for number, code in enumerate(marks) if code in due]
        is_whole = len(waiting) == len(marks)
        self.left = size if is_whole else sum(self.moves[number].bytes for number in waiting)

    def _is_due(self, state: MoveState) -> bool:
        return state in (self.direction.pending, self.direction.in_flight)

    @property
    def is_forth(self) -> bool:
        """Whether its moves are those of the plan, and not the way back."""
        return self.direction is FORTH

    def state(self, number: int) -> MoveState:
        """Return the state of a move."""
        return STATES[self._marks[number]]

    def mark(self, number: int, state: MoveState, why: str = "") -> None:
        """Note the state of a move."""
        before = self.state(number)
        _note(self.why, number, why)
        if before is state:
            return
        self._marks[number] = _CODE[state]
        self.flying.pop(number, None)
        if state is self.direction.in_flight:
            self.flying[number] = None
        self.tally[before] -= 1
        self.tally[state] += 1
        if number in self.left_out:
            return  # it was taken out already
        self.left += (self._is_due(state) - self._is_due(before)) * self.moves[number].bytes
        if before is self.direction.pending:
            self._backlog.take(number)
        elif state is self.direction.pending:
            self._backlog.put_back(number)

    def leave_out(self, number: int) -> None:
        """Let a move be, for now."""
        if number not in self.left_out:
            self.left_out[number] = None
            self.left -= self.moves[number].bytes
            self._backlog.take(number)

    def stored(self, changes: Mapping[int, tuple[MoveState, str]]) -> StoredMarks:
        """Return the marks with changes, as they are stored."""
        marks = bytearray(self._marks)
        for number, (state, _) in changes.items():
            marks[number] = _CODE[state]
        why = dict(self.why)
        for number, (_, text) in changes.items():
            _note(why, number, text)
        return StoredMarks(bytes(marks).translate(_STORED), why)

    def waiting_of(self, topics: Collection[str]) -> list[int]:
        """Return the moves of topics that wait."""
        return [number for number in self._finder.of_topics(topics) if self.state(number) is self.direction.pending]

    @property
    def backlog(self) -> Backlog:
        """The moves that wait."""
        return self._backlog

    def numbers(self, wanted: Mapping[str, Iterable[int]]) -> Iterator[int]:
        """Yield the numbers of the moves of partitions, which are wanted by topic."""
        return self._finder.numbers(wanted)

    def in_states(self, states: Iterable[MoveState]) -> list[int]:
        """Return the moves that are in one of these states."""
        codes = {_CODE[state] for state in states}
        return [number for number, mark in enumerate(self._marks) if mark in codes]

    @property
    def is_over(self) -> bool:
        """Whether no move waits, and none is in flight."""
        return not len(self._backlog) and not self.flying

    def summary(self, part: StoredPart, *, closed: bool) -> StoredPart:
        """Return what the state of the rollout says about the part."""
        counts = self.tally.copy()
        deleted = counts.pop(MoveState.DELETED, 0)
        counts[MoveState.FAILED] += deleted
        tally = {state.value: count for state, count in counts.items() if count and state is not MoveState.PENDING}
        return replace(part, left=self.left, opened=True, closed=closed, tally=tally, deleted=deleted)


def _note(why: dict[int, str], number: int, text: str) -> None:
    if text:
        why[number] = text
    else:
        why.pop(number, None)


def states_of(part: StoredPart) -> Counter[MoveState]:
    """Return how many moves of a part that is not in memory are in each state but pending."""
    found = Counter({MoveState(state): count for state, count in part.tally.items()})
    found[MoveState.DELETED] += part.deleted
    found[MoveState.FAILED] -= part.deleted
    return found


def is_of_use(part: StoredPart) -> bool:
    """Return whether moves of a part that is not in memory may still begin, or be taken back."""
    return not part.closed or bool(part.tally.get(MoveState.DONE.value))


def to_undo(part: StoredPart) -> StoredPart:
    """Return a part as an undo finds it: to be looked at again if it has moves to take back."""
    done = part.tally.get(MoveState.DONE.value, 0)
    # Which of its moves these are, and how many bytes they have, is known when it is opened.
    return replace(part, opened=False, closed=not done, left=part.bytes * done // max(part.moves, 1))
