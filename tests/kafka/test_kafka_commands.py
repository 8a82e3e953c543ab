"""Commands on a cluster of Kafka's, by what its nodes answer over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from klamm.cli import main
from tests.cli.shell import run_klamm
from tests.kafka.scripted_nodes import Answer, ScriptedNodes, scripted_nodes
from tests.kafka.test_kafka_admin import no_settings
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from transport.kafka.messages.elect_leaders_response import PartitionResult, ReplicaElectionResult
from transport.kafka.schema import Message
from transport.zookeeper_server import free_port

FREE = 1_000_000


def logs(*numbers: int) -> kafka.DescribeLogDirsResponse:
    """Return a log directory with logs of these partitions, of a thousand bytes each."""
    partitions = tuple(DescribeLogDirsPartition(number, 1_000) for number in numbers)
    topics = (DescribeLogDirsTopic("orders", partitions),) if numbers else ()
    return kafka.DescribeLogDirsResponse(results=(DescribeLogDirsResult(0, "/data", topics, 2 * FREE, FREE),))


@asynccontextmanager
async def cluster(*ids: int) -> AsyncIterator[ScriptedNodes]:
    """Run nodes of which the first two have six partitions."""
    answers: dict[type[Message], Answer] = {
        kafka.DescribeConfigsRequest: no_settings,
        kafka.DescribeLogDirsRequest: logs(),
    }
    async with scripted_nodes(*ids, answers=answers) as nodes:
        nodes.show("orders", *[(1, 2), (2, 1)] * 3)
        for id_ in (1, 2):
            nodes.nodes[id_].answers[kafka.DescribeLogDirsRequest] = logs(*range(6))
        yield nodes


async def output(nodes: ScriptedNodes, *words: str) -> str:
    """Run a command on all nodes, and return what it prints."""
    at = ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)
    done = await run_klamm(*words, "--bootstrap-server", at)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def bytes_at_3(report: str | bytes) -> int:
    """Return the bytes that broker 3 has after a plan that gives it four replicas."""
    [broker] = [one for one in json.loads(report)["brokers"] if one["id"] == 3]
    assert broker["after"]["replicas"] == 4
    size: int = broker["after"]["bytes"]
    return size


async def test_what_kafka_does_not_tell_is_unknown() -> None:
    async with cluster(1, 2) as nodes:
        found = json.loads(await output(nodes, "cluster", "describe", "-o", "json"))
    assert (found["controller"], found["partitions"], found["under_min_isr"], found["controller_epoch"]) == (
        1,
        6,
        None,
        None,
    )
    assert [(broker["id"], broker["leaders"], broker["epoch"]) for broker in found["brokers"]] == [
        (1, 3, None),
        (2, 3, None),
    ]


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet"])
async def test_planning_reads_a_dump_of_a_running_cluster(form: str, tmp_path: Path) -> None:
    dump, plan = str(tmp_path / f"dump.{form}"), str(tmp_path / "plan.json")
    async with cluster(1, 2, 3) as nodes:
        await output(nodes, "state", "dump", "--format", form, "--out", dump)
    loads = ("--loads", dump) if form == "parquet" else ()
    done = await run_klamm(
        "plan", "add-brokers", "--brokers", "3", "--snapshot", dump, *loads, "-o", "json", "--out", plan
    )
    assert done.returncode == 0, done.stderr.decode()
    assert bytes_at_3(done.stdout) == (4_000 if loads else 0)


async def test_a_plan_reads_the_running_cluster(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    async with cluster(1, 2, 3) as nodes:
        printed = await output(nodes, "plan", "add-brokers", "--brokers", "3", "-o", "json", "--out", str(plan))
    assert bytes_at_3(printed) == 4_000
    assert len(json.loads(plan.read_bytes())["partitions"]) == 4


async def test_a_disk_that_is_told_is_not_exceeded(tmp_path: Path) -> None:
    async with cluster(1, 2, 3) as nodes:
        full = DescribeLogDirsResult(0, "/data", (), 2 * FREE, 0)
        nodes.nodes[3].answers[kafka.DescribeLogDirsRequest] = kafka.DescribeLogDirsResponse(results=(full,))
        at = ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)
        plan = ("plan", "add-brokers", "--brokers", "3", "--out", str(tmp_path / "plan.json"))
        done = await run_klamm(*plan, "--bootstrap-server", at)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads((tmp_path / "plan.json").read_bytes())["partitions"] == []


def elected(*outcomes: tuple[ErrorCode, int]) -> kafka.ElectLeadersResponse:
    """Return the outcomes of elections of so many partitions each."""
    codes = [code for code, count in outcomes for _ in range(count)]
    rows = tuple(PartitionResult(number, code, None) for number, code in enumerate(codes))
    return kafka.ElectLeadersResponse(replica_election_results=(ReplicaElectionResult("orders", rows),))


async def test_elections_of_all_partitions_are_summed_up_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    everywhere = ("leader", "elect", "--election-type", "preferred", "--all-topic-partitions")
    async with cluster(1, 2) as nodes:
        nodes.nodes[1].answers[kafka.ElectLeadersRequest] = elected(
            (ErrorCode.NONE, 2), (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 1_327), (ErrorCode.ELECTION_NOT_NEEDED, 9)
        )
        at = ("--bootstrap-server", ",".join(f"{host}:{port}" for host, port in nodes.bootstrap))
        done = await run_klamm(*everywhere, *at)
        documented = await run_klamm(*everywhere, *at, "-o", "json")
    reason = "the first replica is not alive, or not in the ISR"
    rows = [line.split("  ") for line in done.stdout.decode().splitlines()[2:]]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["2", "elected", "-", "orders-0, orders-1"],
        ["1,327", "failed", reason, "orders-2, orders-3, orders-4 and 1,324 more"],
    ]
    assert done.stderr.decode() == f"Error: 1327 of 1329 elections failed: {reason}\n"
    assert len(json.loads(documented.stdout)) == 1_329


# --- state dump without options -----------------------------------------------------------------------------------


async def dumped(monkeypatch: pytest.MonkeyPatch, zookeeper: str, bootstrap: str) -> tuple[int, str, str]:
    """Run `klamm state dump` without options where these are the default addresses."""
    for name, address in (("DEFAULT_ZOOKEEPER", zookeeper), ("DEFAULT_BOOTSTRAP", bootstrap)):
        monkeypatch.setattr(f"klamm.cli.connect.{name}", address)
        monkeypatch.setattr(f"klamm.cli.state.{name}", address)
    done = await trio.to_thread.run_sync(partial(CliRunner().invoke, main, ["state", "dump"]))
    return done.exit_code, done.stdout, done.stderr


async def test_a_dump_without_options_asks_brokers_where_no_zookeeper_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    async with cluster(1, 2) as nodes:
        there = f"127.0.0.1:{nodes.nodes[1].port}"
        code, printed, said = await dumped(monkeypatch, nobody, there)
    assert (code, said) == (0, f"no ZooKeeper listens at {nobody}: reading the cluster at {there}\n")
    assert [broker["id"] for broker in json.loads(printed)["brokers"]] == [1, 2]


async def test_a_dump_where_nothing_runs_says_which_option_names_what(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (f"127.0.0.1:{free_port()}" for _ in range(2))
    text = f"neither a ZooKeeper at {one} nor a broker at {other} listens: name the brokers with --bootstrap-server"
    refused = 1, "", f"Error: {text}, or a ZooKeeper with --zookeeper\n"
    assert await dumped(monkeypatch, one, other) == refused


# --- disks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shared", "disk"), [("true", FREE), ("false", 2 * FREE)])
async def test_a_profile_answers_the_question_about_shared_disks(
    shared: str, disk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "klamm").mkdir()
    alike = tuple(DescribeLogDirsResult(0, path, (), 2 * FREE, FREE) for path in ("/a", "/b"))
    async with cluster(1, 2, 3) as nodes:
        nodes.nodes[3].answers[kafka.DescribeLogDirsRequest] = kafka.DescribeLogDirsResponse(results=alike)
        at = f"127.0.0.1:{nodes.nodes[1].port}"
        profile = f'[lab]\nbootstrap-server = "{at}"\nshared-disks = {shared}\n'
        (tmp_path / "klamm" / "profiles.toml").write_text(profile)
        asked = await run_klamm("state", "dump", "--bootstrap-server", at)
        (tmp_path / "klamm" / "profiles.toml").write_text(profile.replace("shared", "# shared"))
        asked_with_profile = await run_klamm("state", "dump", "--profile", "lab")
        (tmp_path / "klamm" / "profiles.toml").write_text(profile)
        settled = await run_klamm("state", "dump", "--profile", "lab")
        plan = ("plan", "add-brokers", "--brokers", "3", "--profile", "lab", "-o", str(tmp_path / "plan.json"))
        planned = await run_klamm(*plan)
    file = tmp_path / "klamm" / "profiles.toml"
    lines = "`shared-disks = true` if they are, `shared-disks = false` if not"
    whole = f'add lines for a profile to {file}, `[NAME]`, `bootstrap-server = "{at}"`, and {lines}, and give --profile'
    assert whole in asked.stderr.decode()
    assert f"add a line under [lab] in {file}, {lines}, or give" in asked_with_profile.stderr.decode()
    assert (settled.returncode, settled.stderr) == (0, b"")
    assert [one["disk"] for one in json.loads(settled.stdout)["brokers"] if one["id"] == 3] == [disk]
    assert planned.returncode == 0, planned.stderr
    assert b"one disk" not in planned.stderr


@pytest.mark.parametrize("command", ["produce", "consume"])
async def test_records_are_for_kafkas_own_clients(command: str) -> None:
    async with cluster(1, 2) as nodes:
        at = f"127.0.0.1:{nodes.nodes[1].port}"
        done = await run_klamm(command, "orders", "--bootstrap-server", at)
    text = f"Error: {at} is Apache Kafka: this command is for Klamm's brokers, use a client of Kafka's\n"
    assert (done.returncode, done.stderr.decode()) == (1, text)
