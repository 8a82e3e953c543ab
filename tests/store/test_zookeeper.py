"""ZooKeeper and kazoo alone: hosts and chroots, connecting, watches between read and arming, threads."""

from __future__ import annotations

import inspect
import logging
import socket
import struct
from contextlib import suppress
from functools import partial

import pytest
import trio
import trio.testing
from attrs import define
from kazoo.client import KazooClient
from structlog.testing import capture_logs

from tests.store.events import (
    CLOSED,
    CONNECTED,
    EXPIRED,
    PATIENCE,
    SUSPENDED,
    Events,
    changed,
    children_of,
    created,
    deleted,
)
from tests.store.interrupted import interrupted
from transport.store import kazoo_session
from transport.store.kazoo_handler import KazooHandler
from transport.store.kazoo_session import MAX_IN_FLIGHT, KazooSession
from transport.store.protocol import (
    ANY_VERSION,
    ConnectionLost,
    Create,
    Delete,
    MetadataStore,
    Op,
    SessionExpired,
    SessionState,
    Set,
    StoreEvent,
    StoreUnavailable,
)
from transport.store.requests import LastZxid
from transport.store.zookeeper import open_zookeeper, parse_hosts

# --- where to connect -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "servers", "chroot"),
    [
        ("127.0.0.1:2181", [("127.0.0.1", 2181)], ""),
        ("one:1,two:2", [("one", 1), ("two", 2)], ""),
        ("one:1, two:2/kafka", [("one", 1), ("two", 2)], "/kafka"),
        ("one:1/a/b/", [("one", 1)], "/a/b"),
        ("one:1/", [("one", 1)], ""),
        ("[::1]:2181/c", [("::1", 2181)], "/c"),
    ],
)
def test_hosts_are_servers_and_a_chroot(hosts: str, servers: list[tuple[str, int]], chroot: str) -> None:
    assert parse_hosts(hosts) == (servers, chroot)


@pytest.mark.parametrize("hosts", ["", "one", "one:", ":2181", "one:port", "one:1,,two:2", "/chroot"])
async def test_hosts_that_name_no_server_are_refused(hosts: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"write host:port\[,host:port...\]\[/chroot\]$"):
        async with open_zookeeper(hosts):
            pass


