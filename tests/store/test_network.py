"""ZooKeeper behind a failing network, and a server that pauses: no call hangs, and every holder is notified."""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest
import trio
from kazoo.client import KazooClient

from tests.kit.tcp_relay import TcpRelay, tcp_relay
from tests.store.events import CONNECTED, EXPIRED, PATIENCE, SUSPENDED, Events, changed, deleted
from transport.store.kazoo_session import MAX_IN_FLIGHT
from transport.store.protocol import ConnectionLost, Create, MetadataStore, SessionExpired, SessionState, Set
from transport.store.zookeeper import ZooKeeperStore, open_zookeeper
from transport.zookeeper_server import development_zookeeper

SHORT_MS = 1500


@pytest.fixture
async def relay(zookeeper: str) -> AsyncIterator[TcpRelay]:
    async with tcp_relay(port_of(zookeeper)) as opened:
        yield opened


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def behind(
    relay: TcpRelay, chroot: str, session_timeout_ms: int = 18_000
) -> AbstractAsyncContextManager[ZooKeeperStore]:
    """Open the part of ZooKeeper that is the test's, through the relay."""
    return open_zookeeper(f"{relay.address}/{chroot.partition('/')[2]}", session_timeout_ms=session_timeout_ms)


async def assert_lost(store: MetadataStore, times: int = 1) -> None:
    """Assert that so many requests at once all raise ConnectionLost."""

    async def lose() -> None:
        with pytest.raises(ConnectionLost):
            await store.read(["/"])

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for _ in range(times):
                nursery.start_soon(lose)


async def assert_works(store: MetadataStore, other: MetadataStore, path: str) -> None:
    """Assert that `store` reads, writes, and arms watches that fire."""
    with trio.fail_after(PATIENCE):
        events = Events(store)
        await store.multi([Create(path)])
        await store.read([path], watch=True)
        await other.multi([Set(path, b"x", 0)])
        await events.expect(changed(path))


async def test_what_is_under_way_or_waits_when_the_connection_breaks_is_lost_at_once(
    relay: TcpRelay, chroot: str
) -> None:
    async with behind(relay, chroot) as store:
        events = Events(store)
        relay.to_client.stall()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(assert_lost, store, 5 * MAX_IN_FLIGHT)
            await relay.to_client.held()
            relay.serves = 0  # or those that kazoo took too late would be answered on the next connection
            relay.cut()
        await events.expect(SUSPENDED)


async def test_what_kazoo_takes_when_it_has_just_lost_the_connection_is_lost_too(relay: TcpRelay, chroot: str) -> None:
    async with behind(relay, chroot) as store:
        client = kazoo_client(store)
        send = client._call  # noqa: SLF001 - what the session calls

        def send_late(*args: object) -> None:
            suspended = threading.Event()
            client.add_listener(lambda _: suspended.set())
            client._connection._socket.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - in mid-call, where no relay can cut
            suspended.wait(PATIENCE)
            send(*args)

        relay.serves = 0
        client._call = send_late  # noqa: SLF001
        await assert_lost(store)
        assert store.state is SessionState.SUSPENDED


async def test_a_server_that_does_not_answer_who_connects_is_asked_again_long_before_the_session_is_over(
    relay: TcpRelay, chroot: str
) -> None:
    async with behind(relay, chroot, session_timeout_ms=60_000) as store:
        events = Events(store)
        relay.serves = 0
        relay.cut()
        await events.expect(SUSPENDED)
        with trio.fail_after(PATIENCE):
            while relay.serves == 0:
                await trio.sleep(0.01)
        relay.serves = math.inf
        await events.expect(CONNECTED)


async def test_a_cut_connection_comes_back_with_its_session_and_without_its_watches(
    relay: TcpRelay, chroot: str
) -> None:
    async with open_zookeeper(chroot) as other, behind(relay, chroot) as store:
        session_id, events = store.session_id, Events(store)
        await store.multi([Create("/e", ephemeral=True), Create("/watched")])
        await store.read(["/watched"], watch=True)
        relay.cut()
        await events.expect(SUSPENDED, CONNECTED)

        assert store.session_id == session_id
        assert await other.children(["/"]) == [["e", "watched"]]
        await other.multi([Set("/watched", b"x", 0)])
        await assert_works(store, other, "/a")
        await store.read(["/end"], watch=True)
        await store.multi([Create("/end")])
        assert [event for event in await events.until(changed("/a")) if event == changed("/watched")] == []


@pytest.mark.parametrize("failure", ["stall", "to_server", "to_client", "half_open"])
async def test_a_connection_that_falls_silent_is_noticed(relay: TcpRelay, chroot: str, failure: str) -> None:
    async with open_zookeeper(chroot) as other, behind(relay, chroot, SHORT_MS) as store:
        events = Events(store)
        if failure in ("to_server", "to_client"):
            getattr(relay, failure).stall()
        else:
            getattr(relay, failure)()
        await assert_lost(store)
        await events.expect(SUSPENDED)
        relay.cut()
        await events.until(CONNECTED)
        await assert_works(store, other, "/a")


