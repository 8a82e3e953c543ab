"""A plan's files: named after their contents, and written completely or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from klamm.cli.reassignment.files import read_document
from spark_bridge.errors import PlanError
from spark_bridge.model.block import Block, padded
from spark_bridge.outputs.files import claim_folder, write_plan
from spark_bridge.outputs.reasons import Marks, reasons_of
from spark_bridge.outputs.rows import SCHEMA, plan_rows
from transport.metadata import TopicPartition

MARKS = Marks(
    must_leave=np.array([False, True, False, False]),
    relieved=np.zeros(4, np.bool_),
    rack=np.arange(4, dtype=np.int32),
    rack_limit=np.array([0, 1, 1, 2], np.int32),
)


@pytest.fixture
def rows() -> pa.RecordBatch:
    """Make the rows of a plan that takes broker 20 out of two partitions of three."""
    block = Block.of([("a", 0), ("a", 1), ("b", 0)], [[0, 1], [2, 3], [1, 2]], [5, 6, 7], [0, 0, 0], [0, 0, 0])
    block = block.with_after(padded([[0, 3], [2, 3], [0, 2]]))
    return plan_rows(block, np.array([10, 20, 30, 40], np.int32), reasons_of(block, MARKS))


def test_a_row_tells_old_and_new_brokers_the_reason_and_the_size(rows: pa.RecordBatch) -> None:
    assert rows.schema == SCHEMA
    assert rows.to_pylist() == [
        {"topic": "a", "partition": 0, "before": [10, 20], "after": [10, 40], "reason": "leaves broker 20", "bytes": 5},
        {"topic": "b", "partition": 0, "before": [20, 30], "after": [10, 30], "reason": "leaves broker 20", "bytes": 7},
    ]


def test_a_small_plan_is_one_file_and_its_way_back(rows: pa.RecordBatch, tmp_path: Path) -> None:
    files = write_plan([rows], tmp_path)
    assert [file.name for file in files] == ["plan.json", "plan.parquet", "rollback.json"]
    assert sorted(tmp_path.iterdir()) == list(files)
    assert read_document(files[0]).targets == {TopicPartition("a", 0): (10, 40), TopicPartition("b", 0): (10, 30)}
    assert read_document(files[2]).targets == {TopicPartition("a", 0): (10, 20), TopicPartition("b", 0): (20, 30)}
    assert pq.read_table(files[1]).to_pylist() == rows.to_pylist()


def test_a_large_plan_is_numbered_and_its_part_is_in_every_name(rows: pa.RecordBatch, tmp_path: Path) -> None:
    files = write_plan([rows], tmp_path, part="00007", limit=100)
    assert [file.name for file in files] == [
        "plan-00007-0001.json",
        "plan-00007-0002.json",
        "plan-00007.parquet",
        "rollback-00007-0001.json",
        "rollback-00007-0002.json",
    ]
    assert read_document(files[1]).targets.keys() == read_document(files[4]).targets.keys() == {TopicPartition("b", 0)}


def test_a_plan_that_changes_nothing_has_nothing_to_execute(rows: pa.RecordBatch, tmp_path: Path) -> None:
    assert [file.name for file in write_plan([rows.slice(0, 0)], tmp_path)] == ["plan.parquet"]
    assert pq.read_schema(tmp_path / "plan.parquet") == SCHEMA


def test_rows_that_end_early_leave_nothing_behind(rows: pa.RecordBatch, tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield rows
        raise PlanError("the worker lost its input")

    with pytest.raises(PlanError, match="lost its input"):
        write_plan(broken(), tmp_path, limit=100)
    assert list(tmp_path.iterdir()) == []


def test_writing_a_part_once_more_gives_the_same_files(rows: pa.RecordBatch, tmp_path: Path) -> None:
    once = {file: file.read_bytes() for file in write_plan([rows], tmp_path, part="00000")}
    assert {file: file.read_bytes() for file in write_plan([rows], tmp_path, part="00000")} == once
    assert sorted(tmp_path.iterdir()) == list(once)


def test_a_folder_that_cannot_be_written_is_told_by_its_name(rows: pa.RecordBatch, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"gone: No such file or directory"):
        write_plan([rows], tmp_path / "gone")


def test_a_plan_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "plans" / "monday"
    claim_folder(folder)
    claim_folder(folder)
    (folder / "plan-0003.json").touch()
    with pytest.raises(PlanError, match="monday is not empty: name another folder for the plan, or empty this one"):
        claim_folder(folder)


def test_a_file_is_no_folder_for_a_plan(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PlanError, match="file: File exists"):
        claim_folder(tmp_path / "file")
