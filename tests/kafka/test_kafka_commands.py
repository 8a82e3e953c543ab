"""Commands on a cluster of Kafka's, by what its nodes answer over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.shell import run_klamm
from tests.kafka.scripted_nodes import Answer, ScriptedNodes, scripted_nodes
from tests.kafka.test_kafka_admin import no_settings
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from transport.kafka.schema import Message

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
        await output(nodes, "state", "dump", "--format", form, "--output", dump)
    loads = ("--loads", dump) if form == "parquet" else ()
    done = await run_klamm("plan", "add-brokers", "--brokers", "3", "--snapshot", dump, *loads, "--json", "-o", plan)
    assert done.returncode == 0, done.stderr.decode()
    assert bytes_at_3(done.stdout) == (4_000 if loads else 0)


async def test_a_plan_reads_the_running_cluster(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    async with cluster(1, 2, 3) as nodes:
        printed = await output(nodes, "plan", "add-brokers", "--brokers", "3", "--json", "-o", str(plan))
    assert bytes_at_3(printed) == 4_000
    assert len(json.loads(plan.read_bytes())["partitions"]) == 4


async def test_a_disk_that_is_told_is_not_exceeded(tmp_path: Path) -> None:
    async with cluster(1, 2, 3) as nodes:
        full = DescribeLogDirsResult(0, "/data", (), 2 * FREE, 0)
        nodes.nodes[3].answers[kafka.DescribeLogDirsRequest] = kafka.DescribeLogDirsResponse(results=(full,))
        at = ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)
        plan = ("plan", "add-brokers", "--brokers", "3", "-o", str(tmp_path / "plan.json"))
        done = await run_klamm(*plan, "--bootstrap-server", at)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads((tmp_path / "plan.json").read_bytes())["partitions"] == []


@pytest.mark.parametrize("command", ["produce", "consume"])
async def test_records_are_for_kafkas_own_clients(command: str) -> None:
    async with cluster(1, 2) as nodes:
        at = f"127.0.0.1:{nodes.nodes[1].port}"
        done = await run_klamm(command, "orders", "--bootstrap-server", at)
    text = f"Error: {at} is Apache Kafka: this command is for Klamm's brokers, use a client of Kafka's\n"
    assert (done.returncode, done.stderr.decode()) == (1, text)
