"""The same plan on Spark as in one process, however Spark partitions and orders its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from attrs import evolve

from spark_bridge.engines.in_process import InProcess
from spark_bridge.generator.cluster import GeneratedCluster
from spark_bridge.inputs.dealing import to_bytes
from spark_bridge.kernel.tally import Tally, loads
from spark_bridge.model.block import Block, count_of_blocks
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import Goal
from spark_bridge.model.packing import blocks_of
from tests.spark.engines.outcome import GOALS, crowded, outcome, same_blocks, shape, table_of
from tests.spark.kernel.small import load_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_bridge.engines.spark import OnSpark


PARTITIONS = 1_500
REBALANCE = GOALS[0]
goals = pytest.mark.parametrize(
    "goal",
    [pytest.param(goal, marks=[] if goal is REBALANCE else pytest.mark.soak) for goal in GOALS],
    ids=lambda goal: goal.kind,
)


@cache
def cluster() -> tuple[pa.Table, Brokers]:
    made = GeneratedCluster(shape(PARTITIONS))
    rows = crowded(table_of(made), made.brokers)
    # The ids of all topics but some are known.
    ids = [None if topic.endswith("7") else f"id-of-{topic}" for topic in rows["topic"].to_pylist()]
    return rows.append_column("topic_id", pa.array(ids, pa.string())), made.brokers


def shuffled(rows: pa.Table, seed: int) -> pa.Table:
    return rows.take(pa.array(np.random.default_rng(seed).permutation(len(rows))))


def on_spark(spark: SparkSession, folder: Path, rows: pa.Table, brokers: Brokers, cuts: int = 2) -> OnSpark:
    from spark_bridge.engines.spark import OnSpark  # noqa: PLC0415 (there may be no PySpark)
    from spark_bridge.inputs.on_spark import deal_again  # noqa: PLC0415

    folder.mkdir()
    size = -(-len(rows) // cuts)
    values = [(n, to_bytes(rows.slice(n * size, size))) for n in range(cuts)]
    dealt = spark.createDataFrame(values, "number int, rows binary").repartition(cuts)
    blocks = count_of_blocks(len(rows))
    return OnSpark.of(spark, folder, deal_again(dealt, blocks), blocks, brokers.ids)


def blocks_in(engine: OnSpark) -> list[Block]:
    rows = engine.frame.select("number", "state").collect()
    return [Block.from_bytes(row["state"]) for row in sorted(rows, key=lambda row: row["number"])]


def require_ids(files: Mapping[str, bytes]) -> None:
    documents = [json.loads(data) for name, data in files.items() if name.endswith(".json")]
    assert {document["cluster_id"] for document in documents} == {"a-cluster"}
    for entry in (entry for document in documents for entry in document["partitions"]):
        known = None if entry["topic"].endswith("7") else f"id-of-{entry['topic']}"
        assert entry.get("topic_id") == known


def agree(
    spark: SparkSession,
    goal: Goal,
    folder: Path,
    rows: pa.Table | None = None,
    cuts: int = 2,
    brokers: Brokers | None = None,
) -> None:
    some, all_live = cluster()
    rows = some if rows is None else rows
    brokers = brokers or all_live
    here = InProcess(list(blocks_of(rows, brokers.ids)))
    there = on_spark(spark, folder / "blocks", shuffled(rows, seed=cuts), brokers, cuts)
    assert here.blocks == there.blocks
    one, other = outcome(here, brokers, goal, folder / "one"), outcome(there, brokers, goal, folder / "other")
    assert one.summary["changed"] > 0
    assert one.summary == other.summary
    assert one.files == other.files
    require_ids(one.files)
    assert same_blocks(here.held, blocks_in(there))
    there.close()


@pytest.mark.soak
@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_one_block_is_planned_alike(spark: SparkSession, goal: Goal, tmp_path: Path) -> None:
    agree(spark, goal, tmp_path)


@goals
def test_many_blocks_are_planned_alike(
    spark: SparkSession, goal: Goal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", 600)
    agree(spark, goal, tmp_path)


@pytest.mark.parametrize(
    "goal",
    [
        evolve(REBALANCE, force=True),
        pytest.param(evolve(REBALANCE, force=True, dead_is_gone=True), marks=pytest.mark.soak),
    ],
    ids=["dead stays", "dead is gone"],
)
def test_brokers_that_do_not_serve_are_planned_alike(
    goal: Goal, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", 600)
    rows, live = cluster()
    down = {broker.id for broker in live.rows[:2]}
    brokers = Brokers.of(evolve(b, state=BrokerState.DEAD if b.id in down else b.state) for b in live.rows)
    # Of every hundredth partition, no copy can be read.
    replicas = [[*down] if n % 100 == 0 else lists for n, lists in enumerate(rows["replicas"].to_pylist())]
    place = rows.column_names.index("replicas")
    rows = rows.set_column(place, "replicas", pa.array(replicas, rows.schema.field(place).type))
    least = pa.array([1 + n % 3 for n in range(len(rows))], pa.int32())
    agree(spark, goal, tmp_path, rows.append_column("min_insync_replicas", least), brokers=brokers)


@pytest.mark.soak
def test_many_empty_partitions_are_planned_alike(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", 600)
    rows, _brokers = cluster()
    none = pa.array([0] * len(rows), pa.int64())
    for name in ("bytes", "bytes_in", "bytes_out"):
        some = pc.if_else(pc.less(rows["partition"], 2), rows[name], none)
        rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), some)
    assert pc.sum(pc.equal(rows["bytes"], 0)).as_py() > 0.9 * len(rows)
    agree(spark, GOALS[2], tmp_path, rows)


@pytest.mark.soak
@pytest.mark.parametrize("cuts", [1, 3, 17])
def test_the_plan_does_not_depend_on_how_rows_are_cut_and_ordered(
    cuts: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", 350)
    agree(spark, GOALS[3], tmp_path, cuts=cuts)


def test_rows_in_any_order_make_the_same_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", 350)
    rows, brokers = cluster()
    some = list(blocks_of(rows, brokers.ids))
    assert len(some) == 5
    assert sum(map(len, some)) == PARTITIONS
    assert same_blocks(some, list(blocks_of(shuffled(rows, seed=2), brokers.ids)))


@pytest.mark.soak
def test_forty_rounds_on_top_of_each_other_end_as_the_first(spark: SparkSession, tmp_path: Path) -> None:
    """If plans grew from round to round, Spark would take twice as long for each, or run out of stack."""
    rows, brokers = cluster()
    engine = on_spark(spark, tmp_path / "blocks", rows, brokers)
    count = len(brokers)

    def unchanged(_: int, block: Block) -> tuple[Block, Tally]:
        return block, {"load": loads(block, count)}

    tallies = [engine.step(unchanged) for _ in range(40)]
    (first,) = {None if tally is None else tuple(tally["load"].ravel().tolist()) for tally in tallies}
    assert first == tuple(load_of(list(blocks_of(rows, brokers.ids)), brokers).ravel().tolist())
    engine.close()
