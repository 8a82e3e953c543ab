"""The time of a plan: before it starts, by its limits and throttle; while it runs, by the bytes copied so far."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping
from typing import Final

from attrs import define, field, frozen

from controller.rollout.choosing import Limits
from controller.rollout.moves import Move
from transport.metadata import NO_LEADER, TopicPartition

SHORTEST_SECONDS: Final = 10.0
"""The time before the rate is told: brokers tell what they have copied every few seconds."""

LONGEST_SECONDS: Final = 600.0
"""The time over which the rate is measured."""

MARKS: Final = 32
_TOLD_BY: Final = 0.05
"""The part of the bytes left that has to be copied before an estimate can be judged."""


@frozen
class Forecast:
    """The least that a plan needs: bytes to copy, windows of moves that are in flight together, and seconds.

    `seconds` is None without a throttle. `busiest` is the broker that receives or sends the most, None if nothing is
    copied.
    """

    bytes: int
    windows: int
    seconds: float | None
    busiest: int | None


def forecast(
    moves: Collection[Move], leaders: Mapping[TopicPartition, int], limits: Limits, throttle: int | None
) -> Forecast:
    """Return what moves need at least; a throttle is in bytes per second that a broker sends, and receives."""
    received: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    into: Counter[int] = Counter()
    out_of: Counter[int] = Counter()
    for move in moves:
        leader, size = leaders.get(move.tp, NO_LEADER), max(move.size, 0)
        if move.adding:
            out_of[leader] += 1
            sent[leader] += move.bytes
        for broker in move.adding:
            into[broker] += 1
            received[broker] += size
    busiest = max((received | sent).items(), key=lambda item: item[1], default=(None, 0))
    windows = max(
        _windows(max(into.values(), default=0), limits.into),
        _windows(max(out_of.values(), default=0), limits.out_of),
        _windows(len(moves), limits.in_all),
    )
    seconds = None if throttle is None else busiest[1] / throttle
    return Forecast(sum(received.values()), windows, seconds, busiest[0])


def _windows(count: int, at_once: int) -> int:
    return -(-count // at_once)


@define
class TimeLeft:
    """The time left, from the bytes left at moments of a clock that stands still while nothing may begin.

    Each estimate is kept, and judged by what was copied after it: so the time left has an error.
    """

    _marks: list[tuple[float, int, float | None]] = field(factory=list, init=False)
    """Moment, bytes left, and the estimate of then in seconds: over the whole time, by which estimates are judged."""

    _recent: deque[tuple[float, int]] = field(factory=deque, init=False)
    """Moment and bytes left, over the time by which the rate is measured."""

    _latest: tuple[float, int] = field(default=(0.0, 0), init=False)

    def add(self, now: float, left: int) -> None:
        """Note the bytes left; moments never decrease."""
        self._latest = now, left
        self._note_recent(now, left)
        least = 0.0 if not self._marks else (now - self._marks[0][0]) / MARKS
        if not self._marks or now - self._marks[-1][0] > least:
            self._marks.append((now, left, self.seconds))
        if len(self._marks) > 2 * MARKS:
            del self._marks[1::2]

    def _note_recent(self, now: float, left: int) -> None:
        if not self._recent or now - self._recent[-1][0] >= LONGEST_SECONDS / MARKS:
            self._recent.append((now, left))
        while len(self._recent) > 1 and now - self._recent[1][0] >= LONGEST_SECONDS:
            self._recent.popleft()

    def correct(self, left: int) -> None:
        """Take bytes out of what was left at all moments: they had been copied before the first one."""
        self._marks = [(moment, before - left, estimate) for moment, before, estimate in self._marks]
        self._recent = deque((moment, before - left) for moment, before in self._recent)
        self._latest = self._latest[0], self._latest[1] - left

    @property
    def rate(self) -> float | None:
        """The bytes per second over the last minutes; None if it is not known yet."""
        now, left = self._latest
        if not self._recent or now - self._recent[0][0] < SHORTEST_SECONDS:
            return None
        then, left_then = self._recent[0]
        return max(left_then - left, 0) / (now - then)

    @property
    def seconds(self) -> float | None:
        """The seconds left at this rate; None if it is not known, or nothing is copied."""
        rate = self.rate
        return self._latest[1] / rate if rate else None

    @property
    def error(self) -> float | None:
        """The average error of the estimates so far, as a part of the time.

        None if none can be judged yet, or if they were wrong by more than the whole: that tells nothing.
        """
        now, left = self._latest
        found = []
        for then, left_then, estimate in self._marks:
            copied = left_then - left
            if estimate and now > then and copied > _TOLD_BY * left_then:
                took = (now - then) * left_then / copied
                found.append(abs(estimate / took - 1))
        error = sum(found) / len(found) if found else None
        return None if error is None or error > 1 else error
