"""The reason why a partition gets another replica list."""

from __future__ import annotations

import numpy as np

from spark_bridge.model.block import NOBODY, Block, padded
from spark_bridge.outputs.reasons import Marks, Reason, reasons_of

# Six brokers in three racks; ids are ten times the index.
IDS = np.arange(0, 60, 10, dtype=np.int32)
RACK = np.array([0, 0, 1, 1, 2, 2], np.int32)
ONE_IN_A_RACK = np.array([0, 1, 1, 1, 2], np.int32)


def marks(leaving: tuple[int, ...] = (), relieved: tuple[int, ...] = ()) -> Marks:
    numbers = np.arange(len(IDS))
    return Marks(np.isin(numbers, leaving), np.isin(numbers, relieved), RACK, ONE_IN_A_RACK)


def told(before: list[int], after: list[int], about: Marks) -> str:
    """Return the reason of a partition that is neither the first nor the widest of its block."""
    lists = [[0, 2], before, [0, 2, 4, 5]]
    block = Block.of([("a", 0), ("b", 1), ("c", 2)], lists, [1, 1, 1], [0, 0, 0], [0, 0, 0])
    block = block.with_after(padded([lists[0], after, lists[2]]))
    unchanged, text, unchanged_too = reasons_of(block, about).texts(IDS).to_pylist()
    assert unchanged == unchanged_too == ""
    return str(text)


def test_a_partition_that_stays_as_it_is_has_none() -> None:
    assert told([0, 2, 4], [0, 2, 4], marks(leaving=(5,))) == ""


def test_a_replica_on_a_broker_that_is_emptied_leaves_it() -> None:
    assert told([0, 3, 4], [0, 2, 4], marks(leaving=(3,))) == "leaves broker 30"


def test_of_two_emptied_brokers_the_first_in_the_list_is_named() -> None:
    assert told([4, 3, 0], [5, 2, 0], marks(leaving=(3, 4))) == "leaves broker 40"


def test_a_longer_or_a_shorter_list_is_one_of_the_replication_factor() -> None:
    assert told([0, 2], [0, 2, 4], marks()) == "replication factor"
    assert told([0, 2, 4], [0, 2], marks()) == "replication factor"


def test_leaving_a_broker_is_more_pressing_than_the_replication_factor() -> None:
    assert told([0, 3, 4], [0, 4], marks(leaving=(3,))) == "leaves broker 30"


def test_a_move_that_spreads_a_partition_over_racks_is_one_of_racks() -> None:
    assert told([0, 1, 4], [0, 2, 4], marks()) == "racks"


def test_a_move_between_racks_that_were_in_order_is_one_of_balance() -> None:
    assert told([0, 2], [0, 4], marks()) == "balance"
    assert told([0, 1, 4], [2, 3, 4], marks()) == "balance"


def test_lists_that_were_longer_before_leave_the_reasons_of_the_others_alone() -> None:
    block = Block.of([("a", 0), ("a", 1)], [[0, 2], [0, 1, 2, 4]], [1, 1], [0, 0], [0, 0])
    reasons = reasons_of(block.with_after(padded([[0, 4], [0, 2]])), marks())
    assert reasons.kind.tolist() == [Reason.BALANCE, Reason.REPLICATION_FACTOR]


def test_a_move_off_a_broker_that_is_relieved_names_it() -> None:
    assert told([0, 2, 4], [0, 3, 4], marks(relieved=(2,))) == "relieves broker 20"
    assert told([0, 2, 4], [1, 2, 4], marks(relieved=(2,))) == "balance"


def test_another_order_is_one_of_the_preferred_leader() -> None:
    assert told([0, 2, 4], [2, 0, 4], marks(relieved=(2,))) == "preferred leader"


def test_no_partitions_have_no_reasons() -> None:
    block = Block.of([], [], [], [], [])
    assert len(reasons_of(block, marks()).kind) == 0
    assert reasons_of(block, marks()).texts(IDS).to_pylist() == []


def test_a_broker_is_named_by_index_until_it_is_told() -> None:
    block = Block.of([("a", 0), ("a", 1)], [[1, 3], [1, 4]], [1, 1], [0, 0], [0, 0])
    reasons = reasons_of(block.with_after(padded([[1, 5], [4, 1]])), marks(leaving=(3,)))
    assert reasons.kind.tolist() == [Reason.LEAVES, Reason.PREFERRED_LEADER]
    assert reasons.broker.tolist() == [3, NOBODY]
