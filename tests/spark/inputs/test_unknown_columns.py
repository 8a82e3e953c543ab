"""Tables of other tools, and unknown columns: rejected by name, in each format, here and on Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from spark_bridge.errors import PlanError
from spark_bridge.inputs.read import read_cluster
from spark_bridge.inputs.sources import OnBadRows, Sources
from tests.spark.session import SparkSession

Row = dict[str, Any]

PARTITION: Row = {"topic": "orders", "partition": 0, "replicas": [1, 2]}
PLANNED: Row = PARTITION | {"before": [3, 4]}
DUMPED: Row = PARTITION | {
    "adding_replicas": [],
    "removing_replicas": [],
    "leader": 1,
    "isr": [1],
    "leader_epoch": 3,
    "controller_epoch": 5,
    "partition_state": "OnlinePartition",
}
LOAD: Row = {"topic": "orders", "partition": 0, "bytes": 5}
BROKER: Row = {"id": 1, "rack": "a", "host": "h", "port": 9092, "epoch": 7}
NEAREST_LOAD = "column 'size' is unknown: did you mean bytes? Known are topic, partition, bytes, bytes_in, bytes_out"
NEAREST_STATE = "column 'State' is unknown: did you mean state? Known are id, rack, capacity, disk, state"
NEAREST_RACK = NEAREST_STATE.replace("State", "racks").replace("state?", "rack?")
PLAN = (
    "this is a plan written by `klamm plan`, not a cluster: a snapshot has the columns topic, partition, topic_id, "
    "replicas, removing_replicas, leader, min_insync_replicas"
)
TABLE = "a table of brokers has the columns id, rack, capacity, disk, state"
NEAREST_LEADER = "column 'Leader' is unknown: did you mean leader? Known are " + PLAN.partition("columns ")[2]


def as_document(name: str, rows: list[Row]) -> str:
    return json.dumps({"version": 1, name: rows}, indent=1)


def as_lines(rows: list[Row]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def as_csv(rows: list[Row]) -> str:
    lines = [[*rows[0]], *([*row.values()] for row in rows)]
    texts = [[str(cell) for cell in line] for line in lines]
    return "".join(f"{','.join(line)}\n" for line in texts)


def written(path: Path, content: str | list[Row]) -> Path:
    if isinstance(content, str):
        path.write_text(content)
    else:
        pq.write_table(pa.Table.from_pylist(content), path)
    return path


def refusal(sources: Sources) -> str:
    with pytest.raises(PlanError) as caught:
        read_cluster(sources)
    return without_folder(caught.value)


def without_folder(error: PlanError) -> str:
    return re.sub(r"^.*/", "", str(error).partition(": ")[0]) + ": " + str(error).partition(": ")[2]


MORE = LOAD | {"partition": 1}
SIZED = {"topic": "orders", "partition": 1, "size": None}
BAD_LOADS: dict[str, tuple[str, str | list[Row], str]] = {
    "a CSV": ("l.csv", as_csv([{"topic": "orders", "partition": 0, "size": 5}]), f"l.csv: {NEAREST_LOAD}"),
    "JSON lines": ("l.jsonl", as_lines([LOAD, SIZED]), f"l.jsonl: line 2: {NEAREST_LOAD}"),
    "a JSON list": ("l.json", json.dumps([LOAD, MORE | {"size": 5}]), f"l.json: entry 2: {NEAREST_LOAD}"),
    "Parquet": ("l.parquet", [{"topic": "orders", "partition": 0, "size": 5}], f"l.parquet: {NEAREST_LOAD}"),
    "nothing near": (
        "l.csv",
        as_csv([LOAD | {"colour": 5}]),
        "l.csv: column 'colour' is unknown: known are topic, partition, bytes, bytes_in, bytes_out",
    ),
    "another case": ("l.csv", "Topic,partition\norders,0\n", f"l.csv: {NEAREST_LOAD}".replace("size", "Topic").replace(
        "mean bytes", "mean topic"
    )),
    "semicolons": ("l.csv", "Topic;Partition;Bytes\norders;0;5\n",
                   "l.csv: its columns are separated by semicolons: separate them by commas"),
    "tabs": ("l.csv", "a\tb\norders\t0\n", "l.csv: its columns are separated by tabs: separate them by commas"),
    "a plan": ("l.parquet", [PLANNED], f"l.parquet: {PLAN}".replace(
        PLAN.partition(": ")[2], "a table of loads has the columns topic, partition, bytes, bytes_in, bytes_out"
    )),
}  # fmt: skip


FORMATS = ("a CSV", "a document", "JSON lines", "Parquet")


def each_way_once(kinds: Iterable[str]) -> list[Any]:
    """Return kinds for tests on Spark: one for each format, and all others in the soak."""
    return [kind if kind in FORMATS else pytest.param(kind, marks=pytest.mark.soak) for kind in kinds]


@pytest.mark.parametrize("kind", BAD_LOADS)
def test_an_unknown_column_of_loads_is_refused_here(kind: str, tmp_path: Path) -> None:
    assert refusal(with_loads(kind, tmp_path)) == BAD_LOADS[kind][-1]


def with_loads(kind: str, folder: Path, on_bad_rows: OnBadRows = OnBadRows.REFUSE) -> Sources:
    name, content, _ = BAD_LOADS[kind]
    snapshot = written(folder / "s.json", as_document("partitions", [PARTITION, PARTITION | {"partition": 1}]))
    return Sources(snapshot, (written(folder / name, content),), on_bad_rows=on_bad_rows)


@pytest.mark.parametrize("on_bad_rows", [OnBadRows.REFUSE, pytest.param(OnBadRows.SET_ASIDE, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", each_way_once(BAD_LOADS))
@pytest.mark.usefixtures("few_tasks")
def test_an_unknown_column_of_loads_is_refused_on_spark(
    kind: str, on_bad_rows: OnBadRows, tmp_path: Path, spark: SparkSession
) -> None:
    sources = with_loads(kind, tmp_path, on_bad_rows)
    assert refusal(sources) == BAD_LOADS[kind][-1]
    assert_same_on_spark(spark, sources, tmp_path / "scratch")


BAD_SNAPSHOTS: dict[str, tuple[str, str | list[Row], str]] = {
    "a document": (
        "s.json",
        as_document("partitions", [DUMPED, PARTITION | {"partition": 1, "Leader": None}]),
        f"s.json: entry 2: {NEAREST_LEADER}",
    ),
    "JSON lines": ("s.jsonl", as_lines([DUMPED, PLANNED]), f"s.jsonl: line 2: {PLAN}"),
    "Parquet": ("s.parquet", [PARTITION | {"Leader": 2}], f"s.parquet: {NEAREST_LEADER}"),
    "a plan": ("s.json", as_document("partitions", [PLANNED]), f"s.json: entry 1: {PLAN}"),
    "a table of a plan": ("s.parquet", [{"topic": "a", "partition": 0, "before": [1], "after": [2]}],
                          f"s.parquet: {PLAN}"),
    "topics to move": (
        "s.json",
        '{"topics": [{"topic": "orders"}],\n"version": 1}',
        "s.json: this is the --topics-to-move-json-file of kafka-reassign-partitions: a snapshot has the "
        "columns " + PLAN.partition("columns ")[2],
    ),
    "a misspelt list": (
        "s.json",
        as_document("partitions", [PARTITION]).replace("version", "Brokers"),
        "s.json: 'Brokers' is unknown: did you mean brokers?",
    ),
    "brokers that are no list": (
        "s.json",
        as_document("partitions", [PARTITION]).replace("version", "brokers"),
        "s.json: 'brokers' must be a list",
    ),
    "a broker": (
        "s.json",
        json.dumps({"brokers": [BROKER | {"racks": "b"}], "partitions": [PARTITION]}, indent=1),
        f"s.json: entry 1: {NEAREST_RACK}",
    ),
    "a line about a broker": (
        "s.jsonl",
        as_lines([DUMPED, BROKER, {"id": 2, "State": "draining"}]),
        f"s.jsonl: line 3: {NEAREST_STATE}",
    ),
}  # fmt: skip


def with_snapshot(kind: str, folder: Path) -> Sources:
    name, content, _ = BAD_SNAPSHOTS[kind]
    return Sources(written(folder / name, content), on_bad_rows=OnBadRows.SET_ASIDE)


@pytest.mark.parametrize("kind", BAD_SNAPSHOTS)
def test_an_unknown_column_of_a_snapshot_is_refused_here(kind: str, tmp_path: Path) -> None:
    assert refusal(with_snapshot(kind, tmp_path)) == BAD_SNAPSHOTS[kind][-1]


@pytest.mark.parametrize("kind", each_way_once(BAD_SNAPSHOTS))
@pytest.mark.usefixtures("few_tasks")
def test_an_unknown_column_of_a_snapshot_is_refused_on_spark(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    assert_same_on_spark(spark, with_snapshot(kind, tmp_path), tmp_path / "scratch")


CAPACITIES = {"brokerCapacities": [{"brokerId": "-1", "capacity": {"DISK": "100000", "CPU": "100"}, "doc": "all"}]}
SETS = {"brokerSets": [{"brokerSetId": "Blue", "brokerIds": [0, 1]}]}
LOADED = {"hosts": [], "brokers": [{"Broker": 1, "Rack": "a", "DiskMB": 3.5, "BrokerState": "ALIVE"}], "version": 1}
DIRECTORIES = (
    "column 'log_dirs' cannot be planned with: plans do not choose the log directories of replicas: leave it out, and "
    "give the bytes of all directories of a broker as disk"
)
WITH_DIRECTORIES = BROKER | {"log_dirs": ["/disk1", "/disk2"]}
BAD_TABLES: dict[str, tuple[str, str | list[Row], str]] = {
    "racks": ("b.csv", "id,racks\n1,a\n", f"b.csv: {NEAREST_RACK}"),
    "State": ("b.csv", "id,State\n1,draining\n", f"b.csv: {NEAREST_STATE}"),
    "an id of another case": ("b.csv", "ID,rack\n1,a\n", f"b.csv: {NEAREST_RACK}".replace("racks", "ID").replace(
        "mean rack", "mean id"
    )),
    "a JSON list": ("b.json", json.dumps([BROKER, {"id": 2, "racks": "b"}]), f"b.json: entry 2: {NEAREST_RACK}"),
    "JSON lines": ("b.jsonl", as_lines([{"id": 2, "State": "dead"}]), f"b.jsonl: line 1: {NEAREST_STATE}"),
    "Parquet": ("b.parquet", [{"id": 2, "racks": "b"}], f"b.parquet: {NEAREST_RACK}"),
    "log_dirs in CSV": ("b.csv", "id,log_dirs\n1,/disk1\n", f"b.csv: {DIRECTORIES}"),
    "log_dirs in a JSON list": ("b.json", json.dumps([BROKER, WITH_DIRECTORIES]), f"b.json: entry 2: {DIRECTORIES}"),
    "log_dirs in JSON lines": ("b.jsonl", as_lines([WITH_DIRECTORIES]), f"b.jsonl: line 1: {DIRECTORIES}"),
    "log_dirs in a document": (
        "b.json", as_document("brokers", [BROKER, WITH_DIRECTORIES]), f"b.json: entry 2: {DIRECTORIES}"),
    "log_dirs in Parquet": ("b.parquet", [WITH_DIRECTORIES], f"b.parquet: {DIRECTORIES}"),
    "capacity.json": (
        "b.json", json.dumps(CAPACITIES, indent=1), f"b.json: this is Cruise Control's capacity.json: {TABLE}"),
    "capacity.json in one line": (
        "b.json", json.dumps(CAPACITIES), f"b.json: line 1: this is Cruise Control's capacity.json: {TABLE}"),
    "brokerSets.json": (
        "b.json", json.dumps(SETS, indent=1), f"b.json: this is Cruise Control's brokerSets.json: {TABLE}"),
    "an answer of Cruise Control": (
        "b.json", json.dumps(LOADED, indent=1),
        f"b.json: entry 1: this is Cruise Control's answer to load: {TABLE}"),
    "a document of something else": (
        "b.json", '{\n"settings": []}',
        f"b.json: no list 'brokers' in it: {TABLE.replace('has', 'has one, with')}"),
}  # fmt: skip


def with_table(kind: str, folder: Path) -> Sources:
    name, content, _ = BAD_TABLES[kind]
    snapshot = written(folder / "s.json", as_document("partitions", [PARTITION]))
    return Sources(snapshot, brokers=written(folder / name, content))


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_table_of_brokers_of_another_kind_is_refused(kind: str, tmp_path: Path) -> None:
    assert refusal(with_table(kind, tmp_path)) == BAD_TABLES[kind][-1]


@pytest.mark.parametrize(
    "kind", ["racks", *(pytest.param(kind, marks=pytest.mark.soak) for kind in BAD_TABLES if kind != "racks")]
)
@pytest.mark.usefixtures("few_tasks")
def test_planning_on_spark_refuses_such_a_table_alike(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    # Spark leaves tables of brokers to the same reader.
    assert_same_on_spark(spark, with_table(kind, tmp_path), tmp_path / "scratch")


def assert_same_on_spark(spark: SparkSession, sources: Sources, scratch: Path) -> None:
    from spark_bridge.inputs.on_spark import read_cluster_on_spark  # noqa: PLC0415 (there may be no PySpark)

    with pytest.raises(PlanError) as caught:
        read_cluster_on_spark(spark, sources, scratch)
    assert without_folder(caught.value) == refusal(sources)


def test_what_a_dump_and_kafkas_tools_write_beside_is_known(tmp_path: Path) -> None:
    kafkas = PARTITION | {"partition": 1, "log_dirs": ["any", "any"]}
    both = DUMPED | {"partition": 2, "bytes": 5, "bytes_in": 1, "bytes_out": None}
    for rows in ([DUMPED, kafkas], [both]):
        for name, content in (("s.json", as_document("partitions", rows)), ("s.jsonl", as_lines(rows))):
            assert len(read_cluster(Sources(written(tmp_path / name, content))).partitions) == len(rows)
        table = written(tmp_path / "s.parquet", rows)
        assert len(read_cluster(Sources(table)).partitions) == len(rows)
    listed = {"brokers": [WITH_DIRECTORIES], "partitions": [PARTITION]}
    for name, content in (("s.json", json.dumps(listed, indent=1)), ("s.jsonl", as_lines([DUMPED, WITH_DIRECTORIES]))):
        assert 1 in read_cluster(Sources(written(tmp_path / name, content))).brokers.ids
    # One table may hold the partitions and their loads.
    file = written(tmp_path / "both.parquet", [both])
    assert read_cluster(Sources(file, (file,))).partitions["bytes"].to_pylist() == [5]
