"""`klamm plan` from files to files, by the engines themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from klamm.cli.planning import plan

pytestmark = pytest.mark.usefixtures("forked_bridge")


@pytest.fixture
def cluster(tmp_path: Path) -> tuple[str, ...]:
    """Generate a cluster that has grown; give the options that name its files."""
    folder = tmp_path / "cluster"
    shape = ("--brokers", "12", "--racks", "3", "--topics", "20", "--partitions", "600")
    assert CliRunner().invoke(plan, ["generate-cluster", *shape, "--out", str(folder)]).exit_code == 0
    options = ("--snapshot", f"{folder}/snapshot", "--loads", f"{folder}/loads")
    return (*options, "--brokers-table", f"{folder}/brokers.csv")


def planned(*arguments: str) -> Result:
    result = CliRunner().invoke(plan, arguments)
    assert result.exit_code == 0, result.stderr
    return result


def replicas_of(table: Path) -> dict[tuple[str, int], list[int]]:
    return {(row["topic"], row["partition"]): row["after"] for row in pq.read_table(table).to_pylist()}


def test_a_cluster_that_has_grown_is_rebalanced(cluster: tuple[str, ...], tmp_path: Path) -> None:
    folder, page = tmp_path / "plan", tmp_path / "report.html"
    report = json.loads(
        planned("rebalance", *cluster, "--out", str(folder), "--report", str(page), "-o", "json").stdout
    )
    assert {path.name for path in folder.iterdir()} == {
        "made-from.json",
        "plan.json",
        "plan.parquet",
        "rollback.json",
    }
    rows = json.loads((folder / "plan.json").read_text())["partitions"]
    assert {(row["topic"], row["partition"]): row["replicas"] for row in rows} == replicas_of(folder / "plan.parquet")
    assert (report["engine"], report["changed"]) == ("kernel", len(rows))
    replicas = [broker["after"]["replicas"] for broker in report["brokers"]]
    assert max(replicas) - min(replicas) <= 16
    assert 1 <= report["ratio"] < 1.5
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_what_is_planned_without_a_folder_is_the_same(cluster: tuple[str, ...], tmp_path: Path) -> None:
    planned("remove-brokers", "--brokers", "3", *cluster, "--out", f"{tmp_path}/plan.json")
    printed = planned("remove-brokers", "--brokers", "3", *cluster).stdout
    assert (tmp_path / "plan.json").read_text() == printed
    assert not any(3 in row["replicas"] for row in json.loads(printed)["partitions"])


def test_an_unknown_broker_is_told_and_nothing_is_written(cluster: tuple[str, ...], tmp_path: Path) -> None:
    arguments = ["remove-brokers", "--brokers", "99", *cluster, "--out", f"{tmp_path}/plan"]
    result = CliRunner().invoke(plan, arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: broker 99 is not in the snapshot: choose from 1, 2, 3, ")
    assert [path.name for path in tmp_path.iterdir()] == ["cluster"]


TWO_TOPICS = """{"brokers": [{"id": 1}, {"id": 2}, {"id": 3}], "partitions": [
{"topic": "orders", "partition": 0, "replicas": [1]}, {"topic": "clicks", "partition": 0, "replicas": [2]}]}"""


@pytest.mark.parametrize(
    ("topics", "line"),
    [
        ("ordrs", "there is no topic ordrs in the snapshot: did you mean orders?"),
        ("orders,klicks", "there is no topic klicks in the snapshot: did you mean clicks?"),
        ("orders,Clicks", "there is no topic Clicks in the snapshot: did you mean clicks?"),
        ("payments", "there is no topic payments in the snapshot: it has clicks, orders"),
        ("clik*", "no topic in the snapshot matches clik*: did you mean clicks?"),
        ("zz*", "no topic in the snapshot matches zz*: it has clicks, orders"),
    ],
)
@pytest.mark.parametrize("limit", [65_536, 1], ids=["one block", "a block each"])
def test_a_topic_that_is_not_there_is_told_and_nothing_is_written(
    topics: str, line: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_bridge.model.block.BLOCK_SIZE", limit)
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(TWO_TOPICS)
    arguments = ["set-replication-factor", "--replication-factor", "2", "--topics", topics]
    result = CliRunner().invoke(plan, [*arguments, "--snapshot", str(snapshot), "--out", f"{tmp_path}/plan.json"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"Error: {line}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot.json"]


def test_a_topic_may_be_named_twice_and_by_patterns(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(TWO_TOPICS)
    arguments = ("set-replication-factor", "--replication-factor", "2", "--topics", "ord*,orders,o?ders")
    done = planned(*arguments, "--snapshot", str(snapshot))
    assert [row["topic"] for row in json.loads(done.stdout)["partitions"]] == ["orders"]
