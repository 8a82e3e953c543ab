"""The disk of a simulated broker: survival, loss, failures, and notifications of its observer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from broker.config import BrokerConfig
from broker.kit import BrokerHandle
from broker.reference.run import run_reference_broker
from simulator import scheduling
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.disk import DIRECTORIES, Disk
from simulator.settings import Settings
from tests.broker.cluster import new_host
from tests.simulation.disks import Notes
from transport.messages import Record
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryZooKeeper

TP = TopicPartition("t", 0)
RECORDS = (Record(0, b"a"), Record(0, b"b"), Record(2, b"c"))


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def disk(notes: Notes) -> Disk:
    """Return a disk with one open log."""
    disk = Disk(notes, broker_id=4)
    disk.open(TP, "id-1").append(RECORDS)
    notes.lines.clear()
    return disk


def test_an_observer_is_told_what_a_broker_does(notes: Notes) -> None:
    disk = Disk(notes, broker_id=4)
    log = disk.open(TP, "id-1")
    log.append([])
    log.append(RECORDS)
    log.truncate(3)
    log.truncate(1)
    log.append([RECORDS[2]])
    disk.delete(TP, "id-2")
    disk.delete(TP, "id-1")
    with pytest.raises(OSError, match="Bad file descriptor"):
        log.append(RECORDS)
    assert notes.lines == [
        ("appended", 4, TP, "id-1", 0, RECORDS),
        ("truncated", 4, TP, "id-1", 1),
        ("appended", 4, TP, "id-1", 1, (RECORDS[2],)),
        ("deleted", 4, TP, "id-1"),
    ]


def test_a_dead_process_reaches_its_log_no_more_and_the_next_finds_all_of_it(disk: Disk, notes: Notes) -> None:
    dead = disk.logs[TP]
    disk.cut()
    with pytest.raises(OSError, match="Bad file descriptor"):
        dead.append([Record(3, b"d")])
    log = disk.open(TP, "id-1")
    dead.close()
    assert log.read(0, 1000, log.end_offset) == RECORDS
    assert log.latest_epoch == 2
    assert log.end_offset_for_epoch(1) == (0, 2)
    assert log.append([Record(3, b"d")]) == 3
    assert [line[0] for line in notes.lines] == ["appended"]


def test_a_log_that_is_opened_again_is_taken_from_who_had_it(disk: Disk) -> None:
    before = disk.logs[TP]
    disk.open(TP, "id-1")
    with pytest.raises(OSError, match="Bad file descriptor"):
        before.truncate(0)
    assert tuple(disk.logs[TP].records) == RECORDS


async def test_a_wiped_disk_is_empty_and_another(disk: Disk, notes: Notes) -> None:
    lost = disk.logs[TP]
    disk.fail()
    disk.wipe("new-disk")
    assert (disk.storage_id, disk.logs) == ("new-disk", {})
    assert disk.topic_id(TP) is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        lost.append([Record(3, b"d")])
    assert notes.lines == []
    assert disk.open(TP, "id-2").end_offset == 0


def test_a_log_directory_fails_alone(disk: Disk) -> None:
    other = TopicPartition(TP.topic, TP.partition + 1)
    disk.fail(TP.partition % DIRECTORIES)
    assert disk.has_failed
    with pytest.raises(OSError, match="Input/output error"):
        disk.open(TP, "id-1")
    assert disk.open(other, "id-1").end_offset == 0


async def test_on_a_failed_disk_nothing_works_until_it_is_mended(disk: Disk, notes: Notes) -> None:
    log = disk.logs[TP]
    disk.fail()
    with pytest.raises(OSError, match="Input/output error"):
        log.append([Record(3, b"d")])
    with pytest.raises(OSError, match="Input/output error"):
        log.read(0, 100, 3)
    with pytest.raises(OSError, match="Input/output error"):
        log.truncate(0)
    with pytest.raises(OSError, match="Input/output error"):
        disk.open(TP, "id-1")
    with pytest.raises(OSError, match="Input/output error"):
        disk.topic_id(TP)
    with pytest.raises(OSError, match="Input/output error"):
        disk.delete(TP, "id-1")
    assert notes.lines == []
    disk.mend()
    assert log.read(0, 1000, 3) == RECORDS


async def test_a_broker_announces_the_storage_that_it_is_given(disk: Disk, tmp_path: Path) -> None:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        config = BrokerConfig(4, tmp_path / "unused")
        run = partial(run_reference_broker, config, store=store, network=TcpNetwork(), host=new_host())
        handle: BrokerHandle = await nursery.start(partial(run, logs=disk, storage_id=disk.storage_id))
        [found] = await store.read([paths.broker(4)])
        assert found is not None
        assert formats.decode_broker(4, found.data, handle.broker_epoch).storage_id == disk.storage_id
        assert not (tmp_path / "unused").exists()
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("D7")
def test_a_topic_of_the_longest_name_lives_a_whole_life() -> None:
    name = "x" * 249
    first = f"{name}-0"

    async def live(cluster: SimulatedCluster) -> None:
        await cluster.create_topic(name, [(1, 2)])
        await cluster.produce(first, [b"x"])
        await cluster.reassign({first: (2, 3)})
        await cluster.until_moved(first)
        await cluster.until(lambda: not cluster.brokers[1].disk.logs, what="the end of the log that moved away")
        await cluster.delete_topic(name)
        await cluster.until(lambda: cluster.durable.topic(name) is None, what="the end of the topic")

    async def run() -> None:
        async with simulated_cluster(Settings(brokers=3)) as cluster:
            for _ in range(2):
                await live(cluster)
            assert all(not process.disk.logs for process in cluster.brokers.values())

    scheduling.run(run, seed=1)


async def test_a_directory_that_failed_before_the_process_started_is_not_in_use_until_the_next_one(disk: Disk) -> None:
    disk.fail(TP.partition % DIRECTORIES)
    in_use = []
    for _ in range(2):
        disk.cut()
        disk.begin()
        disk.mend()
        in_use.append((disk.is_in_use, disk.is_healthy(TP)))
    assert in_use == [(False, False), (True, True)]


def test_a_log_that_is_not_there_may_be_in_a_failed_directory(disk: Disk) -> None:
    elsewhere = TopicPartition("new", TP.partition + 1)
    assert disk.is_healthy(elsewhere)
    disk.fail(TP.partition % DIRECTORIES)
    assert not disk.is_healthy(elsewhere)
