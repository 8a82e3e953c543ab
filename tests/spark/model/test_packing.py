"""Rows of partitions become blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spark_bridge.model.block import NOBODY, Block, name_hash
from spark_bridge.model.packing import blocks_of, hashes_of, pack

IDS = np.array([3, 10, 20], np.int32)
ROWS = [
    {"topic": "b", "partition": 10, "replicas": [20, 3], "bytes": 5, "bytes_in": None, "bytes_out": 7},
    {"topic": "b", "partition": 9, "replicas": [10], "bytes": None, "bytes_in": 2, "bytes_out": None},
    {"topic": "a", "partition": 0, "replicas": [3, 10, 20], "bytes": 1, "bytes_in": 1, "bytes_out": 1},
]
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", pa.list_(pa.int32())),
        ("bytes", pa.int64()),
        ("bytes_in", pa.int64()),
        ("bytes_out", pa.int64()),
    ]
)


def rows(count: int) -> pa.Table:
    """Return partitions of seven topics."""
    made = [{**ROWS[n % 3], "topic": f"t{n % 7}", "partition": n} for n in range(count)]
    return pa.Table.from_pylist(made, SCHEMA)


def test_rows_are_packed_in_the_order_of_names_with_brokers_as_indices_and_nothing_for_what_is_unknown() -> None:
    block = pack(pa.Table.from_pylist(ROWS, SCHEMA), IDS)
    assert block.topics == ("a", "b")
    assert block.topic.tolist() == [0, 1, 1]
    assert block.partition.tolist() == [0, 9, 10]
    assert block.before.tolist() == [[0, 1, 2], [1, NOBODY, NOBODY], [2, 0, NOBODY]]
    assert block.after is block.before
    assert block.weights.tolist() == [[1, 1, 1], [1, 0, 2], [1, 5, 0]]
    assert block.bytes_out.tolist() == [1, 0, 7]
    assert block.tie.tolist() == [name_hash("a", 0), name_hash("b", 9), name_hash("b", 10)]


def test_blocks_split_partitions_by_their_names_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", 50)
    blocks = list(blocks_of(rows(200), IDS))
    assert len(blocks) == 4
    for number, block in enumerate(blocks):
        assert {int(tie) % 4 for tie in block.tie} == {number}
        names = [(block.topics[t], p) for t, p in zip(block.topic.tolist(), block.partition.tolist(), strict=True)]
        assert names == sorted(names)
    assert sum(map(len, blocks)) == 200


def test_few_partitions_are_one_block_and_none_are_an_empty_one() -> None:
    assert [len(block) for block in blocks_of(rows(200), IDS)] == [200]
    (empty,) = blocks_of(rows(0), IDS)
    assert len(empty) == 0
    assert empty.before.shape == (0, 1)


def test_rows_in_many_chunks_are_packed_alike() -> None:
    whole, parts = rows(40), [rows(40).slice(n, 7) for n in range(0, 40, 7)]
    one, other = pack(whole, IDS), pack(pa.concat_tables(parts), IDS)
    assert np.array_equal(one.before, other.before)
    assert np.array_equal(one.weights, other.weights)
    assert np.array_equal(one.tie, other.tie)


def test_packing_agrees_with_blocks_made_of_lists() -> None:
    made = Block.of(
        [(row["topic"], row["partition"]) for row in ROWS],  # type: ignore[misc]
        [[IDS.tolist().index(b) for b in row["replicas"]] for row in ROWS],  # type: ignore[attr-defined]
        [5, 0, 1],
        [0, 2, 1],
        [7, 0, 1],
    )
    block = pack(pa.Table.from_pylist(ROWS, SCHEMA), IDS)
    assert block.topics == made.topics
    for name in ("topic", "partition", "before", "weights", "bytes_out", "tie"):
        assert np.array_equal(getattr(block, name), getattr(made, name))


def test_rows_of_a_table_have_the_hashes_of_their_names() -> None:
    names = [("t", 0), ("t", 10), ("t-1", 0), ("t", 10), ("größe", 2**31 - 1)]
    table = pa.Table.from_pylist([{**ROWS[0], "topic": topic, "partition": n} for topic, n in names], SCHEMA)
    assert hashes_of(table).tolist() == [name_hash(*name) for name in names]
