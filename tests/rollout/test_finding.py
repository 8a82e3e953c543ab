"""Moves of partitions are found without looking at all of a plan."""

from __future__ import annotations

from random import Random

from controller.rollout.finding import Finder
from controller.rollout.moves import Move


def test_what_is_found_are_the_moves_of_the_partitions() -> None:
    draw = Random(1)
    tps = [(topic, partition) for topic in "abc" for partition in range(30)]
    planned = draw.sample(tps, 60)
    finder = Finder.of([Move(topic, partition, (1,), (2,)) for topic, partition in planned])
    wanted = {topic: draw.sample(range(-1, 40), 20) for topic in "bcd"}
    expected = {n for n, (topic, partition) in enumerate(planned) if partition in wanted.get(topic, ())}
    found = list(finder.numbers(wanted))
    assert (set(found), len(found)) == (expected, len(expected))


def test_both_moves_are_found_of_a_partition_that_a_damaged_plan_names_twice() -> None:
    moves = [Move("t", 1, (1,), (2,)), Move("t", 0, (1,), (2,)), Move("t", 1, (2,), (1,))]
    assert list(Finder.of(moves).numbers({"t": [1]})) == [0, 2]
