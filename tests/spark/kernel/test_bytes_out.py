from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from spark_bridge.kernel.bytes_out import OutRounds, OutView, even_bytes_out
from spark_bridge.model.block import Block


def blocks_of(lists: Sequence[Sequence[int]], read: Sequence[int], count: int = 1) -> list[Block]:
    """Deal partitions with their bytes out into blocks, one after the other."""
    parts = [range(n, len(lists), count) for n in range(count)]
    none = [[0] * len(rows) for rows in parts]
    return [
        Block.of([("t", n) for n in rows], [lists[n] for n in rows], zero, zero, [read[n] for n in rows])
        for rows, zero in zip(parts, none, strict=True)
    ]


def led(blocks: Sequence[Block], brokers: int) -> list[int]:
    leader = np.concatenate([b.after[:, 0] for b in blocks])
    return [int(count) for count in np.bincount(leader, minlength=brokers)]


def read_from(blocks: Sequence[Block], brokers: int) -> NDArray[np.int64]:
    total = np.zeros(brokers, np.int64)
    for block in blocks:
        np.add.at(total, block.after[:, 0], block.bytes_out)
    return total


def bounded(blocks: Sequence[Block], brokers: int, tolerance: float) -> OutView:
    load = read_from(blocks, brokers)
    lo, hi = (np.full(brokers, int(load.sum() / brokers * (1 + part))) for part in (-tolerance, tolerance))
    return OutView(load, lo, hi, np.ones(brokers, np.bool_))


def in_rounds(blocks: list[Block], view: OutView) -> list[Block]:
    rounds, load = OutRounds(view, len(blocks)), view.load
    while (now := rounds.view(load)) is not None:
        blocks = [even_bytes_out(b, now, np.ones(len(b), np.bool_), n) for n, b in enumerate(blocks)]
        before, load = load, read_from(blocks, len(load))
        assert np.all(beyond(load, view) <= beyond(before, view)), "a round takes nobody farther out of bounds"
    return blocks


def beyond(load: NDArray[np.int64], view: OutView) -> NDArray[np.int64]:
    return np.abs(load - np.clip(load, view.lo, view.hi))


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[Block], OutView]:
    rng = Random(draw(st.integers(0, 1 << 32)))
    brokers = draw(st.integers(2, 4))
    lists = [rng.sample(range(brokers), min(3, brokers)) for _ in range(draw(st.integers(2, 60)))]
    blocks = blocks_of(lists, [int(rng.expovariate(0.01)) for _ in lists], draw(st.integers(1, 4)))
    return blocks, bounded(blocks, brokers, draw(st.sampled_from([0.02, 0.1, 0.3])))


@given(inputs())
def test_all_lead_as_many_as_before_and_nobody_ends_farther_out_of_bounds(drawn: tuple[list[Block], OutView]) -> None:
    blocks, view = drawn
    after = in_rounds(blocks, view)
    brokers = len(view.load)
    assert led(after, brokers) == led(blocks, brokers)
    assert np.all(beyond(read_from(after, brokers), view) <= beyond(view.load, view))
    for a, b in zip(after, blocks, strict=True):
        assert [sorted(row) for row in a.after.tolist()] == [sorted(row) for row in b.after.tolist()]


@given(inputs())
def test_evening_again_changes_nothing(drawn: tuple[list[Block], OutView]) -> None:
    blocks, view = drawn
    after = in_rounds(blocks, view)
    again = in_rounds(after, evolve(view, load=read_from(after, len(view.load))))
    assert all(a is b for a, b in zip(again, after, strict=True))


@pytest.mark.parametrize("count", [1, 4])
def test_brokers_that_share_many_partitions_end_within_bounds(count: int) -> None:
    rng = Random(1)
    lists = [rng.sample(range(40), 3) for _ in range(8_000)]
    blocks = blocks_of(lists, [int(rng.expovariate(1e-6)) for _ in lists], count)
    view = bounded(blocks, 40, 0.05)
    assert beyond(view.load, view).any()
    assert not beyond(read_from(in_rounds(blocks, view), 40), view).any()


def test_what_is_read_most_changes_places_with_what_is_read_least() -> None:
    lists = [[0, 1], [0, 1], [1, 0], [1, 0]]
    blocks = blocks_of(lists, [90, 30, 50, 10])
    (after,) = in_rounds(blocks, evolve(bounded(blocks, 2, 0.05), lo=np.array([40, 40]), hi=np.array([100, 140])))
    assert after.after.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_a_swap_too_large_for_every_block_is_done_by_the_first_alone() -> None:
    # Broker 0 has 110 and shall have 95 to 105: one swap of 10 is right, and two would be too much.
    blocks = blocks_of([[0, 1], [0, 1], [1, 0], [1, 0]], [55, 55, 45, 45], 2)
    view = evolve(bounded(blocks, 2, 0.05), lo=np.array([95, 85]), hi=np.array([105, 105]))
    assert read_from(in_rounds(blocks, view), 2).tolist() == [100, 100]


@pytest.mark.parametrize("what", ["scope", "broker"])
def test_partitions_out_of_scope_and_brokers_that_may_not_lead_keep_their_leaders(what: str) -> None:
    (block,) = blocks_of([[0, 1], [1, 0]], [90, 10])
    view = evolve(bounded([block], 2, 0.05), lo=np.array([0, 0]), hi=np.array([89, 99]))
    free = np.ones(2, np.bool_)
    held = np.array([True, False])
    assert even_bytes_out(block, view, free) is not block
    if what == "scope":
        assert even_bytes_out(block, view, held) is block
    else:
        assert even_bytes_out(block, evolve(view, may_lead=held), free) is block
