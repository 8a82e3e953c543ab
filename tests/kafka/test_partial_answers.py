"""Answers and plans of a user who sees only some topics, on scripted nodes: in each format, live and from dumps."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import trio

from tests.cli.shell import run_klamm
from tests.kafka.hiding_nodes import denying, logs_of
from tests.kafka.scripted_nodes import Answer, ScriptedNodes, scripted_nodes
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from transport.kafka.schema import Message

LINE = (
    "this is only a part of the cluster (brokers have 2 partitions of 1 other topic): our principal needs Describe on "
    "all topics"
)
REFUSED = f"{LINE}; a plan needs the whole: get the permission, or plan for what is visible with --partial\n"


@asynccontextmanager
async def nodes() -> AsyncIterator[ScriptedNodes]:
    """Run three nodes with two topics, of which the user sees one."""
    answers: dict[type[Message], Answer] = {
        kafka.DescribeLogDirsRequest: logs_of("orders", "secret"),
        kafka.DescribeConfigsRequest: without_settings,
    }
    async with scripted_nodes(1, 2, 3, answers=answers) as cluster:
        for topic in ("orders", "secret"):
            cluster.show(topic, (1, 2), (2, 1))
        denying(cluster, {"orders"})
        yield cluster


def without_settings(request: kafka.DescribeConfigsRequest) -> kafka.DescribeConfigsResponse:
    """Return that no resource has a setting but its id, without which a broker would be a controller."""
    own = (DescribeConfigsResourceResult("node.id", "1"),)
    results = (DescribeConfigsResult(0, None, one.resource_type, one.resource_name, own) for one in request.resources)
    return kafka.DescribeConfigsResponse(results=tuple(results))


async def run(cluster: ScriptedNodes, *words: str) -> CompletedProcess[bytes]:
    """Run a command on the nodes."""
    at = ",".join(f"{host}:{port}" for host, port in cluster.bootstrap)
    return await run_klamm(*words, "--bootstrap-server", at)


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
@pytest.mark.parametrize("words", [("topic", "list"), ("topic", "describe"), ("broker", "list"), ("top", "--once")])
async def test_each_format_says_that_topics_are_hidden(words: tuple[str, ...], form: str) -> None:
    async with nodes() as cluster:
        done = await run(cluster, *words, "-o", form)
    line = b"this is only a part of the cluster: our principal needs Describe on all topics"
    assert (done.returncode, line in done.stderr) == (0, True), done.stderr
    assert (line in b" ".join(done.stdout.split())) is (form in {"json", "yaml"})


async def test_a_document_without_rows_says_so_on_stderr() -> None:
    async with nodes() as cluster:
        done = await run(cluster, "topic", "list", "secr*", "-o", "json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    assert b"this is only a part of the cluster" in done.stderr


@pytest.mark.parametrize("verb", ["list", "describe"])
@pytest.mark.parametrize("form", ["table", "json"])
async def test_moves_of_hidden_topics_are_not_denied(verb: str, form: str) -> None:
    moving = OngoingPartitionReassignment(0, (3, 1, 2), (3,), (1,))
    topics = tuple(OngoingTopicReassignment(topic, (moving,)) for topic in ("orders", "secret"))
    async with nodes() as cluster:
        for node in cluster.nodes.values():
            told = kafka.ListPartitionReassignmentsResponse(topics=topics)
            node.answers[kafka.ListPartitionReassignmentsRequest] = told
        done = await run(cluster, "reassignment", verb, "-o", form)
        named = await run(cluster, "reassignment", verb, "--topic", "orders", "-o", form)
        hidden = await run(cluster, "reassignment", verb, "--topic", "secret", "-o", form)
    line = b"this is only a part of the cluster: our principal needs Describe on all topics"
    assert (done.returncode, line in done.stderr, b"secret" in done.stdout) == (0, True, False), done.stderr
    assert (line in done.stdout) is (form == "json")
    assert (named.returncode, named.stderr) == (0, b"")
    text = b"Error: topic secret is hidden: our principal needs Describe on topic secret\n"
    assert (hidden.returncode, hidden.stderr) == (1, text)


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet"])
async def test_a_dump_of_a_part_is_planned_for_only_if_that_is_accepted(form: str, tmp_path: Path) -> None:
    dump, words = str(tmp_path / f"dump.{form}"), ("plan", "remove-brokers", "--brokers", "2", "-o", "json")
    async with nodes() as cluster:
        assert (await run(cluster, "state", "dump", "--format", form, "--out", dump)).returncode == 0
    plan = ("--snapshot", dump, "--out", str(tmp_path / "plan.json"))
    refused = await run_klamm(*words, *plan)
    assert (refused.returncode, refused.stderr.decode()) == (1, f"Error: {dump}: {REFUSED}")
    assert not (tmp_path / "plan.json").exists()
    done = await run_klamm(*words, "--partial", *plan)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["notes"][0] == f"planned for what is visible: {LINE}"


async def test_a_rollout_is_not_planned_again_for_a_part_unless_that_is_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    async with nodes() as cluster:
        denying(cluster, None)
        planned = await run(cluster, "plan", "remove-brokers", "--brokers", "2", "--out", str(folder))
        assert planned.returncode == 0, planned.stderr.decode()
        before = await trio.Path(folder / "plan.json").read_bytes()
        # The partitions have changed since, and the user sees less than the one who planned.
        cluster.show("orders", (3, 2), (2, 3))
        denying(cluster, {"orders", "secret"})
        refused = await run(cluster, "rollout", "run", str(folder), "--replan")
        assert (refused.returncode, b"a plan needs the whole" in refused.stderr) == (1, True), refused.stderr
        assert await trio.Path(folder / "plan.json").read_bytes() == before
        wrong = await run(cluster, "rollout", "run", str(folder), "--partial")
        assert (wrong.returncode, b"--partial is about the new plan of --replan" in wrong.stderr) == (2, True)
