"""The moves of a rollout that have not begun, in lanes.

A lane has the moves whose first new replica goes to the same broker, in the order of the plan, as four bytes each. So
a slow broker holds up its own lane, whose first moves are all that is looked at, and no other. What is taken out of a
lane is a position, before which no move waits, and the few places behind it that were taken out of order.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from attrs import Factory, define, field

from controller.rollout.moves import Move

WIDTH: Final = 1_000
"""The moves that are looked at in one choice, as long as a lane has no fewer than LEAST of them."""

LEAST: Final = 4

NO_COPY: Final = -1
"""The lane of moves that copy nothing."""


@define
class Lane:
    """The moves of a lane, by their numbers in the plan."""

    numbers: array[int] = field(factory=lambda: array("I"))
    position: int = 0
    ahead: set[int] = field(factory=set)

    def waiting(self) -> Iterator[int]:
        """Yield the numbers of the moves that have not begun."""
        for place in range(self.position, len(self.numbers)):
            if place not in self.ahead:
                yield self.numbers[place]

    def take(self, number: int) -> None:
        """Note that a move has begun."""
        self.ahead.add(self._place(number))
        while self.position in self.ahead:
            self.ahead.remove(self.position)
            self.position += 1

    def put_back(self, number: int) -> None:
        """Note that a move that had begun waits again."""
        place = self._place(number)
        if place < self.position:
            self.ahead.update(range(place + 1, self.position))
            self.position = place
        self.ahead.discard(place)

    def __len__(self) -> int:
        """Return how many moves wait."""
        return len(self.numbers) - self.position - len(self.ahead)

    def _place(self, number: int) -> int:
        return bisect_left(self.numbers, number)


@define
class Backlog:
    """The moves of a plan, by number, and which of them wait."""

    moves: Sequence[Move]
    _lanes: dict[int, Lane] = field(factory=dict)
    _urgent: dict[int, None] = Factory(dict)
    """Numbers of moves that come first, wherever they are in their lanes."""

    @classmethod
    def of(cls, moves: Sequence[Move]) -> Backlog:
        """Return the backlog of moves that all wait."""
        backlog = cls(moves)
        for number, move in enumerate(moves):
            backlog._lanes.setdefault(lane_of(move), Lane()).numbers.append(number)
        return backlog

    def __len__(self) -> int:
        """Return how many moves wait."""
        return sum(map(len, self._lanes.values()))

    @property
    def sizes(self) -> dict[int, int]:
        """The number of moves that wait, by lane."""
        return {broker: len(lane) for broker, lane in self._lanes.items()}

    @property
    def receivers(self) -> set[int]:
        """The brokers to whose lanes moves belong that wait."""
        return {broker for broker, lane in self._lanes.items() if len(lane) and broker != NO_COPY}

    def count(self, is_open: Callable[[int], bool]) -> int:
        """Return how many moves wait in the lanes to brokers for which `is_open` is true."""
        return sum(len(lane) for broker, lane in self._lanes.items() if is_open(broker))

    def waiting(self) -> Iterator[int]:
        """Yield the numbers of all moves that wait."""
        for lane in self._lanes.values():
            yield from lane.waiting()

    def able(self, is_open: Callable[[int], bool], is_stuck: Callable[[Move], bool]) -> Iterator[int]:
        """Yield the numbers of moves that wait in open lanes, and are not stuck."""
        for broker, lane in self._lanes.items():
            if is_open(broker):
                yield from (number for number in lane.waiting() if not is_stuck(self.moves[number]))

    def urge(self, numbers: Iterable[int]) -> None:
        """Let moves come first that are urgent, and no others."""
        self._urgent = dict.fromkeys(sorted(numbers))

    def take(self, number: int) -> None:
        """Take out a move that begins, or never will."""
        self._urgent.pop(number, None)
        self._lanes[lane_of(self.moves[number])].take(number)

    def put_back(self, number: int) -> None:
        """Put back a move that had been taken out."""
        self._lanes[lane_of(self.moves[number])].put_back(number)

    def candidates(
        self,
        is_open: Callable[[int], bool] = lambda _: True,
        is_stuck: Callable[[Move], bool] = lambda _: False,
        width: int = WIDTH,
    ) -> list[int]:
        """Return the moves that may begin next: urgent ones first, then by their order in the plan.

        Of a lane to whose broker nothing can begin, the first one is still there, so that what it waits for is known.
        So is the first one of a lane that is stuck for another reason; those behind it that are, too, are passed over.
        """
        depth = max(width // max(len(self._lanes), 1), LEAST)
        urgent = list(islice(self._urgent, width))
        lanes = [
            self._first_of(lane, depth, is_stuck) if is_open(broker) else islice(lane.waiting(), 1)
            for broker, lane in self._lanes.items()
        ]
        return [*urgent, *(number for number in heapq.merge(*lanes) if number not in self._urgent)]

    def _first_of(self, lane: Lane, count: int, is_stuck: Callable[[Move], bool]) -> list[int]:
        """Return the first moves of a lane that are not stuck, and the first one that is."""
        able: list[int] = []
        stuck: list[int] = []
        for number in lane.waiting():
            if not is_stuck(self.moves[number]):
                able.append(number)
            elif not stuck:
                stuck.append(number)
            if len(able) == count:
                break
        return sorted([*able, *stuck])


def lane_of(move: Move) -> int:
    """Return the lane of a move: the first broker that receives a replica, or NO_COPY."""
    before = move.before
    return next((broker for broker in move.after if broker not in before), NO_COPY)