async def test_a_refused_connection_says_where_and_what_to_do(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(StoreUnavailable) as caught:
            async with open_zookeeper(f"{address}/chroot"):
                pass
    assert str(caught.value) == f"nothing listens at {address}: start one with `klamm zookeeper run`"
    assert capfd.readouterr() == ("", "")


async def test_a_server_that_does_not_answer_is_given_up(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(StoreUnavailable, match=r"opened no session within 0.2 s: is it ZooKeeper that "):
            async with open_zookeeper(f"127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.2):
                pass
        assert capfd.readouterr() == ("", "")


async def test_a_zookeeper_older_than_3_6_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve_like_3_5, 0, host="127.0.0.1"))
        with pytest.raises(StoreUnavailable) as caught:
            async with open_zookeeper(f"127.0.0.1:{listeners[0].socket.getsockname()[1]}/chroot"):
                pass
        nursery.cancel_scope.cancel()
    assert str(caught.value) == "this ZooKeeper is older than 3.6: upgrade its servers first, one at a time"
    assert capfd.readouterr() == ("", "")


async def serve_like_3_5(stream: trio.SocketStream) -> None:
    """Open a session, and answer as ZooKeeper 3.5 does to a MultiRead: error -6 (unimplemented), and the end."""
    request = await stream.receive_some()
    if request:
        password = bytes(16)
        await stream.send_all(struct.pack("!iiiqi16sx", 37, 0, 18_000, 0x1000_0000, len(password), password))
        request = await stream.receive_some()
        (xid,) = struct.unpack_from("!i", request, 4)
        await stream.send_all(struct.pack("!iiqi", 16, xid, 7, -6))


async def test_one_of_the_servers_is_enough(zookeeper: str) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        async with open_zookeeper(f"127.0.0.1:{bound.getsockname()[1]},{zookeeper}") as store:
            assert store.state is SessionState.CONNECTED


async def test_a_chroot_is_created_and_shut_in(chroot: str, zookeeper: str) -> None:
    base = chroot.removeprefix(zookeeper)
    async with open_zookeeper(f"{chroot}/deep") as inside, open_zookeeper(zookeeper) as outside:
        events = Events(inside)
        assert await inside.children(["/"], watch=True) == [[]]
        assert await inside.read(["/a"], watch=True) == [None]
        committed = await inside.multi([Create("/a", b"x"), Create("/a/s_", sequence=True)])
        (znode,) = await outside.read([f"{base}/deep/a"])

        assert znode is not None
        assert committed.results == ("/a", "/a/s_0000000000")
        await events.expect(created("/a"), children_of("/"))
        assert await outside.read(["/a"]) == [None]


async def test_a_read_that_was_begun_is_answered_by_what_the_server_said_then(chroot: str) -> None:
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        await other.multi([Create("/a", b"then"), Create("/b")])
        await store.read_ahead(["/a", "/b"])
        # The answers of a session come in order.
        await (await session.send(LastZxid())).wait()
        await other.multi([Set("/a", b"now", ANY_VERSION)])
        found = await store.read(["/a", "/b"])
    assert [znode and znode.data for znode in found] == [b"then", b""]


# --- watches ----------------------------------------------------------------------------------------------------


async def test_a_change_between_read_and_arming_fires(chroot: str) -> None:
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        await other.multi([Create("/set"), Create("/gone"), Create("/p"), Create("/still")])
        ops: list[Op] = [Set("/set", b"x", 0), Delete("/gone"), Create("/new"), Create("/p/child")]
        session.interruption = partial(other.multi, ops)
        events = Events(store)
        await store.read(["/set", "/gone", "/new", "/still"], watch=True)
        fired = [await events.next() for _ in range(3)]
        assert sorted(fired, key=str) == sorted([changed("/set"), deleted("/gone"), created("/new")], key=str)


async def test_a_change_of_children_between_read_and_arming_fires(chroot: str) -> None:
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        await other.multi([Create("/p"), Create("/still")])
        session.interruption = partial(other.multi, [Create("/p/child")])
        events = Events(store)
        assert await store.children(["/p", "/still"], watch=True) == [[], []]
        await events.expect(children_of("/p"))


async def test_watches_are_not_armed_from_zxid_0(chroot: str) -> None:
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        await other.multi([Create("/old"), Create("/end")])
        assert kazoo_client(session).last_zxid == 0
        events = Events(store)
        await store.read(["/old", "/end"], watch=True)
        await other.multi([Set("/end", b"x", 0)])
        await events.expect(changed("/end"))


async def test_a_session_that_breaks_while_watches_are_armed_is_not_taken_for_armed(chroot: str) -> None:
    async with interrupted(chroot) as (session, store):
        session.interruption = partial(end_connection, session)
        with pytest.raises(ConnectionLost):
            await store.read(["/a"], watch=True)


# --- the session ------------------------------------------------------------------------------------------------


async def end_connection(session: KazooSession) -> None:
    """Break the connection under kazoo, and wait until it is back."""
    back = trio.Event()
    unsubscribe = session.listeners.subscribe(lambda event: back.set() if event == CONNECTED else None)
    kazoo_client(session)._connection._socket.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - there is no other way
    with trio.fail_after(PATIENCE):
        await back.wait()
    unsubscribe()


def kazoo_client(session: KazooSession) -> KazooClient:
    return session._client  # noqa: SLF001 - what breaks and ends sessions here


async def test_a_broken_connection_is_restored_without_its_watches(
    chroot: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        session_id = store.session_id
        await store.multi([Create("/a", ephemeral=True), Create("/b")])
        await store.read(["/a"], watch=True)
        events = Events(store)
        await end_connection(session)
        await events.expect(SUSPENDED, CONNECTED)
        assert store.session_id == session_id
        assert caplog.records == []

        await other.multi([Set("/a", b"x", 0)])
        await store.read(["/b"], watch=True)
        await other.multi([Set("/b", b"x", 0)])
        await events.expect(changed("/b"))


async def test_an_expired_session_is_followed_by_a_new_one(chroot: str) -> None:
    async with interrupted(chroot) as (session, store):
        old = store.session_id
        await store.multi([Create("/e", ephemeral=True)])
        events = Events(store)
        await trio.to_thread.run_sync(expire, chroot.partition("/")[0], kazoo_client(session).client_id)
        seen = await events.until(CONNECTED)
        while EXPIRED not in seen:
            seen += await events.until(CONNECTED)

        assert seen[-2:] == [EXPIRED, CONNECTED]
        assert store.session_id != old
        assert await store.read(["/e"]) == [None]


def expire(address: str, client_id: tuple[int, bytes]) -> None:
    """End a session from a second client, as its timeout would."""
    client = KazooClient(address, client_id=client_id)
    client.start()
    client.stop()
    client.close()


async def test_closing_is_an_event_and_comes_once(chroot: str) -> None:
    heard: list[StoreEvent] = []
    async with open_zookeeper(chroot) as store:
        store.subscribe(heard.append)
    assert heard == [CLOSED]


async def test_more_requests_than_may_be_in_flight_are_all_answered(chroot: str) -> None:
    async with open_zookeeper(chroot) as store:
        await store.multi([Create("/a", b"x")])
        answers: list[object] = []

        async def read() -> None:
            answers.extend(await store.read(["/a"]))

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for _ in range(5 * MAX_IN_FLIGHT):
                    nursery.start_soon(read)
        assert len(answers) == 5 * MAX_IN_FLIGHT


async def test_closing_does_not_wait_for_requests(chroot: str) -> None:
    async with trio.open_nursery() as nursery:
        async with open_zookeeper(chroot) as store:
            for _ in range(3):
                nursery.start_soon(read_until_closed, store)
            await trio.testing.wait_all_tasks_blocked()
        assert store.state is SessionState.CLOSED


async def read_until_closed(store: MetadataStore) -> None:
    with suppress(ConnectionLost, SessionExpired):
        while True:
            await store.read(["/"] * 1000)


def test_what_kazoo_reports_after_the_end_of_trio_is_dropped(zookeeper: str, caplog: pytest.LogCaptureFixture) -> None:
    async def leave_open() -> KazooSession:
        servers, _ = parse_hosts(zookeeper)
        session = KazooSession(servers, 18_000)
        await session.connect(PATIENCE)
        return session

    client = kazoo_client(trio.run(leave_open))
    with caplog.at_level(logging.ERROR):
        client.stop()
        client.close()
    assert caplog.records == []


def test_kazoo_waits_for_the_sockets_that_it_names() -> None:
    select = KazooHandler(None).select
    near, far = socket.socketpair()
    with near, far:
        assert select([near, far], [], [], 0) == ([], [], [])
        far.send(b"x")
        assert select([near, far], [], [], None) == ([near], [], [])
        assert select([], [far], [], 1) == ([], [far], [])
        far.close()
        near.recv(1)
        # The end of a connection is something to read.
        assert select([near], [], [], 1) == ([near], [], [])
        with pytest.raises(ValueError, match="negative"):
            select([far], [], [], 0)


@define
class _Noted:
    """A read of nothing that tells when kazoo encodes it."""

    type = LastZxid.type
    is_encoded: bool = False

    def serialize(self) -> bytes:
        self.is_encoded = True
        return LastZxid().serialize()

    def deserialize(self, buffer: bytes, offset: int) -> int:
        return LastZxid().deserialize(buffer, offset)


async def test_a_request_has_left_before_its_sender_goes_on(chroot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kazoo_session, "WRITING_SECONDS", PATIENCE)
    async with interrupted(chroot) as (session, _):
        for _ in range(20):
            request = _Noted()
            reply = await session.send(request)
            assert request.is_encoded
            await reply.wait()


def test_kazoo_still_has_what_we_use_of_its_inside() -> None:
    client = KazooClient()
    call, take_watch = client._call, client._connection._read_watch_event  # noqa: SLF001 - as the name says
    assert list(inspect.signature(client._connection._submit).parameters)[:2] == ["request", "timeout"]  # noqa: SLF001
    assert list(inspect.signature(call).parameters) == ["request", "async_object"]
    assert list(inspect.signature(take_watch).parameters) == ["buffer", "offset"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_client_whose_thread_dies_of_a_fault_is_started_again(chroot: str) -> None:
    async with interrupted(chroot) as (session, store):
        before, events = store.session_id, Events(store)
        client = kazoo_client(session)
        read_header = client._connection._read_header  # noqa: SLF001 - what a server's nonsense makes fail

        def fail(timeout: float) -> None:
            client._connection._read_header = read_header  # noqa: SLF001
            raise ZeroDivisionError(timeout)

        client._connection._read_header = fail  # noqa: SLF001
        with capture_logs() as logs, pytest.raises(SessionExpired):
            await store.read(["/"])
        await events.expect(EXPIRED, CONNECTED)
        assert [log["reason"] for log in logs] == ["the client failed"]
        assert store.session_id != before
        assert await store.read(["/missing"]) == [None]
        assert store.state is SessionState.CONNECTED
