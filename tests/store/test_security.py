"""ZooKeeper's own security: TLS, digest authentication, and Kafka's ACLs on new znodes."""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio
from attrs import define, evolve
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from tests.kit.certificates import Authority, authority
from tests.store.events import CONNECTED, EXPIRED, PATIENCE, Events, changed
from transport.store import paths
from transport.store.protocol import (
    FORBIDDEN,
    Create,
    Rejected,
    SessionState,
    Set,
    StoreError,
    StoreUnavailable,
    children_of,
    ensure_paths,
)
from transport.store.security import (
    CREDENTIALS,
    OPEN,
    ZooKeeperSecurity,
    ZooKeeperTls,
    security_of,
    security_of_environment,
)
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import DevelopmentServer, ServerTls, development_zookeeper

SECRET = "klamm:the-secret"  # noqa: S105
US = ZooKeeperSecurity(SECRET, set_acl=True)
OTHERS = ZooKeeperSecurity("others:their-secret", set_acl=True)

# --- identity and ACLs ------------------------------------------------------------------------------------------


@pytest.mark.requirement("D1")
async def test_only_we_change_what_we_create_and_others_read_it_unless_it_is_sensitive(chroot: str) -> None:
    async with (
        open_zookeeper(chroot, security=US) as ours,
        open_zookeeper(chroot, security=OTHERS) as theirs,
        open_zookeeper(chroot) as nobodys,
        open_zookeeper(chroot, security=US) as ours_again,
    ):
        await ensure_paths(ours, [*paths.PERSISTENT, paths.broker_config(1)])
        await ours.multi([Create(paths.broker(1), b"secured", ephemeral=True)])
        for store in (theirs, nobodys):
            [broker] = await store.read([paths.broker(1)], watch=True)
            assert broker is not None
            assert broker.data == b"secured"
            assert await store.children([paths.BROKER_IDS], watch=True) == [["1"]]
            for op in (Set(paths.broker(1), b"", 0), Create(paths.broker(2))):
                with pytest.raises(Rejected, match=r"may not be touched: its ACL .* \(zookeeper.credentials.file"):
                    await store.multi([op])
            for sensitive in (paths.broker_config(1), "/config/users"):
                assert await store.read([sensitive]) == [FORBIDDEN]
                with pytest.raises(StoreError, match=f"the children of {sensitive} may not be listed"):
                    await children_of(store, sensitive)
            await store.multi([Create(f"/consumers/{store.session_id}")])
        await ours_again.multi([Set(paths.broker(1), b"", 0), Set(paths.broker_config(1), b"", 0)])


async def test_without_acls_everything_stays_open(chroot: str) -> None:
    async with open_zookeeper(chroot, security=ZooKeeperSecurity(SECRET)) as ours, open_zookeeper(chroot) as other:
        await ours.multi([Create("/a")])
        await other.multi([Set("/a", b"", 0)])


async def test_who_reconnects_is_still_known(chroot: str) -> None:
    async with open_zookeeper(chroot, security=US) as store:
        await store.multi([Create("/a")])
        events = Events(store)
        store._session._client._connection._socket.shutdown(2)  # noqa: SLF001 - there is no other way
        await events.until(CONNECTED)
        await store.multi([Set("/a", b"", 0)])


async def test_a_session_without_an_identity_cannot_make_acls(chroot: str) -> None:
    async with open_zookeeper(chroot.replace("/", "/open-", 1)):
        pass
    with pytest.raises(StoreError, match="its ACL needs an identity, and this session has none"):
        async with open_zookeeper(chroot, security=ZooKeeperSecurity(set_acl=True)):
            pass


@define
class RefusingServer:
    """A server that opens sessions, and refuses every identity but those of the connections numbered in `accepts`."""

    accepts: tuple[int, ...] = ()
    connections: int = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        await self._receive(stream)
        password = bytes(16)
        session_id = 0x1000_0000 + self.connections
        await stream.send_all(struct.pack("!iiiqi16sx", 37, 0, 2_000, session_id, len(password), password))
        await self._receive(stream)
        is_known = self.connections in self.accepts
        await stream.send_all(struct.pack("!iiqi", 16, -4, 1, 0 if is_known else -115))
        if is_known:
            await self._answer_one(stream)

    async def _answer_one(self, stream: trio.SocketStream) -> None:
        """Answer to the read of one znode that it is not there, and end."""
        request = await self._receive(stream)
        (xid,) = struct.unpack_from("!i", request, 4)
        body = struct.pack("!iBiiiBi", -1, 0, -101, -101, -1, 1, -1)
        await stream.send_all(struct.pack("!iiqi", 16 + len(body), xid, 7, 0) + body)

    async def _receive(self, stream: trio.SocketStream) -> bytes:
        received = b""
        while len(received) < 4 or len(received) < 4 + struct.unpack_from("!i", received)[0]:
            more = await stream.receive_some()
            assert more, "the client is gone"
            received += more
        return received


