"""The filters of Kafka's kafka-topics, on Klamm's brokers and on nodes that answer as Kafka's do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio

from klamm.cli.demo.task_cluster import task_cluster
from tests.cli.shell import Shell, bootstrap_of, run_klamm
from tests.kafka.scripted_nodes import Answer, ScriptedNodes, scripted_nodes
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.create_topics_response import CreatableTopicResult
from transport.kafka.messages.delete_topics_response import DeletableTopicResult
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.schema import Message

UNDER_REPLICATED, UNAVAILABLE = "--under-replicated-partitions", "--unavailable-partitions"
UNDER_MIN_ISR, AT_MIN_ISR = "--under-min-isr-partitions", "--at-min-isr-partitions"
MIN_ISRS = {"full": "1", "short": "2", "alone": "1", "__consumer_offsets": "2"}
LACKING = {
    UNDER_REPLICATED: ["__consumer_offsets", "short"],
    UNAVAILABLE: ["alone"],
    UNDER_MIN_ISR: ["__consumer_offsets", "alone", "short"],
    AT_MIN_ISR: ["alone"],
}
"""The topics that each filter lists while broker 3 is dead. A leader that dies alone stays in the ISR."""


def least_isrs(request: kafka.DescribeConfigsRequest) -> kafka.DescribeConfigsResponse:
    """Return min.insync.replicas of the topics asked for."""
    results = []
    for one in request.resources:
        entry = DescribeConfigsResourceResult("min.insync.replicas", MIN_ISRS[one.resource_name])
        results.append(DescribeConfigsResult(0, None, one.resource_type, one.resource_name, (entry,)))
    return kafka.DescribeConfigsResponse(results=tuple(results))


async def described(klamm: Shell, *words: str) -> list[str]:
    """Return the topics that `klamm topic describe` lists."""
    rows = json.loads(await klamm("topic", "describe", *words, "-o", "json"))
    return sorted({row["topic"] for row in rows})


@asynccontextmanager
async def klamms(folder: Path) -> AsyncIterator[Shell]:
    """Run a cluster of Klamm's whose broker 3 has died."""
    async with task_cluster(folder) as cluster:
        klamm = Shell(await bootstrap_of(cluster.store))
        for name, brokers in (("full", "1:2"), ("short", "3:1"), ("alone", "3"), ("__consumer_offsets", "3:1")):
            await klamm(
                *("topic", "create", name, "--replica-assignment", brokers),
                *("--config", f"min.insync.replicas={MIN_ISRS[name]}"),
            )
        await cluster.kill(3)
        with trio.fail_after(20):
            while len(json.loads(await klamm("broker", "list", "-o", "json"))) > 5:
                await trio.sleep(0.05)
        yield klamm


@asynccontextmanager
async def kafkas(_: Path) -> AsyncIterator[Shell]:
    """Run nodes 1 and 2, which describe such a cluster."""
    async with scripted_nodes(1, 2, answers={kafka.DescribeConfigsRequest: least_isrs}) as nodes:
        nodes.show("full", (1, 2))
        nodes.show("short", (1, 3), isr=(1,))
        nodes.show("alone", (3,))
        nodes.show("__consumer_offsets", (1, 3), isr=(1,))
        yield Shell(at(nodes))


def at(nodes: ScriptedNodes) -> str:
    """Return the addresses of nodes."""
    return ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)


@pytest.mark.parametrize("kind", [klamms, kafkas])
async def test_each_filter_lists_what_lacks_something(
    kind: Callable[[Path], AbstractAsyncContextManager[Shell]], tmp_path: Path
) -> None:
    async with kind(tmp_path) as klamm:
        assert {flag: await described(klamm, flag) for flag in LACKING} == LACKING
        assert await described(klamm, UNDER_MIN_ISR, "--exclude-internal") == ["alone", "short"]
        assert await described(klamm, UNDER_MIN_ISR, "full", "short") == ["short"]
        assert await klamm("topic", "describe", "full", UNDER_REPLICATED) == "no partition is under-replicated\n"
        assert "short" in await klamm("topic", "describe", "short", UNDER_REPLICATED)
        named = [row["topic"] for row in json.loads(await klamm("topic", "list", "--exclude-internal", "-o", "json"))]
        assert named == ["alone", "full", "short"]


async def test_two_filters_are_two_lists(klamm: Shell) -> None:
    said = await klamm("topic", "describe", UNDER_REPLICATED, AT_MIN_ISR, fails=True)
    assert f"Error: {UNDER_REPLICATED} and {AT_MIN_ISR} are different lists: ask for one at a time\n" in said


async def test_settings_that_may_not_be_read_are_told() -> None:
    def refuse(request: kafka.DescribeConfigsRequest) -> kafka.DescribeConfigsResponse:
        [one] = request.resources
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(code, "no", 2, one.resource_name),))

    async with scripted_nodes(1, answers={kafka.DescribeConfigsRequest: refuse}) as nodes:
        nodes.show("full", (1,))
        said = await Shell(at(nodes))("topic", "describe", UNDER_MIN_ISR, fails=True)
    need = "our principal needs DescribeConfigs on topic full"
    text = f"Error: not permitted for this topic: min.insync.replicas of topic full is not known: {need}\n"
    assert said == text


async def test_a_topic_may_be_there_or_not(klamm: Shell) -> None:
    create = ("topic", "create", "orders", "--partitions", "2", "--if-not-exists")
    assert await klamm(*create) == "created topic orders\n"
    assert await klamm(*create) == "topic orders exists already\n"
    await klamm(*create[:-1], fails=True)
    more = ("topic", "add-partitions", "nowhere", "--partitions", "3")
    assert await klamm(*more, "--if-exists") == "there is no topic nowhere\n"
    await klamm(*more, fails=True)
    assert await described(klamm, "orders", "nowhere", "--if-exists") == ["orders"]
    await klamm("topic", "describe", "orders", "nowhere", fails=True)
    deleted = await klamm("topic", "delete", "orders", "nowhere", "--if-exists")
    assert deleted == "deleted topic orders\nthere is no topic nowhere\n"
    await klamm("topic", "delete", "orders", fails=True)


async def test_kafka_says_whether_a_topic_is_there() -> None:
    there = CreatableTopicResult("orders", "", ErrorCode.TOPIC_ALREADY_EXISTS, "it is there")
    gone = DeletableTopicResult("orders", "", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it is not there")
    answers: dict[type[Message], Answer] = {
        kafka.CreateTopicsRequest: kafka.CreateTopicsResponse(topics=(there,)),
        kafka.DeleteTopicsRequest: kafka.DeleteTopicsResponse(responses=(gone,)),
    }
    async with scripted_nodes(1, answers=answers) as nodes:
        for words, code, said in (
            (("create", "orders", "--if-not-exists"), 0, "topic orders exists already\n"),
            (("create", "orders"), 1, "Error: it is there\n"),
            (("delete", "orders", "--if-exists"), 0, "there is no topic orders\n"),
            (("delete", "orders"), 1, "orders: refused: it is not there\n"),
        ):
            done = await run_klamm("topic", *words, "--bootstrap-server", at(nodes))
            assert (done.returncode, (done.stderr or done.stdout).decode()) == (code, said)
