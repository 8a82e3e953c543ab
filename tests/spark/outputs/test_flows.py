"""Flows of replicas from broker to broker."""

from __future__ import annotations

import numpy as np
import pytest

from spark_bridge.engines.in_process import InProcess
from spark_bridge.kernel.flows import FLOWS, Flows
from spark_bridge.model.block import Block, padded
from spark_bridge.model.summary import Flow

IDS = np.array([10, 11, 12, 13, 14], np.int32)


def moved(before: list[list[int]], after: list[list[int]], size: list[int] | None = None) -> Block:
    """Return partitions that go from lists of broker indices to others."""
    size = size or [5] * len(before)
    block = Block.of([("t", n) for n in range(len(before))], before, size, size, size)
    return block.with_after(padded(after))


def pairs(block: Block) -> list[tuple[int, ...]]:
    rows = Flows(IDS)(block)
    assert rows.schema == FLOWS
    return [tuple(row.values()) for row in rows.to_pylist()]


@pytest.mark.parametrize(
    ("before", "after", "flows"),
    [
        ([0, 1], [0, 1], []),
        ([0, 1], [1, 0], []),
        ([0, 1], [2, 1], [(10, 12)]),
        # The first that is left goes to the first that is new, and so on.
        ([0, 1, 2], [3, 1, 4], [(10, 13), (12, 14)]),
        ([0, 1, 2], [4, 1, 3], [(10, 14), (12, 13)]),
        # What a greater factor adds comes from the preferred leader, also next to one that moves.
        ([1, 0], [1, 0, 2], [(11, 12)]),
        ([1], [1, 2, 3], [(11, 12), (11, 13)]),
        ([1, 0], [1, 2, 3], [(10, 12), (11, 13)]),
        # A lower factor moves nothing.
        ([0, 1, 2], [0], []),
        ([0, 1, 2], [0, 3], [(11, 13)]),
    ],
)
def test_each_new_replica_comes_from_one_that_goes(
    before: list[int], after: list[int], flows: list[tuple[int, int]]
) -> None:
    assert pairs(moved([before], [after])) == [(*flow, 1, 5) for flow in flows]


def test_lists_of_different_lengths_are_paired_alike() -> None:
    block = moved([[1, 0], [0]], [[1, 2], [0, 3, 4]])
    assert pairs(block) == [(10, 12, 1, 5), (10, 13, 1, 5), (10, 14, 1, 5)]


def test_equal_pairs_are_added_up() -> None:
    block = moved([[0, 1], [1, 0], [0, 1]], [[2, 1], [1, 2], [0, 3]], [10, 200, 7])
    assert pairs(block) == [(10, 12, 2, 210), (11, 13, 1, 7)]


def test_brokers_of_one_id_count_as_one() -> None:
    """Racks are asked for so: all brokers of a rack have its number for an id."""
    block = moved([[0, 2], [1, 2]], [[3, 2], [4, 2]], [10, 200])
    rows = InProcess([block]).flows(Flows(np.array([7, 7, 8, 9, 9], np.int32)), 10)
    assert rows == ([Flow(7, 9, 2, 210)], 0)


def test_the_greatest_are_told_in_order_and_the_rest_is_counted() -> None:
    blocks = [moved([[0], [1], [2]], [[1], [2], [3]], [10, 200, 200]), moved([[0], [3]], [[1], [4]], [500, 200])]
    told, left = InProcess(blocks).flows(Flows(IDS), 3)
    assert told == [Flow(10, 11, 2, 510), Flow(11, 12, 1, 200), Flow(12, 13, 1, 200)]
    assert left == 1


def test_a_block_without_moves_has_no_flows() -> None:
    assert pairs(Block.of([], [], [], [], [])) == []