async def listen(nursery: trio.Nursery, server: RefusingServer) -> str:
    async def serve(stream: trio.SocketStream) -> None:
        with suppress(AssertionError):  # to look whether somebody listens is a connection, too
            await server.serve(stream)

    [listener] = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
    return f"127.0.0.1:{listener.socket.getsockname()[1]}"


async def test_refused_credentials_say_so_without_showing_them(
    nursery: trio.Nursery, capfd: pytest.CaptureFixture[str]
) -> None:
    address = await listen(nursery, RefusingServer())
    with trio.fail_after(PATIENCE), pytest.raises(StoreUnavailable) as caught:
        async with open_zookeeper(address, security=US):
            pass
    assert str(caught.value) == f"ZooKeeper at {address} refused our credentials: check zookeeper.credentials.file"
    assert "the-secret" not in "".join(capfd.readouterr())


async def test_credentials_that_are_refused_at_a_reconnection_end_the_session_and_are_tried_again(
    nursery: trio.Nursery,
) -> None:
    """KAFKA-13461: the client is made anew only when the session is over for us, and it does not end for good."""
    server = RefusingServer(accepts=(2, 4))  # the first connection only looks whether somebody listens
    address = await listen(nursery, server)
    with capture_logs() as logs, trio.fail_after(PATIENCE):
        async with open_zookeeper(address, security=US) as store:
            events = Events(store)
            # Kazoo says that it is connected before it says who we are.
            await events.until(EXPIRED)
            await events.expect(CONNECTED)
    assert [log["reason"] for log in logs] == ["refused our credentials: check zookeeper.credentials.file"]
    assert server.connections == 4


# --- TLS --------------------------------------------------------------------------------------------------------


@pytest.fixture
def known(tmp_path: Path) -> Authority:
    """Give the test the authority that server and clients know."""
    return authority(tmp_path / "known")


@pytest.mark.requirement("D1")
async def test_tls_to_zookeeper(zookeeper: str, known: Authority, tmp_path: Path) -> None:
    assert zookeeper, "the fixture tells that there is a Java to run a server with TLS"
    tls = ServerTls(known.issue("server", "127.0.0.1"), known.certificate)
    async with development_zookeeper(tmp_path / "zookeeper", tls=tls) as server:
        ours = ZooKeeperTls(str(known.issue("client", "127.0.0.1")), str(known.certificate))
        await use_in_bulk(server, ours)
        await be_refused(server, ours, authority(tmp_path / "unknown"))


async def use_in_bulk(server: DevelopmentServer, tls: ZooKeeperTls) -> None:
    async with (
        open_zookeeper(f"{server.secure_address}/kafka", security=ZooKeeperSecurity(set_acl=True, tls=tls)) as store,
        open_zookeeper(f"{server.address}/kafka") as plain,
    ):
        names = [f"/{number}" for number in range(5_000)]
        for start in range(0, len(names), 500):
            await store.multi([Create(name, 100 * b"x") for name in names[start : start + 500]])
        await store.multi([Create("/big", 900_000 * b"x")])
        events = Events(store)
        found = await store.read([*names, "/big"], watch=True)
        assert sum(len(znode.data) for znode in found if znode is not None) == 5_000 * 100 + 900_000
        await store.multi([Set(name, b"y", 0) for name in names[:500]])
        await events.expect(*(changed(name) for name in names[:500]))
        # The certificate is an identity too: only who shows it may write.
        with pytest.raises(StoreError, match="/0 may not be touched"):
            await plain.multi([Set("/0", b"z", 1)])


