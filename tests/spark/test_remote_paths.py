"""Inputs and outputs that only Spark can reach: here a file system of Hadoop's own, mounted over a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from attrs import evolve
from pyarrow import parquet as pq

from spark_bridge.errors import PlanError
from spark_bridge.generator.files import write_cluster
from spark_bridge.generator.shapes import ClusterShape
from spark_bridge.inputs.dealing import from_bytes
from spark_bridge.inputs.read import read_cluster
from spark_bridge.inputs.sources import Sources, Url, source_of
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.planning import run_plan
from spark_bridge.process.request import EngineName, PlanRequest
from spark_bridge.progress import Progress
from tests.spark.session import SparkSession

CLUSTER = "viewfs://lab/data"


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Mount a folder where only Hadoop's client sees it; return it."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    settings = spark._jsc.hadoopConfiguration()  # noqa: SLF001
    settings.set("fs.viewfs.mounttable.lab.link./data", f"file://{folder}")
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    assert usual is not None
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    yield folder
    spark.conf.set("spark.sql.shuffle.partitions", usual)
    settings.unset("fs.viewfs.mounttable.lab.link./data")
    # The next test's mount is another folder under the same name.
    spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # type: ignore[union-attr]  # noqa: SLF001


def there(path: str) -> Url:
    source = source_of(f"{CLUSTER}/{path}")
    assert isinstance(source, Url)
    return source


def generated(folder: Path) -> PlanRequest:
    write_cluster(ClusterShape(brokers=12, racks=3, topics=20, partitions=600), folder / "c", lambda _: None)
    sources = Sources(there("c/snapshot"), (there("c/loads"),), there("c/brokers.csv"))
    return PlanRequest(sources, Goal(GoalKind.REMOVE_BROKERS, frozenset({3})), str(there("plan")))


def planned(request: PlanRequest, spark: SparkSession) -> list[Progress]:
    told: list[Progress] = []
    run_plan(request, told.append, lambda: spark)
    return told


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".crc"}


@pytest.mark.soak
@pytest.mark.parametrize("limit", [65_536, 200], ids=["one block", "several"])
def test_a_plan_from_and_to_such_paths_is_the_kernels(
    limit: int, lab: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", limit)
    request = generated(lab)
    planned(request, spark)
    here = Sources(lab / "c" / "snapshot", (lab / "c" / "loads",), lab / "c" / "brokers.csv")
    kernel = evolve(request, sources=here, output=str(tmp_path / "kernel"), engine=EngineName.KERNEL)
    planned(kernel, spark)
    assert contents(lab / "plan") == contents(tmp_path / "kernel")
    assert len(contents(lab / "plan")) >= 3


@pytest.mark.soak
def test_what_goes_wrong_leaves_no_such_folder(lab: Path, spark: SparkSession) -> None:
    request = evolve(generated(lab), goal=Goal(GoalKind.REMOVE_BROKERS, frozenset({99})))
    with pytest.raises(PlanError, match="broker 99 is not in the snapshot"):
        planned(request, spark)
    assert [path.name for path in lab.iterdir()] == ["c"]
    (lab / "plan").mkdir()
    (lab / "plan" / "mine").touch()
    with pytest.raises(PlanError, match=r"^viewfs://lab/data/plan is not empty: name another folder"):
        planned(request, spark)
    assert [path.name for path in (lab / "plan").iterdir()] == ["mine"]


PARTITIONS = [{"topic": "orders", "partition": n, "replicas": [1, 2]} for n in range(3)]
LOADS = [{"topic": "orders", "partition": n, "bytes": 5 + n} for n in range(3)]
LINES = [*PARTITIONS, {"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}]
LOG_DIRS = {"brokers": [{"broker": 1, "logDirs": [{"partitions": [{"partition": "orders-1", "size": 7}]}]}]}
FILES = {
    "s.json": json.dumps({"brokers": [{"id": 1}, {"id": 2}], "partitions": PARTITIONS}, indent=1),
    "s.jsonl": "".join(f"{json.dumps(line)}\n" for line in LINES),
    "l.csv": "topic,partition,bytes\n" + "".join(f"orders,{n},{5 + n}\n" for n in range(3)),
    "l.txt": f"Querying brokers for log directories information\n{json.dumps(LOG_DIRS)}\n",
    "b.json": json.dumps([{"id": 1, "capacity": 2.0}, {"id": 2}]),
    "bad.csv": "\ntopic,partition,bytes\norders,0,5\norders,1,-5\n",
    "text.parquet": "PAR1 and no more",
    "racks.csv": "id,racks\n1,a\n",
    "delta/_delta_log/0.json": "{}",
    "delta/part-0.parquet": "",
}


@pytest.fixture
def files(lab: Path) -> Path:
    for name, text in FILES.items():
        (lab / name).parent.mkdir(parents=True, exist_ok=True)
        (lab / name).write_text(text)
    return lab


@pytest.mark.parametrize(
    ("snapshot", "loads", "table"),
    [
        pytest.param("s.json", "l.csv", "b.json", marks=pytest.mark.soak),
        pytest.param("s.jsonl", "l.txt", "b.parquet", marks=pytest.mark.soak),
        ("dump", "l.parquet", "tables"),
    ],
)
def test_files_are_read_as_those_of_this_machine(
    snapshot: str, loads: str, table: str, files: Path, spark: SparkSession, tmp_path: Path
) -> None:
    from spark_bridge.inputs.on_spark import read_cluster_on_spark  # noqa: PLC0415 (there may be no PySpark)

    for folder in ("tables", "dump"):
        (files / folder).mkdir()
    brokers = pa.Table.from_pylist([{"id": 1, "capacity": 3.0, "state": "excluded"}, {"id": 2}])
    for name in ("b.parquet", "tables/b.parquet"):
        pq.write_table(brokers, files / name)
    pq.write_table(pa.Table.from_pylist(PARTITIONS), files / "dump" / "partitions.parquet")
    (files / "dump" / "brokers.json").write_text(json.dumps({"brokers": [{"id": 1, "rack": "a"}, {"id": 2}]}))
    pq.write_table(pa.Table.from_pylist(LOADS), files / "l.parquet")
    here = read_cluster(Sources(files / snapshot, (files / loads,), files / table))
    sources = Sources(there(snapshot), (there(loads),), there(table))
    read = read_cluster_on_spark(spark, sources, tmp_path / "scratch", tmp_path / "own")
    tables = [from_bytes(pa.py_buffer(row["rows"])) for row in read.dealt.collect()]
    assert pa.concat_tables(tables).to_pylist() == here.partitions.to_pylist()
    assert (read.brokers, read.unknown_loads) == (here.brokers, here.unknown_loads)


@pytest.mark.parametrize(
    ("snapshot", "loads", "table", "line"),
    [
        ("none.json", None, None, "none.json: No such file or directory"),
        ("delta", None, None, "delta: a Delta table, whose folder also has files that no longer belong to it: export"),
        ("s.json", "bad.csv", None, "bad.csv: line 4: orders-1: a size or rate must be a number from 0 to 2^53"),
        ("s.json", "text.parquet", None, "text.parquet: not readable as Parquet: "),
        ("s.json", None, "racks.csv", "racks.csv: column 'racks' is unknown: did you mean rack?"),
    ],
)
def test_what_is_wrong_is_told_by_the_name_that_was_given(
    snapshot: str,
    loads: str | None,
    table: str | None,
    line: str,
    files: Path,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    del files
    from spark_bridge.inputs.on_spark import read_cluster_on_spark  # noqa: PLC0415 (there may be no PySpark)

    sources = Sources(there(snapshot), (there(loads),) if loads else (), there(table) if table else None)
    with pytest.raises(PlanError) as caught:
        read_cluster_on_spark(spark, sources, tmp_path / "scratch", tmp_path / "own")
    assert str(caught.value).startswith(f"{CLUSTER}/{line}")


NO_CLASS = (
    r"Spark has no class org\.apache\.hadoop\.fs\.s3a\.S3AFileSystem: name the package that has it, with --conf "
    r"spark\.jars\.packages=\.\.\.$"
)


@pytest.mark.parametrize(
    ("scheme", "why"),
    [("nowhere", r'No FileSystem for scheme "nowhere"$'), ("s3a", NO_CLASS)],
    ids=["nobody knows it", "its code is not there"],
)
def test_a_file_system_that_cannot_be_had_is_told_with_the_cure(
    scheme: str, why: str, spark: SparkSession, tmp_path: Path
) -> None:
    snapshot = tmp_path / "s.json"
    snapshot.write_text(FILES["s.json"])
    request = PlanRequest(Sources(snapshot), Goal(GoalKind.REBALANCE), f"{scheme}://lab/plan")
    with pytest.raises(PlanError, match=f"^{scheme}://lab/plan: {why}"):
        planned(request, spark)
    far = evolve(request, sources=Sources(Url(f"{scheme}://lab/s.json")), output=str(tmp_path / "plan"))
    with pytest.raises(PlanError, match=f"^{scheme}://lab/s.json: {why}"):
        planned(far, spark)


@pytest.mark.soak
def test_all_jobs_of_a_plan_are_named(lab: Path, spark: SparkSession) -> None:
    context = spark.sparkContext
    before = set(context.statusTracker().getJobIdsForGroup("klamm plan remove-brokers"))
    named: dict[str, str | None] = {}
    request = evolve(generated(lab), output=str(lab / "local"))

    def note(progress: Progress) -> None:
        named[progress.phase] = context.getLocalProperty("spark.job.description")

    run_plan(request, note, lambda: spark)
    assert set(context.statusTracker().getJobIdsForGroup("klamm plan remove-brokers")) - before
    assert named["checking"] == "klamm plan remove-brokers: checking"
    assert named["choosing leaders"] == "klamm plan remove-brokers: choosing leaders, round 1"
    assert named["writing"] == "klamm plan remove-brokers: writing"
