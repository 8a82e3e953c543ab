"""A ZooKeeper that pauses for less than the session timeout, and one that is away for longer."""

from __future__ import annotations

import os
import signal
from functools import partial
from math import inf
from pathlib import Path

import pytest
import trio

import klamm
from controller.node.service import ControllerService
from tests.cluster.waiting import until
from tests.kit.tcp_relay import tcp_relay
from transport.errors import ApiError, ErrorCode
from transport.messages import MetadataRequest, MetadataResponse
from transport.metadata import BrokerRegistration, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.commit import commit_chunk
from transport.store.protocol import ConnectionLost, Create, MetadataStore, SessionExpired, SessionState
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import DevelopmentServer, development_zookeeper

SESSION_MS = 6_000
PAUSE_SECONDS = 1.5


async def until_active(service: ControllerService, *, active: bool = True) -> None:
    async def is_it() -> bool:
        return service.is_active is active

    await until(is_it)


async def write_topic(store: MetadataStore, name: str) -> None:
    topic = formats.TopicZnode({0: ReplicaAssignment((1,))}, f"id-of-{name}")
    await commit_chunk(store, [[Create(paths.topic(name), formats.encode_topic(topic))]], None)


async def is_led(store: MetadataStore, name: str) -> bool:
    try:
        return await store.read([paths.partition_state(TopicPartition(name, 0))]) != [None]
    except (ConnectionLost, SessionExpired):
        return False


async def is_connected(store: MetadataStore) -> bool:
    return store.state is SessionState.CONNECTED


async def epoch_of(service: ControllerService) -> int:
    cluster = await service.answer(MetadataRequest())
    assert isinstance(cluster, MetadataResponse)
    return cluster.controller_epoch


@pytest.mark.requirement("D1", "D7", "E1")
async def test_zookeeper_is_slow_and_then_gone(zookeeper: str, tmp_path: Path) -> None:
    assert zookeeper, "the fixture tells that there is a Java to run a ZooKeeper that goes away"
    async with trio.open_nursery() as nursery:
        async with development_zookeeper(tmp_path) as server:
            store = await nursery.start(hold_session, server.address)
            config = klamm.ControllerConfig(
                1001, zookeeper_connect=server.address, zookeeper_session_timeout_ms=SESSION_MS
            )
            service: ControllerService = await nursery.start(klamm.run, config)
            await until_active(service)
            registration = formats.encode_broker(BrokerRegistration(1, "127.0.0.1", 1, -1), 0)
            await store.multi([Create(paths.broker(1), registration, ephemeral=True)])
            await write_topic(store, "before")
            await until(partial(is_led, store, "before"))
            await stand_still(server, store, service)
        # The server has ended. Nobody can tell the controller that its session is over: it has to know by itself.
        await until_active(service, active=False)
        with pytest.raises(ApiError) as caught:
            await service.answer(MetadataRequest())
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        async with development_zookeeper(tmp_path, server.port):
            await until_active(service)
            assert await epoch_of(service) >= 2
            await until(partial(is_connected, store))
            await write_topic(store, "after")
            await until(partial(is_led, store, "after"))
        nursery.cancel_scope.cancel()


async def stand_still(server: DevelopmentServer, store: MetadataStore, service: ControllerService) -> None:
    """Pause the server while a topic is written: that is done late, in the same office."""
    os.kill(server.pid, signal.SIGSTOP)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_topic, store, "meanwhile")
        # Nothing tells how long a server has stood still.
        await trio.sleep(PAUSE_SECONDS)
        os.kill(server.pid, signal.SIGCONT)
    await until(partial(is_led, store, "meanwhile"))
    assert await epoch_of(service) == 1


async def hold_session(address: str, *, task_status: trio.TaskStatus[MetadataStore] = trio.TASK_STATUS_IGNORED) -> None:
    async with open_zookeeper(address, session_timeout_ms=10 * SESSION_MS) as store:
        task_status.started(store)
        await trio.sleep_forever()


@pytest.mark.requirement("E1")
async def test_an_office_is_kept_while_the_session_is(zookeeper: str) -> None:
    chroot = "/kept-office"
    async with (
        open_zookeeper(f"{zookeeper}{chroot}") as store,
        tcp_relay(int(zookeeper.rpartition(":")[2])) as relay,
        trio.open_nursery() as nursery,
    ):
        config = klamm.ControllerConfig(1001, zookeeper_connect=f"{relay.address}{chroot}")
        service: ControllerService = await nursery.start(klamm.run, config)
        await until_active(service)
        registration = formats.encode_broker(BrokerRegistration(1, "127.0.0.1", 1, -1), 0)
        await store.multi([Create(paths.broker(1), registration, ephemeral=True)])
        for attempt in range(3):
            # What was under way when the connection broke would cost the office.
            await until(partial(is_at_rest, service))
            relay.serves = 0
            relay.cut()
            await until(partial(is_suspended, service))
            await write_topic(store, f"meanwhile-{attempt}")
            relay.serves = inf
            relay.cut()
            await until(partial(is_led, store, f"meanwhile-{attempt}"))
            await write_topic(store, f"later-{attempt}")
            await until(partial(is_led, store, f"later-{attempt}"))
            assert await epoch_of(service) == 1
        nursery.cancel_scope.cancel()


async def is_at_rest(service: ControllerService) -> bool:
    """Return whether nothing but the question has been processed for a while."""

    def processed() -> dict[str, int]:
        return {name: total.count for name, total in service.statistics().items() if name != "Metadata"}

    before = processed()
    await trio.sleep(0.3)
    await epoch_of(service)
    return processed() == before


async def is_suspended(service: ControllerService) -> bool:
    return service.store.state is SessionState.SUSPENDED
