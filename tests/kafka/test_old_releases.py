"""Brokers of Apache Kafka's old releases, as far as a script can play them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.kafka.scripted_broker import scripted_brokers
from tests.kit.service import Controllers, until
from transport.kafka import messages as kafka
from transport.kafka.registration import decode_registration, encode_controller
from transport.kafka.schema import Message
from transport.metadata import Listener
from transport.store import paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import Create, Delete, ensure_paths

US = 1001
KAFKA: dict[str, Any] = {"kafka": True, "inter_broker_listener_name": "internal"}
SINCE_3_0: dict[type[Message], Message] = {kafka.AllocateProducerIdsRequest: kafka.AllocateProducerIdsResponse()}


@pytest.fixture
async def store(memory: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    """Give the test the session of its brokers."""
    async with memory.session() as session:
        yield session


async def test_a_broker_of_an_old_release_finds_the_controller_among_the_brokers(
    controllers: Controllers, memory: MemoryZooKeeper, store: MemoryStore
) -> None:
    service = await controllers.start_active(**KAFKA)
    assert service.node is not None
    async with scripted_brokers(store, 1):
        await until(lambda: memory.tree.read(paths.broker(US)) is not None)
        [znode] = await store.read([paths.broker(US)])
        assert znode is not None
        assert decode_registration(US, znode.data, 1, "INTERNAL").listeners == service.node.listeners
        await store.multi([Delete(paths.broker(1))])
        await until(lambda: memory.tree.read(paths.broker(US)) is None)


async def test_a_controller_is_no_broker_for_later_releases(
    controllers: Controllers, memory: MemoryZooKeeper, store: MemoryStore
) -> None:
    service = await controllers.start_active(**KAFKA)
    async with scripted_brokers(store, 1, answers=SINCE_3_0):
        await until(lambda: service.office is not None and not service.office.context.kafka.is_registered)
    assert memory.tree.read(paths.broker(US)) is None


async def test_a_controller_starts_although_an_earlier_process_of_its_id_is_still_registered(
    controllers: Controllers, store: MemoryStore
) -> None:
    await ensure_paths(store, [paths.BROKER_IDS])
    left = encode_controller([Listener("INTERNAL", "127.0.0.1", 1)])
    await store.multi([Create(paths.broker(US), left, ephemeral=True)])
    await controllers.start_active(**KAFKA)


async def test_the_last_block_of_ids_is_left_to_brokers_that_would_not_start_if_it_were_empty(
    controllers: Controllers, memory: MemoryZooKeeper
) -> None:
    await controllers.start_active(**KAFKA)
    assert memory.tree.read(paths.CONFIG_CHANGES) is not None
    assert memory.tree.read(paths.PRODUCER_IDS) is None
