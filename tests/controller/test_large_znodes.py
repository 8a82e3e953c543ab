"""Data as large as a znode can be is refused or set aside, and costs no controller its office."""

from __future__ import annotations

import re

import pytest
from attrs import evolve
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.events import PartitionModifications, TopicChange, ZkPartitionReassignment
from controller.handlers import leadership, reassignments
from tests.controller.conftest import Bench
from transport.errors import ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    CreateTopicsRequest,
    CreateTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    NewTopic,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set

REPLICAS = "leader.replication.throttled.replicas"
MAX_ZNODE_BYTES = 1_048_000
"""Nearly the largest znode that ZooKeeper accepts from others."""

SESSION_OF_OTHERS = 0


def replicas_of(bytes_: int) -> str:
    """Return a list of throttled replicas that is so long."""
    return ",".join(f"{number:06}:1" for number in range(bytes_ // 9))


async def alter(bench: Bench, operation: ConfigOperation, value: str) -> tuple[ErrorCode, str]:
    resource = ConfigResource(ConfigResourceType.TOPIC, "orders")
    altered = AlterConfigsResource(resource, (AlterableConfig(REPLICAS, operation, value),))
    answer = await bench.ask(IncrementalAlterConfigsRequest((altered,)), IncrementalAlterConfigsResponse)
    [result] = answer.resources
    return result.error, result.message


async def test_settings_that_would_outgrow_their_znode_are_refused(bench: Bench) -> None:
    await bench.start((1, 2))
    assert await alter(bench, ConfigOperation.SET, replicas_of(600_000)) == (ErrorCode.NONE, "")
    before = await bench.read(paths.topic_config("orders"))
    more = ",".join(f"{number}:2" for number in range(80_000))
    error, text = await alter(bench, ConfigOperation.APPEND, more)
    assert error is ErrorCode.INVALID_CONFIG
    assert "ZooKeeper's limit of 1 MB" in text
    assert await bench.read(paths.topic_config("orders")) == before
    assert (await alter(bench, ConfigOperation.SET, replicas_of(1_100_000)))[0] is ErrorCode.INVALID_CONFIG
    assert await alter(bench, ConfigOperation.DELETE, "") == (ErrorCode.NONE, "")


async def test_settings_may_take_all_the_room_that_a_refusal_names(bench: Bench) -> None:
    await bench.start((1, 2))
    value = replicas_of(1_100_000)
    _, text = await alter(bench, ConfigOperation.SET, value)
    [would_have, room] = re.findall(r"have (\d+) bytes.* leaves them (\d+):", text)[0]
    largest = value[: len(value) - int(would_have) + int(room)]
    # A number of a partition may begin with zeros, and takes what is left after the last whole entry.
    entries = largest[: largest.rindex(",")]
    exact = f"{entries},{1:0{len(largest) - len(entries) - 3}}:1"
    assert (await alter(bench, ConfigOperation.SET, f"{exact}1"))[0] is ErrorCode.INVALID_CONFIG
    assert await alter(bench, ConfigOperation.SET, exact) == (ErrorCode.NONE, "")


@pytest.mark.parametrize("validate_only", [True, False])
async def test_a_topic_that_has_no_room_beside_its_settings_is_refused(bench: Bench, validate_only: bool) -> None:
    await bench.start(brokers=(1, 2, 3))
    large = NewTopic("large", 50_000, 1, (), ((REPLICAS, replicas_of(600_000)),))
    topics = (large, NewTopic("others", 1, 1))
    answer = await bench.ask(CreateTopicsRequest(topics, validate_only=validate_only), CreateTopicsResponse)
    assert [topic.error for topic in answer.topics] == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert "ZooKeeper's limit of 1 MB" in answer.topics[0].message
    assert await bench.read(paths.topic_config("large")) is None


# --- by others ------------------------------------------------------------------------------------------------------


def written_by_others(bench: Bench, op: Create | Set) -> None:
    """Write more than our own store would send."""
    bench.seen.zookeeper.commit([op], SESSION_OF_OTHERS)


def topic_of(bytes_: int, topic_id: str | None = None) -> bytes:
    """Return a topic's znode of this size."""
    small = formats.TopicZnode({0: ReplicaAssignment((1, 2))}, topic_id, {"by others": ""})
    fill = "x" * (bytes_ - len(formats.encode_topic(small)))
    return formats.encode_topic(evolve(small, unknown={"by others": fill}))


@pytest.mark.parametrize("topic_id", [None, "id-of-large"])
async def test_a_topic_too_large_to_be_rewritten_is_set_aside(bench: Bench, topic_id: str | None) -> None:
    await bench.write_topic("orders", (1, 2))
    written_by_others(bench, Create(paths.topic("large"), topic_of(MAX_ZNODE_BYTES, topic_id)))
    with capture_logs() as logs:
        await bench.start()
    assert list(bench.context.topics) == ["orders"]
    assert [line["topic"] for line in logs if "set aside" in line["event"]] == ["large"]
    written_by_others(bench, Set(paths.topic("large"), topic_of(10_000, topic_id), -1))
    await bench.handle(PartitionModifications("large"))
    assert sorted(bench.context.topics) == ["large", "orders"]


async def test_a_topic_that_others_make_too_large_to_be_mended_stays_as_it_is_known(bench: Bench) -> None:
    await bench.start((1, 2), (2, 3))
    known = bench.context.topics["orders"]
    # Our partition 1 and our topic id are missing.
    written_by_others(bench, Set(paths.topic("orders"), topic_of(949_990), -1))
    await bench.handle(PartitionModifications("orders"))
    assert bench.context.topics["orders"] == known
    await bench.write_topic("others", (1, 2))
    await bench.handle(TopicChange())
    assert "others" in bench.context.topics


async def test_requests_too_large_to_be_rewritten_are_carried_out(bench: Bench) -> None:
    count = 20_000
    await bench.register(1, 2, 3, 4, 5, 6)
    await bench.write_topic("orders", *[(1, 2)] * 10)
    await bench.start(brokers=())
    targets = {TopicPartition("orders", number): (3, 4) for number in range(10)}
    refused = {TopicPartition("orders", number): (5, 6) for number in range(10, count)}
    data = formats.encode_reassign_partitions({**refused, **targets})
    assert len(data) > 1_000_000
    written_by_others(bench, Create(paths.REASSIGN_PARTITIONS, data))
    await bench.handle(ZkPartitionReassignment())
    assert await bench.requested_moves() == targets
    assert len(bench.context.reassigning) == 10


async def test_requests_stay_in_the_list_until_it_is_small_enough_to_be_rewritten(bench: Bench) -> None:
    count = 3_700
    await bench.register(1, 2, 3, 4, 5, 6)
    names = [f"{'x' * 230}-{number}" for number in range(10)]
    for name in names:
        await bench.write_topic(name, *[(1,)] * (count // 10))
    await bench.start(brokers=())
    tps = bench.context.partitions()
    targets = dict.fromkeys(tps, (3,))
    unknown = TopicPartition("nobody", 0)
    data = formats.encode_reassign_partitions({**targets, unknown: (3,)})
    assert len(data) > 1_000_000
    written_by_others(bench, Create(paths.REASSIGN_PARTITIONS, data))
    await bench.handle(ZkPartitionReassignment())
    assert len(bench.context.reassigning) == count
    assert await bench.requested_moves() == {**targets, unknown: (3,)}
    # What an administrator asks for would be forgotten at the next failover.
    error = await bench.move(tps[0], (4,))
    assert (error.error, "wait until some of the moves are done" in error.message) == (ErrorCode.INVALID_REQUEST, True)

    caught_up = tps[:300]
    for tp in caught_up:
        await bench.write_state(tp, replace(bench.context.leadership[tp], isr=(1, 3)))
    await bench.run(leadership.refresh(bench.context, caught_up))
    await bench.run(reassignments.finish(bench.context, caught_up[:50]))
    assert await bench.requested_moves() == {**targets, unknown: (3,)}
    await bench.run(reassignments.finish(bench.context, caught_up[50:]))
    assert await bench.requested_moves() == {**dict.fromkeys(tps[300:], (3,)), unknown: (3,)}
    await bench.handle(ZkPartitionReassignment())
    assert await bench.requested_moves() == dict.fromkeys(tps[300:], (3,))
