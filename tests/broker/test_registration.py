"""The registration of a broker: on virtual time, against the memory store."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from broker.config import BrokerConfig
from broker.registration import BrokerIdInUse, Registration
from tests.broker.cluster import new_host
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import Create, SessionState, StoreEvent, WatchFired, ensure_paths

pytestmark = pytest.mark.usefixtures("autojump_clock")

CONFIG = BrokerConfig(3, Path("unused"), host="h", rack="r", zookeeper_session_timeout_ms=6_000)
PATH = paths.broker(3)


def registration_of(store: MemoryStore) -> Registration:
    return Registration(store, new_host(), CONFIG, "storage-1")


async def test_a_registration_is_kafkas_with_the_czxid_as_broker_epoch() -> None:
    async with MemoryZooKeeper(lambda: 0).session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        registration = registration_of(store)
        assert registration.epoch == -1
        await registration.register(9092)
        [znode] = await store.read([PATH])
        assert znode is not None
        assert (znode.stat.version, znode.stat.ephemeral_owner) == (1, store.session_id)
        assert registration.epoch == znode.stat.czxid
        found = formats.decode_broker(3, znode.data, znode.stat.czxid)
        assert (found.host, found.port, found.rack, found.storage_id) == ("h", 9092, "r", "storage-1")


async def test_a_registration_whose_answer_was_lost_is_ours() -> None:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, zookeeper.session() as observer, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        await observer.read([PATH], watch=True)

        def break_once(event: StoreEvent) -> None:
            if isinstance(event, WatchFired):
                zookeeper.disconnect(store.session_id)
                nursery.start_soon(reconnect_later)

        async def reconnect_later() -> None:
            await trio.sleep(1)
            zookeeper.reconnect(store.session_id)

        observer.subscribe(break_once)
        registration = registration_of(store)
        await registration.register(9092)
        [znode] = await store.read([PATH])
        assert znode is not None
        assert registration.epoch == znode.stat.czxid


async def test_a_dead_predecessors_registration_is_waited_for() -> None:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, zookeeper.session() as predecessor, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        await registration_of(predecessor).register(1)

        async def expire_later() -> None:
            await trio.sleep(6)
            zookeeper.expire(predecessor.session_id, reconnect=False)

        nursery.start_soon(expire_later)
        registration = registration_of(store)
        await registration.register(2)
        assert trio.current_time() >= 6
        assert registration.epoch > 0


async def test_an_id_that_stays_in_use_is_an_error_that_names_its_holder() -> None:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, zookeeper.session() as other:
        await ensure_paths(store, paths.PERSISTENT)
        await registration_of(other).register(1234)
        with pytest.raises(BrokerIdInUse, match="broker id 3 is already live at h:1234: stop that one"):
            await registration_of(store).register(2)


async def test_a_registration_of_another_kind_is_in_the_way_too() -> None:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, zookeeper.session() as other:
        await ensure_paths(store, paths.PERSISTENT)
        await other.multi([Create(PATH, b"{}", ephemeral=True)])
        with pytest.raises(BrokerIdInUse, match="as a broker of another kind"):
            await registration_of(store).register(2)


async def test_another_port_is_announced_under_the_same_broker_epoch() -> None:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, zookeeper.session() as other, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        registration = registration_of(store)
        await registration.register(9092)
        epoch = registration.epoch
        nursery.start_soon(registration.keep)
        zookeeper.disconnect(store.session_id)
        registration.move(9093)
        await trio.testing.wait_all_tasks_blocked()
        zookeeper.reconnect(store.session_id)
        await trio.testing.wait_all_tasks_blocked()
        [znode] = await other.read([PATH])
        assert znode is not None
        assert formats.decode_broker(3, znode.data, znode.stat.czxid).port == 9093
        assert (registration.epoch, znode.stat.czxid, znode.stat.ephemeral_owner) == (epoch, epoch, store.session_id)
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("D5")
async def test_a_new_session_is_a_new_registration_and_a_new_broker_epoch() -> None:
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        registration = registration_of(store)
        await registration.register(9092)
        first = registration.epoch
        nursery.start_soon(registration.keep)
        await trio.testing.wait_all_tasks_blocked()
        zookeeper.disconnect(store.session_id)
        zookeeper.reconnect(store.session_id)
        await trio.testing.wait_all_tasks_blocked()
        assert registration.epoch == first, "the session is the same"

        zookeeper.expire(store.session_id)
        await trio.testing.wait_all_tasks_blocked()
        [znode] = await store.read([PATH])
        assert store.state is SessionState.CONNECTED
        assert znode is not None
        assert registration.epoch == znode.stat.czxid > first
        nursery.cancel_scope.cancel()
