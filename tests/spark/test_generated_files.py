"""`klamm plan generate-cluster`: a made-up cluster as the files that planning reads."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from klamm.cli.formats import schema_of
from klamm.cli.planning.generating import GeneratedFiles, generate_cluster
from spark_bridge.generator.cluster import GeneratedCluster
from spark_bridge.generator.files import rows_of
from spark_bridge.generator.shapes import ClusterShape
from spark_bridge.inputs.read import read_cluster
from spark_bridge.inputs.sources import Sources

SMALL = ("--brokers", "4", "--racks", "2", "--topics", "3", "--partitions", "20", "--replication-factor", "2")


def generate(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(generate_cluster, [*arguments, "--out", str(folder)])


def test_snapshot_loads_and_brokers_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    result = generate(folder, *SMALL, "--new-brokers", "1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("20 partitions in 3 topics on 4 brokers. Try:\nklamm plan rebalance --snapshot ")
    snapshot, loads = (pq.read_table(folder / name) for name in ("snapshot", "loads"))
    assert snapshot.column_names == ["topic", "partition", "replicas", "leader"]
    assert loads.column_names == ["topic", "partition", "bytes", "bytes_in", "bytes_out"]
    assert [len(snapshot), len(loads)] == [20, 20]
    assert (folder / "brokers.csv").read_text().splitlines()[:2] == ["id,rack,capacity,disk", "1,rack-1,1,25769803776"]
    assert len((folder / "brokers.csv").read_text().splitlines()) == 6


def test_the_files_are_named_in_a_document(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    result = generate(folder, *SMALL, "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    files = msgspec.json.decode(result.stdout, type=GeneratedFiles)
    assert (files.partitions, files.topics, files.brokers) == (20, 3, 4)
    assert all(Path(name).exists() for name in (files.snapshot, files.loads, files.brokers_table))
    assert schema_of(generate_cluster)["$ref"] == "#/$defs/GeneratedFiles"


def test_a_folder_after_o_is_the_old_spelling(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    result = CliRunner().invoke(generate_cluster, [*SMALL, "-o", str(folder)])
    warning, *lines = result.stderr.splitlines()
    assert (result.exit_code, warning) == (
        0,
        f"-o {folder} is an old spelling, which later releases refuse: use --out {folder}",
    )
    assert lines[0] == "20 partitions in 3 topics on 4 brokers. Try:"
    assert (folder / "brokers.csv").exists()


def test_the_same_numbers_give_the_same_files(tmp_path: Path) -> None:
    for name, seed in (("first", "1"), ("again", "1"), ("other", "2")):
        assert generate(tmp_path / name, *SMALL, "--seed", seed).exit_code == 0
    first, again, other = (pq.read_table(tmp_path / name / "loads") for name in ("first", "again", "other"))
    assert first.equals(again)
    assert not first.equals(other)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    result = generate(tmp_path, *SMALL)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path} is not empty: name another folder, or empty this one\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--brokers", "2"), "2 brokers cannot hold 3 replicas of a partition: give more brokers or a lower factor"),
        (("--partitions", "5"), "partitions must be 3000 or more, one for each topic, not 5"),
        (("--racks", "-1"), "racks must be 0 or more, not -1"),
    ],
)
def test_what_is_no_cluster_is_told_and_nothing_written(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    result = generate(tmp_path / "cluster", "--shape", "uniform", *arguments)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: {line}")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = generate(tmp_path / "file" / "cluster", *SMALL)
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path}/file/cluster: Not a directory\n")


def test_planning_reads_what_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    assert generate(folder, *SMALL, "--new-brokers", "1").exit_code == 0
    inputs = read_cluster(Sources(folder / "snapshot", (folder / "loads",), folder / "brokers.csv"))
    cluster = GeneratedCluster(ClusterShape(4, 2, 3, 20, replication_factor=2, new_brokers=1))
    assert inputs.brokers == cluster.brokers
    written = rows_of(cluster.block(0), cluster.brokers).to_pylist()
    unknown = {"topic_id": None, "min_insync_replicas": None}
    assert inputs.partitions.to_pylist() == [row | unknown for row in written]
    assert (inputs.set_aside, inputs.unknown_loads) == ({}, 0)
