"""Rows that others write into a real ZooKeeper, or close with their own ACL: processes continue without them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from controller.admin.client import AdminClient
from controller.monitoring import state_dump
from klamm.cli.demo.clusters import CONTROLLERS, log_dir
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from tests.cluster.waiting import until, until_controller, until_live
from tests.kit.acls import give_away, give_back
from transport.errors import ErrorCode
from transport.messages import NewTopic, PartitionError, ReassignablePartition
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import ANY_VERSION, Create, MetadataStore, Set
from transport.store.zookeeper import open_zookeeper

FIRST, SECOND = CONTROLLERS
BROKERS = (1, 2, 3)
OURS, THEIRS = TopicPartition("ours", 0), TopicPartition("theirs", 0)
STANDARD_BASE64 = "ab/d+fgAAAAAAAAAAAAAAA=="
HUGE = 10**30


def start(cluster: ProcessCluster) -> None:
    cluster.start(FIRST, "klamm", "controller", "run")
    for broker_id in BROKERS:
        where = ("--log-dir", str(log_dir(cluster.data_dir, broker_id)))
        cluster.start(broker_id, "klamm", "broker", "run", *where)


async def epoch_of(store: MetadataStore) -> int:
    [znode] = await store.read([paths.CONTROLLER_EPOCH])
    assert znode is not None
    return formats.decode_controller_epoch(znode.data)


async def fail_over(cluster: ProcessCluster, store: MetadataStore) -> None:
    """Replace the first controller by the second, whatever stands in its way."""
    cluster.start(SECOND, "klamm", "controller", "run")
    await cluster.kill(FIRST)
    await until_controller(store, SECOND)


async def create(admin: AdminClient, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
    [created] = (await admin.create_topics([NewTopic(tp.topic, 1, len(replicas), (replicas,))])).topics
    assert created.error is ErrorCode.NONE
    await until(lambda: is_on(admin, tp, replicas))


async def move(admin: AdminClient, tp: TopicPartition, replicas: tuple[int, ...]) -> PartitionError:
    wanted = ReassignablePartition(*tp, replicas)
    [result] = (await admin.alter_partition_reassignments([wanted])).partitions
    return result


async def is_on(admin: AdminClient, tp: TopicPartition, replicas: tuple[int, ...]) -> bool:
    """Return whether a partition is on these brokers, all in sync, and led by one of them."""
    partitions = (await admin.read_metadata([tp.topic])).partitions
    return any(p.replicas == replicas and {*p.isr} == {*replicas} and p.leader in replicas for p in partitions)


@pytest.mark.requirement("D1", "D7")
async def test_topics_of_somebody_else_keep_nobody_from_office(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/foreign-acls"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        start(cluster)
        await until_controller(store, FIRST)
        admin = AdminClient(TcpNetwork(), [], store, 60)
        await until_live(admin, BROKERS)
        for tp in (OURS, THEIRS):
            await create(admin, tp, (1, 2))

        # While it is in office: what concerns the topic is refused, all else is done.
        epoch = await epoch_of(store)
        await give_away(address, paths.topic(THEIRS.topic))
        refused = await move(admin, THEIRS, (2, 3))
        assert refused.error is not ErrorCode.NONE
        assert "see the controller's log" in refused.message
        assert (await move(admin, OURS, (2, 3))).error is ErrorCode.NONE
        await until(lambda: is_on(admin, OURS, (2, 3)))
        assert await epoch_of(store) == epoch

        # And for who takes office after it.
        await fail_over(cluster, store)
        await until_live(admin, BROKERS)
        assert (await move(admin, OURS, (1, 3))).error is ErrorCode.NONE
        await until(lambda: is_on(admin, OURS, (1, 3)))
        await create(admin, TopicPartition("later", 0), (3, 1))
        assert await epoch_of(store) == epoch + 1
        shown = (await state_dump.dump(store))["undecodable"]
        assert shown == [f"{paths.topic(THEIRS.topic)}: may not be read: its ACL forbids it to this identity"]

        # Given back it counts again, as soon as it is written: no watch sees an ACL change.
        await give_back(address, paths.topic(THEIRS.topic))
        [znode] = await store.read([paths.topic(THEIRS.topic)])
        assert znode is not None
        await store.multi([Set(paths.topic(THEIRS.topic), znode.data, znode.stat.version)])
        await until(lambda: is_on(admin, THEIRS, (1, 2)))
        assert (await move(admin, THEIRS, (2, 3))).error is ErrorCode.NONE
        await until(lambda: is_on(admin, THEIRS, (2, 3)))
        assert await epoch_of(store) == epoch + 1
        logs = [(tmp_path / f"{id_}.log").read_text() for id_ in CONTROLLERS]
    assert "may not be touched: its ACL forbids it" in logs[0]
    assert not any("resigning after a fault" in log or "loading again" in log for log in logs)


@pytest.mark.requirement("D7")
async def test_numbers_beyond_all_bounds_cost_neither_office_nor_channels(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/foreign-rows"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        start(cluster)
        await until_controller(store, FIRST)
        admin = AdminClient(TcpNetwork(), [], store, 60)
        await until_live(admin, BROKERS)
        for tp in (OURS, THEIRS):
            await create(admin, tp, (1, 2))
        epoch = await epoch_of(store)

        state = {"controller_epoch": epoch, "leader": 1, "version": 1, "leader_epoch": 2**64 - 1, "isr": [1, 1]}
        broker = {"version": 5, "endpoints": [f"KLAMM://127.0.0.1:{HUGE}"]}
        slashed = {"version": 3, "topic_id": STANDARD_BASE64, "partitions": {"0": [1, 2]}}
        empty = {"version": 1, "partitions": {"0": [], str(HUGE): [1]}}
        await store.multi(
            [
                Set(paths.partition_state(THEIRS), orjson.dumps(state), ANY_VERSION),
                Create(paths.broker(9), orjson.dumps(broker)),
                Create(f"{paths.BROKER_IDS}/99999999999999999999", orjson.dumps(broker)),
                Create(paths.topic("slashed"), orjson.dumps(slashed)),
                Create(paths.topic("empty"), orjson.dumps(empty)),
                Create(f"{paths.STRAYS}/{STANDARD_BASE64.replace('/', '_')}:empty:{HUGE}:1"),
            ]
        )
        assert (await move(admin, TopicPartition("slashed", 0), (2, 3))).error is not ErrorCode.NONE
        assert (await move(admin, OURS, (2, 3))).error is ErrorCode.NONE
        await until(lambda: is_on(admin, OURS, (2, 3)))
        assert await epoch_of(store) == epoch

        await fail_over(cluster, store)
        await until_live(admin, BROKERS)
        assert (await move(admin, OURS, (1, 3))).error is ErrorCode.NONE
        await until(lambda: is_on(admin, OURS, (1, 3)))
        await create(admin, TopicPartition("later", 0), (3, 1))
        assert await epoch_of(store) == epoch + 1
        shown = " ".join((await state_dump.dump(store))["undecodable"])
        logs = [(tmp_path / f"{id_}.log").read_text() for id_ in CONTROLLERS]
    for path in (paths.partition_state(THEIRS), paths.broker(9), paths.topic("slashed"), paths.topic("empty")):
        assert f"{path}: " in shown
    for name in ("99999999999999999999", f"empty:{HUGE}:1"):
        assert f"{name}: its name is" in shown
    assert not any("resigning after a fault" in log or "restarting after a fault" in log for log in logs)
