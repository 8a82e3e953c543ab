"""A plan's rows as Kafka's reassignment JSON, split under a size limit."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from controller.admin.plan_ids import PlanIds
from klamm.cli.reassignment.files import decode_document
from spark_bridge.errors import PlanError
from spark_bridge.outputs.reassignment import LIMIT, Ids, steps
from spark_bridge.outputs.rows import SCHEMA
from transport.metadata import TopicPartition

Row = tuple[str, int, list[int], list[int]]


def batches(rows: Sequence[Row], size: int = 7) -> list[pa.RecordBatch]:
    table = pa.Table.from_pylist(
        [
            {"topic": topic, "partition": number, "before": before, "after": after, "reason": "balance", "bytes": 9}
            for topic, number, before, after in rows
        ],
        SCHEMA,
    )
    made: list[pa.RecordBatch] = table.to_batches(max_chunksize=size)
    return made


def read(documents: Sequence[bytes]) -> dict[TopicPartition, list[int]]:
    """Read documents as `klamm reassignment execute` does."""
    return {tp: list(replicas) for data in documents for tp, replicas in decode_document(data).targets.items()}


def starts(documents: Sequence[bytes]) -> dict[TopicPartition, list[int]]:
    """Return where documents start, as `klamm reassignment execute` reads it."""
    return {tp: list(replicas) for data in documents for tp, replicas in decode_document(data).starts.items()}


BROKERS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True)
TOPICS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.isprintable)
ROWS = st.lists(st.tuples(TOPICS, st.integers(0, 99), BROKERS, BROKERS), unique_by=lambda row: row[:2], max_size=40)


@given(ROWS, st.integers(600, 2000))
def test_execute_reads_what_was_planned_and_what_was_before(rows: list[Row], limit: int) -> None:
    made = list(steps(batches(rows), limit))
    assert read([step.plan for step in made]) == {TopicPartition(*row[:2]): row[3] for row in rows}
    assert read([step.rollback for step in made]) == {TopicPartition(*row[:2]): row[2] for row in rows}
    assert starts([step.plan for step in made]) == {TopicPartition(*row[:2]): row[2] for row in rows}
    assert starts([step.rollback for step in made]) == {TopicPartition(*row[:2]): row[3] for row in rows}
    for step in made:
        assert max(len(step.plan), len(step.rollback)) <= limit
        assert read([step.plan]).keys() == read([step.rollback]).keys()


def test_a_document_has_a_partition_a_line() -> None:
    [step] = steps(batches([("orders", 1, [2, 3], [2, 1]), ('a"b', 0, [1], [4])]))
    assert step.plan.decode() == (
        '{"version":1,"partitions":[\n'
        '{"topic":"orders","partition":1,"replicas":[2,1],"before":[2,3]},\n'
        '{"topic":"a\\"b","partition":0,"replicas":[4],"before":[1]}\n'
        "]}\n"
    )


def test_documents_have_the_ids_that_are_known() -> None:
    ids = Ids('of "it"', {"orders": "id-1", "clicks": None})
    [step] = steps(batches([("orders", 1, [2, 3], [2, 1]), ("clicks", 0, [1], [4])]), ids=ids)
    assert step.plan.decode() == (
        '{"version":1,"cluster_id":"of \\"it\\"","partitions":[\n'
        '{"topic":"orders","partition":1,"replicas":[2,1],"before":[2,3],"topic_id":"id-1"},\n'
        '{"topic":"clicks","partition":0,"replicas":[4],"before":[1]}\n'
        "]}\n"
    )
    for document in (step.plan, step.rollback):
        assert decode_document(document).ids == PlanIds('of "it"', {"orders": "id-1"})


def test_documents_are_filled_to_the_last_byte() -> None:
    [with_ids] = steps(batches([("orders", 0, [1], [2])]), ids=Ids("a", {"orders": "b"}))
    assert len(list(steps(batches([("orders", 0, [1], [2])]), len(with_ids.plan), Ids("a", {"orders": "b"})))) == 1
    rows = batches([("orders", n, [1, 2], [1, 3]) for n in range(10)])
    [whole] = steps(rows)
    assert len(list(steps(rows, len(whole.plan)))) == 1
    first, second = steps(rows, len(whole.plan) - 1)
    assert len(json.loads(first.plan)["partitions"]) == 9
    assert len(json.loads(second.plan)["partitions"]) == 1


def test_a_way_back_that_is_longer_decides_where_files_are_cut() -> None:
    made = list(steps(batches([("orders", n, [2_000_000_001, 2_000_000_002], [1, 3]) for n in range(10)]), 500))
    assert 400 < max(len(step.rollback) for step in made) <= 500


def test_a_hundred_thousand_partitions_fit_znodes() -> None:
    rows = [(f"topic-{n % 1000}", n // 1000, [1, 2, 3], [1, 2, 4]) for n in range(100_000)]
    made = list(steps(batches(rows, 65_536)))
    assert max(len(step.plan) for step in made) <= LIMIT < 1_000_000
    assert len(made) == -(-sum(len(step.plan) for step in made) // LIMIT)
    assert sum(step.plan.count(b'"topic"') for step in made) == 100_000


def test_how_files_are_cut_does_not_depend_on_how_rows_arrive() -> None:
    rows = [("orders", n, [1, 2], [1, n + 3]) for n in range(100)]
    assert list(steps(batches(rows, 1), 500)) == list(steps(batches(rows, 64), 500))


def test_no_rows_make_no_document() -> None:
    assert list(steps([])) == []
    assert list(steps([pa.RecordBatch.from_pylist([], SCHEMA)])) == []


def test_a_limit_below_one_partition_is_refused_with_what_is_needed() -> None:
    rows = batches([("orders", 0, [1], [2])])
    [whole] = steps(rows)
    with pytest.raises(PlanError, match=f'cannot hold .*"orders".*: allow {len(whole.plan)} or more'):
        list(steps(rows, len(whole.plan) - 1))
