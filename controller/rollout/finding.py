"""Finding the moves of partitions among those of a plan, without looking at all of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from controller.rollout.moves import Move

_Topic = tuple[list[int], "array[int]"]


@frozen
class Finder:
    """The numbers of moves by topic: the partitions in order, and the number of the move of each."""

    _topics: Mapping[str, _Topic]

    @classmethod
    def of(cls, moves: Sequence[Move]) -> Finder:
        """Return a finder of moves."""
        topics: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
        for number, move in enumerate(moves):
            topics[move.topic].append(number)
        return cls({topic: _columns(moves, numbers) for topic, numbers in topics.items()})

    def numbers(self, wanted: Mapping[str, Iterable[int]]) -> Iterator[int]:
        """Yield the numbers of the moves of partitions, which are wanted by topic."""
        for topic, partitions in wanted.items():
            found = self._topics.get(topic)
            if found is not None:
                yield from _found(found, partitions)

    def of_topics(self, topics: Iterable[str]) -> Iterator[int]:
        """Yield the numbers of the moves of all partitions of topics."""
        for topic in topics:
            if topic in self._topics:
                yield from self._topics[topic][1]


def _columns(moves: Sequence[Move], numbers: Iterable[int]) -> _Topic:
    in_order = array("I", sorted(numbers, key=lambda number: moves[number].partition))
    return [moves[number].partition for number in in_order], in_order


def _found(topic: _Topic, wanted: Iterable[int]) -> Iterator[int]:
    partitions, numbers = topic
    for partition in wanted:
        yield from numbers[bisect_left(partitions, partition) : bisect_right(partitions, partition)]
