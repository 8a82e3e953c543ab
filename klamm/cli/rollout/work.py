"""The moves of one direction, forth or back: which wait, which are in flight, and how far these are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from attrs import define, field

from controller.rollout.backlog import Backlog
from controller.rollout.choosing import Choice, InFlight, Limits, Standing, choose, passed_over
from controller.rollout.moves import Move
from controller.rollout.states import Direction
from controller.rollout.waiting import Wait
from transport.messages import UNKNOWN, ReassignmentDescription
from transport.metadata import TopicPartition

STALLED_SECONDS: Final = 60.0
"""A move that copies nothing for so long is stuck."""


@define
class _Flight:
    """A move in flight: whether it has been seen so, its bytes left, when they were last fewer than before, its ISR."""

    move: Move
    is_seen: bool = False
    left: int = 0
    since: float = 0.0
    isr: tuple[int, ...] = ()

    def as_of(self, now: float, dead: Collection[int]) -> InFlight:
        """Return it for the choice of others; a move that has not been seen yet waits for no dead broker."""
        is_stalled = now - self.since > STALLED_SECONDS
        if not self.is_seen:
            return InFlight(self.move, is_stalled)
        return InFlight.of(self.move, lambda broker: broker not in dead, self.isr, is_stalled=is_stalled)


@define
class Work:
    """The moves of one direction."""

    direction: Direction
    moves: Sequence[Move]
    waits: Mapping[TopicPartition, Wait] = field(factory=dict)
    _backlog: Backlog = field(init=False)
    _numbers: dict[TopicPartition, int] = field(init=False)
    _flying: dict[TopicPartition, _Flight] = field(factory=dict)
    _waiting: set[TopicPartition] = field(factory=set)
    _waiting_bytes: int = 0

    def __attrs_post_init__(self) -> None:
        """All moves wait."""
        self._backlog = Backlog.of(self.moves)
        self._numbers = {move.tp: number for number, move in enumerate(self.moves)}
        self._waiting = set(self._numbers)
        self._waiting_bytes = sum(move.bytes for move in self.moves)

    def move(self, tp: TopicPartition) -> Move:
        """Return the move of a partition."""
        return self.moves[self._numbers[tp]]

    @property
    def in_flight(self) -> list[Move]:
        """The moves in flight."""
        return [flight.move for flight in self._flying.values()]

    @property
    def waiting(self) -> list[Move]:
        """The moves that have not begun."""
        return [self.moves[number] for number in self._backlog.waiting()]

    @property
    def receivers(self) -> set[int]:
        """The brokers to which moves that wait are to bring replicas."""
        return self._backlog.receivers

    @property
    def is_over(self) -> bool:
        """Whether no move is left."""
        return not self._flying and not len(self._backlog)

    @property
    def left(self) -> int:
        """The bytes that are still to be copied, as far as they are known."""
        return self._waiting_bytes + sum(flight.left for flight in self._flying.values())

    def is_waiting(self, tp: TopicPartition) -> bool:
        """Return whether the partition has a move that has not begun."""
        return tp in self._waiting

    def was_seen(self, tp: TopicPartition) -> bool:
        """Return whether the move of a partition has been seen in flight."""
        return tp in self._flying and self._flying[tp].is_seen

    def disown(self, moves: Iterable[Move]) -> None:
        """Note that moves are about to be cancelled: nobody else has done so if they are seen no more."""
        for move in moves:
            self._flying[move.tp].is_seen = False

    def choose(self, limits: Limits, standing: Standing, now: float) -> Choice:
        """Return the moves that begin next."""
        flying = [one.as_of(now, standing.dead) for one in self._flying.values()]
        received = Counter(broker for each in flying for broker in each.receivers)
        full = {broker for broker, count in received.items() if count >= limits.into}
        counted = (each.move for each in flying if each.receivers)
        is_stuck = passed_over(counted, limits, standing.leader, lambda broker: broker in standing.dead)
        numbers = self._backlog.candidates(lambda broker: broker not in full, is_stuck)
        choice = choose([self.moves[number] for number in numbers], flying, limits, standing)
        self.waits = choice.waits
        return choice

    def urge(self, partitions: Iterable[TopicPartition]) -> None:
        """Let the moves of these partitions come first."""
        self._backlog.urge(self._numbers[tp] for tp in partitions if tp in self._waiting)

    def begin(self, moves: Iterable[Move], now: float) -> None:
        """Note that moves begin."""
        for move in moves:
            self._take(move)
            self._flying[move.tp] = _Flight(move, left=move.bytes, since=now)

    def put_back(self, tp: TopicPartition) -> None:
        """Note that a move has not begun after all."""
        flight = self._flying.pop(tp, None)
        if flight is not None:
            self._backlog.put_back(self._numbers[tp])
            self._waiting.add(tp)
            self._waiting_bytes += flight.move.bytes

    def end(self, tp: TopicPartition) -> None:
        """Note that a move is over, or will never begin."""
        if self._flying.pop(tp, None) is None and tp in self._waiting:
            self._take(self.move(tp))

    def _take(self, move: Move) -> None:
        self._backlog.take(self._numbers[move.tp])
        self._waiting.remove(move.tp)
        self._waiting_bytes -= move.bytes

    def see(self, shown: Iterable[ReassignmentDescription], now: float) -> None:
        """Note how far moves in flight are."""
        for one in shown:
            flight = self._flying.get(one.tp)
            if flight is None:
                continue
            left = _left(one, flight.left)
            if left < flight.left or not flight.is_seen:
                flight.since = now
            flight.left, flight.is_seen, flight.isr = left, True, one.isr


def _left(move: ReassignmentDescription, before: int) -> int:
    """Return the bytes that a move still has to copy; what is not known is as before."""
    behind = [item for item in move.progress if item.broker in move.adding_replicas and not item.in_sync]
    if any(UNKNOWN in (item.log_bytes, item.leader_bytes) for item in behind):
        return before if behind else 0
    return sum(max(item.leader_bytes - item.log_bytes, 0) for item in behind)
