"""A move of 500 partitions between eight brokers under load, while a controller and a broker are killed.

`python -m tests.cluster.test_great_move` measures it; `make soak` does.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import define, field, frozen

from controller.admin.client import AdminClient
from controller.admin.moves import MoveStatus, MoveWatch, Targets
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from tests.cluster.moving_load import MovingLoad, Writing, log_faults, until_deleted
from tests.cluster.waiting import until, until_controller, until_live
from transport.errors import ErrorCode
from transport.messages import (
    UNKNOWN,
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    ReassignablePartition,
)
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

BROKERS: Final = range(1, 9)
FIRST, SECOND = 1001, 1002
VICTIM: Final = 5
"""A broker that some partitions come to and others leave."""

TOPICS: Final = tuple(f"topic-{number}" for number in range(10))
PARTITIONS: Final = 50
"""Of each topic."""

RECORD_BYTES: Final = 1_000
RECORDS_BEFORE: Final = 20
"""In each partition, which makes 20 KB."""

BYTES_PER_SECOND: Final = 200_000
"""The bytes that a broker copies; a move to it then takes 20 s."""

WRITING: Final = Writing(TOPICS, PARTITIONS, batch=10, record_bytes=0, batches_per_second=100)


@define
class Seen:
    """The moves as an administrator sees them, look after look."""

    looks: list[tuple[float, MoveStatus]] = field(factory=list)

    async def follow(self, admin: AdminClient, targets: Targets) -> None:
        async for status in MoveWatch(admin, targets).follow():
            self.looks.append((trio.current_time(), status))

    def completed(self) -> list[int]:
        return [len(status.ended) for _, status in self.looks]

    async def until_copied(self, share: float) -> None:
        async def is_it() -> bool:
            copied, to_copy = (self.looks[-1][1].copied, self.looks[-1][1].to_copy) if self.looks else (0, 0)
            return to_copy > 0 and copied >= share * to_copy

        await until(is_it)

    def unexplained(self) -> list[tuple[int, int]]:
        """Return the copied bytes before and after each look that had less, and no reason for it."""
        both = pairwise(status for _, status in self.looks)
        return [(old.copied, new.copied) for old, new in both if new.copied < old.copied and not new.setbacks]

    def eta_at_half_time(self) -> tuple[float, float]:
        """Return how long the rest was to take when half was copied, and how long it took, in seconds."""
        end = self.looks[-1][0]
        then, status = next((at, s) for at, s in self.looks if s.copied >= s.to_copy / 2 and s.eta_ms != UNKNOWN)
        return status.eta_ms / 1000, end - then


async def create_topics(admin: AdminClient) -> None:
    answer = await admin.create_topics([NewTopic(name, PARTITIONS, 3) for name in TOPICS])
    assert {item.error for item in answer.topics} == {ErrorCode.NONE}


async def throttle(admin: AdminClient) -> None:
    """Let every broker copy no faster than that until a replica is in the ISR."""

    def to(name: str, value: object) -> AlterableConfig:
        return AlterableConfig(name, ConfigOperation.SET, str(value))

    brokers = ConfigResource(ConfigResourceType.BROKER, "")
    wanted = [AlterConfigsResource(brokers, (to("follower.replication.throttled.rate", BYTES_PER_SECOND),))]
    for name in TOPICS:
        topic = ConfigResource(ConfigResourceType.TOPIC, name)
        wanted.append(AlterConfigsResource(topic, (to("follower.replication.throttled.replicas", "*"),)))
    assert {item.error for item in await admin.incremental_alter_configs(wanted)} == {ErrorCode.NONE}


async def targets_of(admin: AdminClient) -> dict[TopicPartition, tuple[int, ...]]:
    """Return for every partition three brokers of which it has at most one: those after its own."""
    states = (await admin.read_metadata()).partitions
    return {state.tp: shifted(state.replicas) for state in states}


def shifted(replicas: Sequence[int]) -> tuple[int, ...]:
    free = [broker for broker in (*BROKERS, *BROKERS) if broker not in replicas]
    start = (replicas[0] * 3) % len(free)
    return tuple(dict.fromkeys((*free[start:], *free)))[: len(replicas)]


async def kill_some(cluster: ProcessCluster, seen: Seen) -> None:
    await seen.until_copied(0.1)
    await cluster.kill(FIRST)
    await seen.until_copied(0.2)
    await cluster.kill(VICTIM)
    cluster.start_brokers([VICTIM])


@frozen
class MoveOutcome:
    """The result of the move. Rates are in records per second, times in seconds."""

    seen: Seen
    faults: list[str]
    records_per_second: float


async def move(zookeeper: str, data_dir: Path) -> MoveOutcome:
    """Move all partitions, with a throttle so that it takes its time, and compare the logs when it is over."""
    async with open_zookeeper(zookeeper) as store, stopping(ProcessCluster(store, data_dir, zookeeper)) as cluster:
        cluster.start(FIRST, "klamm", "controller", "run")
        await until_controller(store, FIRST)
        cluster.start(SECOND, "klamm", "controller", "run")
        cluster.start_brokers(BROKERS)
        admin = AdminClient(TcpNetwork(), (), store, 60)
        await until_live(admin, BROKERS)
        load = MovingLoad([(broker.host, broker.port) for broker in (await admin.read_metadata()).brokers], WRITING)
        await create_topics(admin)
        await load.fill(RECORDS_BEFORE, RECORD_BYTES)
        await throttle(admin)
        targets = await targets_of(admin)
        seen, before = Seen(), load.total()
        async with trio.open_nursery() as nursery:
            load.begin(nursery)
            wanted = [ReassignablePartition(*tp, target) for tp, target in targets.items()]
            answer = await admin.alter_partition_reassignments(wanted)
            assert {item.error for item in answer.partitions} == {ErrorCode.NONE}
            nursery.start_soon(kill_some, cluster, seen)
            await seen.follow(admin, targets)
            load.stop()
        await until_deleted(store)
        await cluster.stop_brokers()
    rate = (load.total() - before) / (seen.looks[-1][0] - seen.looks[0][0])
    return MoveOutcome(seen, log_faults(data_dir, BROKERS, targets, load.acknowledged), rate)


@pytest.mark.soak
@pytest.mark.requirement("A1", "A8", "B5")
async def test_nothing_is_lost_and_no_step_is_taken_back(zookeeper: str, tmp_path: Path) -> None:
    outcome = await move(f"{zookeeper}/great-move", tmp_path)
    assert outcome.faults == []
    assert outcome.seen.completed() == sorted(outcome.seen.completed())
    assert outcome.seen.completed()[-1] == len(TOPICS) * PARTITIONS
    assert outcome.seen.unexplained() == []
    assert max(status.copied for _, status in outcome.seen.looks) >= 3 * RECORDS_BEFORE * RECORD_BYTES


async def measure() -> int:
    """Print what has to do with time, which no test asserts; return 1 if the estimate was off by a factor of two."""
    with tempfile.TemporaryDirectory() as directory:
        async with development_zookeeper(Path(directory) / "zookeeper") as server:
            outcome = await move(server.address, Path(directory))
    told, took = outcome.seen.eta_at_half_time()
    print(
        f"{len(TOPICS) * PARTITIONS} partitions moved in {outcome.seen.looks[-1][0] - outcome.seen.looks[0][0]:.1f} s"
    )
    print(f"{outcome.records_per_second:.0f} records/s acknowledged meanwhile; faults: {outcome.faults or 'none'}")
    print(f"when half was copied the rest was to take {told:.1f} s; it took {took:.1f} s")
    return int(bool(outcome.faults) or not took / 2 <= told <= took * 2)


if __name__ == "__main__":
    sys.exit(trio.run(measure))
