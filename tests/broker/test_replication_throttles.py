"""The throttled replicas of a broker: read from settings, and kept if those cannot be read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from broker.config import BrokerConfig
from broker.replication_throttles import ReplicationThrottles
from broker.topic_configs import TopicConfigs
from tests.broker.cluster import new_host, write_settings
from transport.metadata import TopicPartition
from transport.settings import LONG_MAX
from transport.store import paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import ensure_paths

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


@asynccontextmanager
async def throttles_of_broker_7() -> AsyncIterator[tuple[MemoryZooKeeper, MemoryStore, ReplicationThrottles]]:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        configs = TopicConfigs(store, BrokerConfig(7, Path("/nowhere")), new_host())
        throttles = ReplicationThrottles(store, 7, new_host())
        nursery.start_soon(configs.keep_fresh)
        nursery.start_soon(throttles.keep_fresh, configs.changed)
        yield zookeeper, store, throttles
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("A11")
async def test_topics_name_the_replicas_and_brokers_the_rates() -> None:
    async with throttles_of_broker_7() as (_, store, throttles):
        await write_settings(
            store, paths.topic_config("t"), {f"{LEADER}.replicas": "0:7,1:8", f"{FOLLOWER}.replicas": "*"}
        )
        assert not any(throttles.throttles_leader(tp) or throttles.throttles_follower(tp) for tp in (FIRST, SECOND))
        await write_settings(store, paths.broker_config(None), {f"{LEADER}.rate": "100", f"{FOLLOWER}.rate": "200"})
        await write_settings(store, paths.broker_config(7), {f"{FOLLOWER}.rate": "300"})
        assert (throttles.leader.rate, throttles.follower.rate) == (100, 300)
        assert [throttles.throttles_leader(tp) for tp in (FIRST, SECOND)] == [True, False]
        assert [throttles.throttles_follower(tp) for tp in (FIRST, SECOND)] == [True, True]
        assert not throttles.throttles_follower(TopicPartition("another", 0))


async def test_what_is_not_valid_throttles_nothing_and_is_told() -> None:
    async with throttles_of_broker_7() as (_, store, throttles):
        await write_settings(store, paths.topic_config("t"), {f"{LEADER}.replicas": "0-7"})
        await write_settings(store, paths.topic_config("damaged"), b"{")
        with capture_logs() as logs:
            await write_settings(store, paths.broker_config(7), {f"{LEADER}.rate": "100", f"{FOLLOWER}.rate": "fast"})
        assert not throttles.throttles_leader(FIRST)
        assert (throttles.leader.rate, throttles.follower.rate) == (100, LONG_MAX)
        faults = " ".join(log["fault"] for log in logs)
        assert all(words in faults for words in (f"{FOLLOWER}.rate", f"{LEADER}.replicas", "/config/topics/damaged"))


async def test_what_was_read_last_stays_in_effect_without_the_store(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with throttles_of_broker_7() as (zookeeper, store, throttles):
        await write_settings(store, paths.topic_config("t"), {f"{LEADER}.replicas": "*"})
        await write_settings(store, paths.broker_config(7), {f"{LEADER}.rate": "100"})
        zookeeper.disconnect(store.session_id)
        await trio.sleep(10)
        assert throttles.throttles_leader(FIRST)
        async with zookeeper.session() as other:
            await write_settings(other, paths.broker_config(None), {f"{FOLLOWER}.rate": "200"})
        zookeeper.reconnect(store.session_id)
        await trio.sleep(10)
        assert (throttles.leader.rate, throttles.follower.rate) == (100, 200)