async def test_who_cannot_reach_the_server_for_a_session_timeout_takes_the_session_for_expired(
    relay: TcpRelay, chroot: str
) -> None:
    async with open_zookeeper(chroot) as other, behind(relay, chroot, SHORT_MS) as store:
        await store.multi([Create("/e", ephemeral=True)])
        await other.read(["/e"], watch=True)
        old, events, others = store.session_id, Events(store), Events(other)
        relay.serves = 0
        relay.cut()
        await events.expect(SUSPENDED, EXPIRED)
        with pytest.raises(SessionExpired):
            await store.read(["/"])
        with pytest.raises(SessionExpired):
            await store.multi([Create("/late")])

        await others.expect(deleted("/e"))
        relay.serves = math.inf
        relay.cut()
        await events.expect(CONNECTED)
        assert store.session_id != old
        assert await other.children(["/"]) == [[]]
        await assert_works(store, other, "/a")


async def test_who_comes_back_in_time_keeps_the_session(relay: TcpRelay, chroot: str, zookeeper: str) -> None:
    async with (
        tcp_relay(port_of(zookeeper)) as later,
        behind(relay, chroot, SHORT_MS) as store,
        behind(later, chroot, SHORT_MS) as witness,
    ):
        old, events, time_is_up = store.session_id, Events(store), Events(witness)
        for _ in range(3):
            relay.cut()
            await events.expect(SUSPENDED, CONNECTED)
        later.serves = 0
        later.cut()
        await time_is_up.expect(SUSPENDED, EXPIRED)
        assert (store.state, store.session_id) == (SessionState.CONNECTED, old)


async def test_a_session_that_is_ended_elsewhere_expires_and_a_new_one_begins(
    relay: TcpRelay, chroot: str, zookeeper: str
) -> None:
    async with open_zookeeper(chroot) as other, behind(relay, chroot) as store:
        await store.multi([Create("/e", ephemeral=True), Create("/watched")])
        await store.read(["/watched"], watch=True)
        old, events = store.session_id, Events(store)
        relay.serves = 1  # which tells of the expiry; the new session has to wait
        await trio.to_thread.run_sync(end_session, zookeeper, client_id_of(store))
        await events.expect(SUSPENDED, EXPIRED)
        with pytest.raises(SessionExpired):
            await store.read(["/"])
        with pytest.raises(SessionExpired):
            await store.multi([Create("/late")])
        assert await other.children(["/"]) == [["watched"]]

        relay.serves = math.inf
        relay.cut()
        await events.expect(CONNECTED)
        assert store.session_id != old
        await other.multi([Set("/watched", b"x", 0)])
        await assert_works(store, other, "/a")
        await events.expect(changed("/a"))


def client_id_of(store: ZooKeeperStore) -> tuple[int, bytes]:
    """Return the id and the password of a session."""
    session_id, password = kazoo_client(store).client_id
    return int(session_id), bytes(password)


def kazoo_client(store: ZooKeeperStore) -> KazooClient:
    return store._session._client  # noqa: SLF001 - what knows the password, and what loses connections


def end_session(address: str, client_id: tuple[int, bytes]) -> None:
    """Close a session from a second client."""
    client = KazooClient(address, client_id=client_id)
    client.start()
    client.stop()
    client.close()


async def read_for_ever(store: MetadataStore) -> None:
    while True:
        await store.read(["/"])


@pytest.mark.usefixtures("zookeeper")
async def test_a_server_that_stands_still_for_longer_than_the_session_is_lived_through(tmp_path: Path) -> None:
    async with development_zookeeper(tmp_path) as server:
        opened = open_zookeeper(server.address, session_timeout_ms=SHORT_MS)
        async with opened as store, open_zookeeper(server.address) as other:
            events = Events(store)
            os.kill(server.pid, signal.SIGSTOP)
            try:
                with pytest.raises(ConnectionLost), trio.fail_after(PATIENCE):
                    await read_for_ever(store)  # the signal may come after the first answers
                await events.expect(SUSPENDED, EXPIRED)
            finally:
                os.kill(server.pid, signal.SIGCONT)
            await events.until(CONNECTED)
            while other.state is not SessionState.CONNECTED:
                await trio.sleep(0.01)
            await assert_works(store, other, "/a")


async def test_a_server_that_lost_its_data_is_not_refused_for_ever(zookeeper: str, tmp_path: Path) -> None:
    """A server closes the connection of whoever has seen more than it has; kazoo's issue 42."""
    assert zookeeper, "this test runs ZooKeepers of its own: the fixture tells that there is a Java to run them"
    async with AsyncExitStack() as stack:
        async with development_zookeeper(tmp_path / "first") as server:
            store = await stack.enter_async_context(open_zookeeper(server.address, session_timeout_ms=SHORT_MS))
            for number in range(10):
                await store.multi([Create(f"/{number}")])
            old, events = store.session_id, Events(store)
        await events.expect(SUSPENDED, EXPIRED)
        async with development_zookeeper(tmp_path / "second", server.port):
            await events.until(CONNECTED)
            assert store.session_id != old
            assert await store.children(["/"]) == [["zookeeper"]]
