"""Throttles of moves, set and removed by the same or another process; settings of others stay unchanged."""

from __future__ import annotations

import pytest
import trio

from controller.admin.move_throttles import lift, throttle
from klamm.testing import SimulatedCluster, open_cluster
from transport.errors import ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
)
from transport.metadata import TopicPartition
from transport.store import formats, paths

pytestmark = pytest.mark.usefixtures("autojump_clock")

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
RECORD = bytes(1000)
RECORDS = 100
RATE = 20_000
SLOWED_SECONDS = RECORDS * len(RECORD) / RATE
LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


def own(c: SimulatedCluster, path: str) -> dict[str, str]:
    """Return the settings of a topic or broker without the marks of their owner."""
    znode = c.durable.tree.read(path)
    settings = {} if znode is None else formats.decode_config(path, znode.data)
    return {name: value for name, value in settings.items() if not name.startswith("klamm.")}


def topic(c: SimulatedCluster) -> dict[str, str]:
    return own(c, paths.topic_config("orders"))


def brokers(c: SimulatedCluster) -> list[dict[str, str]]:
    return [own(c, paths.broker_config(id_)) for id_ in (1, 2, 3)]


def everything(c: SimulatedCluster) -> list[bytes]:
    """Return all settings as stored, with an empty znode equal to none."""
    wanted = [paths.topic_config("orders"), *(paths.broker_config(id_) for id_ in (1, 2, 3))]
    found = [c.durable.tree.read(path) for path in wanted]
    return [formats.encode_config({}) if znode is None else znode.data for znode in found]


async def alter(c: SimulatedCluster, type_: ConfigResourceType, name: str, **settings: str) -> None:
    configs = tuple(
        AlterableConfig(key.replace("_", "."), ConfigOperation.SET, value) for key, value in settings.items()
    )
    [result] = await c.admin.incremental_alter_configs([AlterConfigsResource(ConfigResource(type_, name), configs)])
    assert result.error is ErrorCode.NONE


async def start(c: SimulatedCluster) -> None:
    await c.create_topic("orders", [(1,), (1,)])
    for tp in (FIRST, SECOND):
        await c.produce(str(tp), [RECORD] * RECORDS)


async def slow_down(c: SimulatedCluster, tp: TopicPartition, *target: int, rate: int = RATE) -> None:
    states = (await c.admin.read_metadata(["orders"])).partitions
    await throttle(c.admin, states, {tp: target}, rate)


async def begin(c: SimulatedCluster, tp: TopicPartition, *target: int) -> None:
    await slow_down(c, tp, *target)
    await c.reassign({str(tp): target})


@pytest.mark.requirement("A11")
async def test_a_throttled_move_is_slower_and_nothing_is_left_of_its_throttle() -> None:
    async with open_cluster(brokers=3) as c:
        await start(c)
        before = everything(c)
        began = trio.current_time()
        await begin(c, FIRST, 2)
        assert topic(c) == {f"{LEADER}.replicas": "0:1", f"{FOLLOWER}.replicas": "0:2"}
        assert brokers(c) == [{f"{LEADER}.rate": "20000"}, {f"{FOLLOWER}.rate": "20000"}, {}]
        assert not await lift(c.admin, [FIRST])  # the move is in progress
        assert topic(c)
        await c.until_moved(str(FIRST))
        assert trio.current_time() - began > 0.9 * SLOWED_SECONDS
        assert await lift(c.admin, [FIRST])
        assert everything(c) == before
        assert not await lift(c.admin, [FIRST])


@pytest.mark.requirement("A11")
async def test_what_others_have_set_stays() -> None:
    async with open_cluster(brokers=3) as c:
        await start(c)
        replicas = {"leader_replication_throttled_replicas": "0:1,1:1", "max_message_bytes": "2000"}
        await alter(c, ConfigResourceType.TOPIC, "orders", **replicas)
        await alter(c, ConfigResourceType.BROKER, "1", leader_replication_throttled_rate="50000")
        await alter(c, ConfigResourceType.BROKER, "3", follower_replication_throttled_rate="7")
        before = everything(c)
        await begin(c, FIRST, 2)
        assert brokers(c)[0] == {f"{LEADER}.rate": "20000"}
        await slow_down(c, FIRST, 2, rate=30_000)  # another rate while it is in progress
        assert brokers(c)[:2] == [{f"{LEADER}.rate": "30000"}, {f"{FOLLOWER}.rate": "30000"}]
        await c.until_moved(str(FIRST))
        assert await lift(c.admin, [FIRST])
        assert everything(c) == before


@pytest.mark.requirement("A11")
async def test_all_replicas_of_a_topic_are_throttled_already() -> None:
    async with open_cluster(brokers=3) as c:
        await start(c)
        await alter(c, ConfigResourceType.TOPIC, "orders", follower_replication_throttled_replicas="*")
        before = everything(c)
        await begin(c, FIRST, 2)
        await c.until_moved(str(FIRST))
        await lift(c.admin, [FIRST])
        assert everything(c) == before


@pytest.mark.requirement("A11")
async def test_a_broker_keeps_its_rate_for_the_moves_that_go_on() -> None:
    async with open_cluster(brokers=3) as c:
        await start(c)
        before = everything(c)
        await begin(c, FIRST, 2)
        await begin(c, SECOND, 3)
        await c.cancel(str(FIRST))
        assert await lift(c.admin, [FIRST, SECOND])
        assert topic(c) == {f"{LEADER}.replicas": "1:1", f"{FOLLOWER}.replicas": "1:3"}
        assert brokers(c) == [{f"{LEADER}.rate": "20000"}, {}, {f"{FOLLOWER}.rate": "20000"}]
        await c.until_moved(str(SECOND))
        assert await lift(c.admin, [SECOND])
        assert everything(c) == before


@pytest.mark.requirement("A11")
async def test_a_dead_brokers_rate_is_lifted_too() -> None:
    async with open_cluster(brokers=3) as c:
        await start(c)
        before = everything(c)
        await begin(c, FIRST, 1, 2)
        c.crash(2)
        await trio.sleep(30)
        assert [broker.id for broker in (await c.admin.read_metadata([])).brokers] == [1, 3]
        await c.cancel(str(FIRST))
        assert await lift(c.admin, [FIRST])
        assert everything(c) == before


async def test_a_topic_that_is_gone_has_nothing_to_lift() -> None:
    async with open_cluster(brokers=3) as c:
        assert not await lift(c.admin, [FIRST])
