"""The dump of a running cluster: sizes, disks, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.monitoring.cluster_dump import dump_of
from transport.errors import ErrorCode
from transport.kafka.volume import Volume
from transport.messages import UNKNOWN, BrokerEndpoint, LogDir, LogDirReplica, MetadataResponse, PartitionState
from transport.metadata import LEADER_DURING_DELETE


def state(number: int, leader: int = 1, topic: str = "orders") -> PartitionState:
    """Return a partition on brokers 1 and 2."""
    return PartitionState(topic, "", number, UNKNOWN, leader, 7, (1,), UNKNOWN, (1, 2))


def log(number: int, size: int) -> LogDirReplica:
    """Return a log of a partition."""
    return LogDirReplica("orders", "", number, size, UNKNOWN, 0)


METADATA = MetadataResponse(
    BrokerEndpoint(1, "one", 91),
    UNKNOWN,
    (BrokerEndpoint(1, "one", 91, "a"), BrokerEndpoint(2, "two", 92)),
    (state(1), state(0), state(0, LEADER_DURING_DELETE, "old")),
)
FULL = BrokerLogDirs((LogDir("/a", ErrorCode.NONE, (log(0, 50), log(1, 7))),), volumes={"/a": Volume(1_000, 400)})


def test_partitions_have_the_size_that_their_leader_tells() -> None:
    follower = BrokerLogDirs((LogDir("/b", ErrorCode.NONE, (log(0, 60),)),), volumes={"/b": Volume(1_000, 400)})
    found = dump_of(METADATA, {1: FULL, 2: follower}, {METADATA.partitions[0].topic: 2})
    assert found.partitions[0]["min_insync_replicas"] == 2
    assert [(row["partition"], row["bytes"], row["log_dirs"]) for row in found.partitions] == [
        (0, 50, ["/a", "/b"]),
        (1, 7, ["/a", None]),
    ]
    assert [broker["disk"] for broker in found.others["brokers"]] == [457, 460]
    assert found.others["brokers"][0]["log_dirs"] == [
        {"path": "/a", "error": None, "bytes": 57, "total_bytes": 1_000, "usable_bytes": 400}
    ]
    assert (found.others["delete_topics"], found.others["controller"]) == (["old"], {"id": None, "epoch": None})
    assert found.gaps == []


def test_ids_are_told_where_they_are_known() -> None:
    others = replace(state(0), topic_id="id-1"), state(0, topic="clicks")
    found = dump_of(replace(METADATA, partitions=others), {}, cluster_id="ours")
    assert found.others["cluster_id"] == "ours"
    assert {row["topic"]: row["topic_id"] for row in found.partitions} == {"orders": "id-1", "clicks": None}
    assert dump_of(METADATA, {}).others["cluster_id"] is None


def test_the_largest_replica_stands_for_a_leader_that_does_not_tell() -> None:
    found = dump_of(METADATA, {1: BrokerLogDirs(fault="no"), 2: FULL})
    assert [row["bytes"] for row in found.partitions] == [50, 7]
    assert found.gaps == ["the logs of some brokers are not known (broker 1: no)"]


def test_sizes_that_nobody_tells_are_unknown_and_no_loads() -> None:
    silent = BrokerLogDirs(fault="no answer")
    found = dump_of(METADATA, {1: silent, 2: silent})
    assert [row["bytes"] for row in found.partitions] == [None, None]
    assert list(found.loads()) == []
    assert found.gaps[1] == "the sizes of 2 partitions are not known"


SAME = "some of its log directories may be on one disk"
OLD = "the broker does not tell how large its disks are"


@pytest.mark.parametrize(
    ("volumes", "disk", "why"),
    [
        ({"/a": Volume(1_000, 400), "/b": Volume(1_000, 300)}, 757, ""),
        ({"/a": Volume(1_000, 400), "/b": Volume(2_000, 400)}, 857, ""),
        ({"/a": Volume(1_000, 400), "/b": Volume(1_000, 391)}, None, SAME),
        ({"/a": Volume(1_000, 400)}, None, OLD),
        ({}, None, OLD),
    ],
)
def test_a_disk_is_known_if_its_directories_share_nothing(
    volumes: Mapping[str, Volume], disk: int | None, why: str
) -> None:
    dirs = (*FULL.log_dirs, LogDir("/b", ErrorCode.NONE, ()), LogDir("/c", ErrorCode.KAFKA_STORAGE_ERROR, ()))
    found = dump_of(METADATA, {1: BrokerLogDirs(dirs, volumes=volumes)}, disks_remedy="say so")
    assert found.others["brokers"][0]["disk"] == disk
    cure = "give it with --brokers-table to plan with it"
    if why == SAME:
        cure = f"say so, or {cure}"
    assert found.gaps == ([f"the disk of broker 1 is not known: {why}: {cure}"] if why else [])