async def be_refused(server: DevelopmentServer, ours: ZooKeeperTls, unknown: Authority) -> None:
    """Show in which line each lack of trust ends."""

    async def told(tls: ZooKeeperTls, at: str = server.secure_address, patience: float = PATIENCE) -> str:
        with pytest.raises(StoreUnavailable) as caught:
            async with open_zookeeper(at, connect_timeout=patience, security=ZooKeeperSecurity(tls=tls)):
                pass
        return str(caught.value)

    cure = r"\): check the port and zookeeper.ssl.truststore.location$"
    assert re.search(rf"certificate.*{cure}", await told(evolve(ours, truststore=str(unknown.certificate))))
    assert re.search(rf"^no TLS with ZooKeeper at {server.address} \(.*{cure}", await told(ours, server.address))
    stranger = evolve(ours, keystore=str(unknown.issue("stranger", "127.0.0.1")))
    cure = "opened no session within 1 s: does it trust the certificate in zookeeper.ssl.keystore.location?"
    assert (await told(stranger, patience=1)).endswith(cure)
    by_name = server.secure_address.replace("127.0.0.1", "localhost")
    assert "Hostname mismatch, certificate is not valid for 'localhost'" in await told(ours, by_name)
    careless = ZooKeeperSecurity(tls=evolve(ours, verify_hostname=False))
    async with open_zookeeper(by_name, security=careless) as store:
        assert store.state is SessionState.CONNECTED


# --- settings ---------------------------------------------------------------------------------------------------


def test_credentials_come_from_a_file_or_the_environment_and_are_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"{SECRET}\n")
    config = ControllerConfig(1001, zookeeper_set_acl=True, zookeeper_credentials_file=str(file))
    for security in (
        security_of(config, {}),
        security_of(ControllerConfig(1001, zookeeper_set_acl=True), {CREDENTIALS: SECRET}),
    ):
        assert security == US
        assert "the-secret" not in repr(security)
    assert "the-secret" not in repr(config)
    assert security_of(ControllerConfig(1001), {}) == OPEN


def test_a_command_takes_them_all_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(SECRET)
    environment = {
        "KLAMM_ZOOKEEPER_SET_ACL": "true",
        "KLAMM_ZOOKEEPER_CREDENTIALS_FILE": str(file),
        "KLAMM_ZOOKEEPER_SSL_CLIENT_ENABLE": "true",
        "KLAMM_ZOOKEEPER_SSL_KEYSTORE_LOCATION": "our.pem",
        "KLAMM_ZOOKEEPER_SSL_KEYSTORE_PASSWORD": "of-the-key",
        "KLAMM_ZOOKEEPER_SSL_TRUSTSTORE_LOCATION": "ca.pem",
        "KLAMM_ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM": "none",
    }
    found = security_of_environment(environment)
    assert found == ZooKeeperSecurity(
        SECRET,
        set_acl=True,
        tls=ZooKeeperTls("our.pem", "ca.pem", verify_hostname=False, keystore_password="of-the-key"),  # noqa: S106
    )
    assert "of-the-key" not in repr(found)
    assert security_of_environment({}) == OPEN


@pytest.mark.parametrize("content", ["", "klamm", "klamm:", ":secret", None])
def test_credentials_that_are_none_are_refused_without_showing_them(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    if content is not None:
        file.write_text(content)
    with pytest.raises(StoreUnavailable) as caught:
        security_of(ControllerConfig(1001, zookeeper_credentials_file=str(file)), {})
    expected = "No such file" if content is None else "write USER:PASSWORD in one line"
    assert expected in str(caught.value)
    assert "secret" not in str(caught.value)


def test_acls_need_an_identity() -> None:
    with pytest.raises(StoreUnavailable, match=f"name zookeeper.credentials.file, or set {CREDENTIALS}$"):
        security_of(ControllerConfig(1001, zookeeper_set_acl=True), {})


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_file_that_is_no_pem_file_is_named(store: str, tmp_path: Path) -> None:
    file = tmp_path / "file.pem"
    file.write_text("nothing")
    for path, reason in ((file, "no PEM file with what it needs"), (tmp_path / "missing", "No such file or directory")):
        tls = ZooKeeperTls(str(path)) if store == "keystore" else ZooKeeperTls(None, str(path))
        with pytest.raises(StoreUnavailable) as caught:
            tls.context()
        assert str(caught.value) == f"zookeeper.ssl.{store}.location: cannot use {path}: {reason}"
