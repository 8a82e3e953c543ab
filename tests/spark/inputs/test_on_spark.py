"""Both readers return the same rows and report bad ones in the same way, in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from spark_bridge.errors import PlanError
from spark_bridge.inputs.dealing import from_bytes
from spark_bridge.inputs.read import read_cluster
from spark_bridge.inputs.sources import OnBadRows, Sources
from tests.spark.session import SparkSession

Rows = list[dict[str, Any]]
BROKERS = [{"id": id_, "rack": f"r{id_ % 2}"} for id_ in (1, 2, 3)]
PARTITIONS: Rows = [
    {"topic": topic, "partition": n, "replicas": [1 + n % 3, 2 + n % 3], "removing_replicas": [], "leader": -1}
    for topic in ("orders", "a.b_c", "Zoo")
    for n in range(40)
]
PARTITIONS[7] |= {"replicas": [1, 2, 9], "removing_replicas": [2], "leader": 9}
LOADS: Rows = [
    {"topic": row["topic"], "partition": row["partition"], "bytes": n * 10**9, "bytes_in": n / 4, "bytes_out": None}
    for n, row in enumerate(PARTITIONS[:100])
]
for row in PARTITIONS[:40]:
    row["topic_id"] = "id-of-orders"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
BAD_PARTITIONS: Rows = [
    PARTITIONS[3],
    {"topic": "no name", "partition": 1, "replicas": [1]},
    {"topic": "new", "partition": -4, "replicas": [1]},
    {"topic": "new", "partition": 1, "replicas": [1, 1]},
    {"topic": "new", "partition": 2, "replicas": []},
    {"topic": "new", "partition": 3, "replicas": [-1]},
    {"topic": "new", "partition": 4, "replicas": [1], "topic_id": "not/one"},
]
BAD_LOADS: Rows = [
    LOADS[50],
    {"topic": "new", "partition": 1, "bytes": 5},
    {"topic": "orders", "partition": 1, "bytes": -5},
    {"topic": "orders", "partition": 1, "bytes_in": float("nan")},
]


def as_document(rows: Rows, path: Path) -> None:
    path.write_text(json.dumps({"cluster_id": CLUSTER, "brokers": BROKERS, "partitions": rows}, indent=1))


def as_json_lines(rows: Rows, path: Path) -> None:
    # A request that names a topic is no partition.
    requests = {"reassign_partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}
    cluster = {"controller": {"id": 1}, "cluster_id": CLUSTER, **requests}
    others = [*BROKERS, cluster] if "replicas" in rows[0] else []
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows[:60], *others, *rows[60:]]))


def as_json_list(rows: Rows, path: Path) -> None:
    path.write_text(json.dumps(rows))


def as_parquet(rows: Rows, path: Path) -> None:
    path.mkdir()
    if "replicas" in rows[0]:
        (path / "brokers.json").write_text(json.dumps({"cluster_id": CLUSTER, "brokers": BROKERS}))
    # Files whose columns differ in type, and one that lacks some.
    wide, narrow = pa.Table.from_pylist(rows[:20]), pa.Table.from_pylist(rows[20:])
    narrow = narrow.set_column(1, "partition", narrow["partition"].cast(pa.int32()))
    pq.write_table(wide, path / "a b%20.parquet", row_group_size=7)
    pq.write_table(narrow.select([c for c in narrow.column_names if c != "bytes_out"]), path / "c.parquet")


def as_csv(rows: Rows, path: Path) -> None:
    names = ("isr", "bytes_in", "partition", "topic", "bytes")
    lines = [",".join("" if row.get(name) is None else f'"{row[name]}"' for name in names) for row in rows]
    path.write_text("\n".join(["", ",".join(names), "", *lines]))


def as_log_dirs(rows: Rows, path: Path) -> None:
    replicas = [{"partition": f"{r['topic']}-{r['partition']}", "size": r.get("bytes", 0)} for r in rows]
    dirs = [
        [{"error": None, "logDir": "/a", "partitions": replicas}],
        [
            {"error": None, "logDir": "/a", "partitions": [row | {"size": 7, "isFuture": False} for row in replicas]},
            {"error": None, "logDir": "/b", "partitions": [{"partition": "?", "size": -1, "isFuture": True}]},
        ],
    ]
    document = {"version": 1, "brokers": [{"broker": n, "logDirs": of_one} for n, of_one in enumerate(dirs)]}
    path.write_text(f"Querying brokers for log directories information\nReceived log\n{json.dumps(document)}\n")


pytestmark = pytest.mark.usefixtures("few_tasks")

SNAPSHOT_FORMATS = [pytest.param(as_document, marks=pytest.mark.soak), as_json_lines, as_parquet]
LOAD_FORMATS = [
    as_parquet,
    # `test_kafka_text` reads what Kafka's tools print on Spark as well.
    *(pytest.param(write, marks=pytest.mark.soak) for write in (as_log_dirs, as_csv, as_json_list, as_json_lines)),
]
Write = Callable[[Rows, Path], None]


def outcome(spark: SparkSession, sources: Sources, scratch: Path) -> tuple[object, ...]:
    """Read on Spark and return what there is to compare."""
    from spark_bridge.inputs.on_spark import read_cluster_on_spark  # noqa: PLC0415 (there may be no PySpark)

    read = read_cluster_on_spark(spark, sources, scratch)
    tables = [from_bytes(pa.py_buffer(row["rows"])) for row in read.dealt.collect()]
    assert len(tables) == read.blocks
    rows = pa.concat_tables(tables).sort_by([("topic", "ascending"), ("partition", "ascending")]).to_pylist()
    return rows, read.brokers, read.set_aside, read.unknown_loads, read.cluster_id


def outcome_here(sources: Sources) -> tuple[object, ...]:
    read = read_cluster(sources)
    assert read.cluster_id == CLUSTER
    return read.partitions.to_pylist(), read.brokers, read.set_aside, read.unknown_loads, read.cluster_id


@pytest.mark.parametrize("as_snapshot", SNAPSHOT_FORMATS)
def test_the_same_of_each_snapshot(as_snapshot: Write, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    as_snapshot(PARTITIONS + BAD_PARTITIONS, path)
    sources = Sources(path, on_bad_rows=OnBadRows.SET_ASIDE)
    here = outcome_here(sources)
    assert here[2] == {
        "duplicate row": 1,
        "not a topic name": 1,
        "not a partition number": 1,
        "duplicate replica": 1,
        "no replicas": 1,
        "not a broker id": 1,
        "not a topic id": 1,
    }
    assert outcome(spark, sources, tmp_path / "aside") == here
    require_same_refusal(spark, Sources(path), tmp_path / "refused")


def test_bad_rows_make_no_blocks_of_their_own(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", len(PARTITIONS) // 3)
    path, loads = tmp_path / "snapshot", tmp_path / "loads"
    as_parquet(PARTITIONS + BAD_PARTITIONS, path)
    as_parquet(LOADS, loads)
    sources = Sources(path, (loads,), on_bad_rows=OnBadRows.SET_ASIDE)
    assert outcome(spark, sources, tmp_path / "aside") == outcome_here(sources)


def test_the_same_of_no_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    as_document([], path)
    assert outcome(spark, Sources(path), tmp_path / "scratch") == outcome_here(Sources(path))


@pytest.mark.parametrize("as_loads", LOAD_FORMATS)
def test_the_same_of_all_loads(as_loads: Write, spark: SparkSession, tmp_path: Path) -> None:
    snapshot, good, bad = tmp_path / "s.json", tmp_path / "good", tmp_path / "bad"
    as_document(PARTITIONS, snapshot)
    as_loads(LOADS, good)
    as_loads(LOADS[40:80] + BAD_LOADS, bad)
    sources = Sources(snapshot, (good, bad), on_bad_rows=OnBadRows.SET_ASIDE)
    here = outcome_here(sources)
    assert here[2] != {}
    assert outcome(spark, sources, tmp_path / "aside") == here
    require_same_refusal(spark, Sources(snapshot, (good, bad)), tmp_path / "refused")


def require_same_refusal(spark: SparkSession, sources: Sources, scratch: Path) -> None:
    with pytest.raises(PlanError) as here:
        read_cluster(sources)
    with pytest.raises(PlanError) as on_spark:
        outcome(spark, sources, scratch)
    assert str(on_spark.value) == str(here.value)
