"""The settings of topics on a broker: the values in effect, and the time of a change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.config import BrokerConfig
from broker.topic_configs import TopicConfig, TopicConfigs
from tests.broker.cluster import new_host, running_cluster, state_of, write_settings
from transport.errors import ApiError, ErrorCode
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import ensure_paths

MIN_ISR = "min.insync.replicas"
TOPIC, BROKER, DEFAULT = paths.topic_config("t"), paths.broker_config(7), paths.broker_config(None)


@asynccontextmanager
async def configs_of_broker_7() -> AsyncIterator[tuple[MemoryZooKeeper, MemoryStore, TopicConfigs]]:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        config = BrokerConfig(7, Path("/nowhere"), min_insync_replicas=2, message_max_bytes=2000)
        configs = TopicConfigs(store, config, new_host())
        nursery.start_soon(configs.keep_fresh)
        await wait_all_tasks_blocked()
        yield zookeeper, store, configs
        nursery.cancel_scope.cancel()


async def test_a_topics_settings_outrank_the_brokers_and_those_the_default() -> None:
    async with configs_of_broker_7() as (_, store, configs):
        assert await configs.of_topic("t", "id") == TopicConfig(2, 2000)
        await write_settings(store, DEFAULT, {MIN_ISR: "3", "message.max.bytes": "3000"})
        assert await configs.of_topic("t", "id") == TopicConfig(3, 3000)
        await write_settings(store, BROKER, {MIN_ISR: "4"})
        assert await configs.of_topic("t", "id") == TopicConfig(4, 3000)
        await write_settings(store, TOPIC, {MIN_ISR: "1", "max.message.bytes": "5", "retention.ms": "1"})
        assert await configs.of_topic("t", "id") == TopicConfig(1, 5)
        assert await configs.of_topic("another", "id") == TopicConfig(4, 3000)
        await write_settings(store, TOPIC, {})
        assert await configs.of_topic("t", "id") == TopicConfig(4, 3000)


@pytest.mark.parametrize("data", [b"{", formats.encode_config({MIN_ISR: "0"}), formats.encode_config({MIN_ISR: "x"})])
async def test_settings_that_are_not_valid_are_set_aside(data: bytes) -> None:
    async with configs_of_broker_7() as (_, store, configs):
        await write_settings(store, TOPIC, data)
        assert await configs.of_topic("t", "id") == TopicConfig(2, 2000)


async def test_a_namesake_has_settings_of_its_own_from_the_start() -> None:
    async with configs_of_broker_7() as (_, store, configs):
        await write_settings(store, TOPIC, {MIN_ISR: "3"})
        assert (await configs.of_topic("t", "id")).min_insync_replicas == 3
        # A topic's creation announces nothing.
        await write_settings(store, TOPIC, {MIN_ISR: "1"}, announce=False)
        assert (await configs.of_topic("t", "id")).min_insync_replicas == 3
        assert (await configs.of_topic("t", "another id")).min_insync_replicas == 1
        await write_settings(store, TOPIC, {}, announce=False)
        configs.forget("t")
        assert (await configs.of_topic("t", "another id")).min_insync_replicas == 2


async def test_what_changed_while_the_connection_was_broken_is_found() -> None:
    async with configs_of_broker_7() as (zookeeper, store, configs), zookeeper.session() as other:
        assert (await configs.of_topic("t", "id")).min_insync_replicas == 2
        for end, minimum in ((zookeeper.disconnect, 3), (zookeeper.disconnect, 4)):
            end(store.session_id)
            await write_settings(other, TOPIC, {MIN_ISR: str(minimum)})
            zookeeper.reconnect(store.session_id)
            await wait_all_tasks_blocked()
            assert (await configs.of_topic("t", "id")).min_insync_replicas == minimum
        zookeeper.expire(store.session_id)
        await write_settings(other, TOPIC, {MIN_ISR: "5"})
        assert (await configs.of_topic("t", "id")).min_insync_replicas == 5


async def test_without_the_store_the_last_known_settings_stay_in_effect() -> None:
    async with configs_of_broker_7() as (zookeeper, store, configs):
        await write_settings(store, TOPIC, {MIN_ISR: "3"})
        await configs.of_topic("t", "id")
        await write_settings(store, DEFAULT, {})
        zookeeper.disconnect(store.session_id)
        assert (await configs.of_topic("t", "id")).min_insync_replicas == 3
        for topic, topic_id in (("t", "another id"), ("another", "id")):
            with pytest.raises(ApiError, match="cannot be read") as refusal:
                await configs.of_topic(topic, topic_id)
            assert refusal.value.code is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_produce_goes_by_the_topics_settings_from_the_moment_they_change(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1) as cluster, cluster.zookeeper.session() as store:
        await cluster.lead_and_follow(state_of((1, 2), isr=(1,)), is_new=True)
        assert await cluster.produce_once(1, b"enough") == 0
        await write_settings(store, TOPIC, {MIN_ISR: "2", "max.message.bytes": "6"})
        with pytest.raises(ApiError, match=r"min\.insync\.replicas is 2") as refusal:
            await cluster.produce_once(1, b"wanted")
        assert refusal.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        with pytest.raises(ApiError, match="exceeds the limit of 6"):
            await cluster.produce_once(1, b"too long", acks=1)
        await write_settings(store, TOPIC, {})
        assert await cluster.produce_once(1, b"enough again") == 1
