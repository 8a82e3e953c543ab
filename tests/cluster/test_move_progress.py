"""Slow moves are distinguished from stuck ones, before and after a failover; real ZooKeeper and processes."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from attrs import define

from broker.client import Producer
from klamm.cli.demo.clusters import log_dir
from tests.cluster.running import RealCluster
from tests.cluster.waiting import until
from transport.errors import ErrorCode
from transport.host import Host
from transport.messages import UNKNOWN, ReassignablePartition, ReassignmentDescription
from transport.metadata import TopicPartition
from transport.network import TcpNetwork

BROKERS = (1, 2, 3)
SLOW, STUCK = 2, 3
TO_SLOW, TO_STUCK = TopicPartition("orders", 0), TopicPartition("orders", 1)
RECORDS = 60_000
"""Followers here get one with each fetch, so that there is time to look."""

BATCH = 1000


@define
class CopyingCluster(RealCluster):
    """A topic of two partitions on broker 1 that are full of records."""

    async def begin(self) -> None:
        """Move one partition to each of the other brokers."""
        moves = [ReassignablePartition(*TO_SLOW, (SLOW,)), ReassignablePartition(*TO_STUCK, (STUCK,))]
        outcomes = (await self.admin.alter_partition_reassignments(moves)).partitions
        assert {outcome.error for outcome in outcomes} == {ErrorCode.NONE}

    async def describe(self) -> dict[TopicPartition, ReassignmentDescription]:
        described = await self.admin.describe_reassignments()
        return {each.tp: each for each in described.values()}

    async def log_ends(self, broker_id: int) -> dict[int, int]:
        """Return where a broker says that its logs end."""
        said = await self.admin.describe_log_dirs([broker_id])
        return {r.partition: r.log_end_offset for log_dir in said[broker_id].log_dirs for r in log_dir.replicas}

    def becomes(
        self, tp: TopicPartition, holds: Callable[[ReassignmentDescription], bool]
    ) -> Callable[[], Awaitable[bool]]:
        """Return a condition: what is told of a move."""

        async def does() -> bool:
            described = await self.describe()
            return tp in described and holds(described[tp])

        return does


@pytest.fixture
async def cluster(zookeeper: str, tmp_path: Path) -> AsyncIterator[CopyingCluster]:
    async with CopyingCluster.running(f"{zookeeper}/move-progress", tmp_path, standby=True) as cluster:
        for id_ in BROKERS:
            settings = ("--log-dir", str(log_dir(tmp_path, id_)), "--replica-fetch-max-bytes", "1")
            cluster.start(id_, "klamm", "broker", "run", *settings, "--controlled-shutdown-max-retries", "1")
        await cluster.until_live(BROKERS)
        await cluster.create_topic("orders", (1,), (1,))
        await fill(cluster)
        yield cluster


async def fill(cluster: CopyingCluster) -> None:
    brokers = (await cluster.admin.read_metadata([])).brokers
    async with Producer(TcpNetwork(), [(b.host, b.port) for b in brokers], host=Host()) as producer:
        for number in (0, 1):
            for _ in range(RECORDS // BATCH):
                await producer.send("orders", number, BATCH * [b"x" * 100])


@pytest.mark.requirement("B5", "B3")
async def test_slow_and_stuck_are_told_apart_and_the_next_controller_goes_on(cluster: CopyingCluster) -> None:
    assert await cluster.log_ends(1) == {0: RECORDS, 1: RECORDS}
    await cluster.begin()
    await until(cluster.becomes(TO_STUCK, lambda move: move.rate > 0))
    cluster.processes[STUCK].send_signal(signal.SIGSTOP)
    await until(cluster.becomes(TO_STUCK, lambda move: move.stalled_since_ms != UNKNOWN))
    stuck = (await cluster.describe())[TO_STUCK]
    assert stuck.waits_for == f"broker {STUCK}, which is not alive"
    assert stuck.start_time_ms <= stuck.stalled_since_ms
    assert (stuck.rate, stuck.eta_ms) == (0, UNKNOWN)

    await until(cluster.becomes(TO_SLOW, lambda move: min(move.rate, move.eta_ms) > 0))
    slow = (await cluster.describe())[TO_SLOW]
    assert slow.stalled_since_ms == UNKNOWN
    assert slow.waits_for.startswith(f"broker {SLOW}: ")
    [replica] = slow.progress
    assert 0 < replica.log_end_offset < RECORDS == replica.log_end_offset + replica.offset_lag
    assert 0 < replica.log_bytes < replica.leader_bytes
    assert (await cluster.log_ends(SLOW))[0] >= replica.log_end_offset

    await cluster.fail_over()
    await until(cluster.becomes(TO_SLOW, lambda move: move.rate > 0))
    later = (await cluster.describe())[TO_SLOW]
    assert (later.start_time_ms, later.czxid, later.setback) == (slow.start_time_ms, slow.czxid, "")
    assert later.progress[0].log_end_offset >= replica.log_end_offset
    assert (await cluster.describe())[TO_STUCK].waits_for == stuck.waits_for

    cluster.processes[STUCK].send_signal(signal.SIGCONT)
    await until(cluster.becomes(TO_STUCK, lambda move: move.rate > 0 and move.stalled_since_ms == UNKNOWN))
