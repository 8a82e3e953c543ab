"""TLS between a client and a server: who is trusted, as whom, and in which words the others are told."""

from __future__ import annotations

import random
import ssl
import sys
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import evolve, frozen
from structlog.testing import capture_logs

from simulator.network.network import SimulatedNetwork
from tests.kit.certificates import Authority, as_pkcs12, authority, encrypted
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.server import serve_stream
from transport.network import TcpNetwork
from transport.security.errors import AuthenticationFailed, InvalidSecurity
from transport.security.key_stores import PKCS12, Store
from transport.security.network import HANDSHAKE_SECONDS, TlsNetwork
from transport.security.peers import Peer, peer_of
from transport.security.principal import ANONYMOUS, BY_DEFAULT, MappingRule, Principal, parse_mapping_rules
from transport.security.tls import ClientAuth, Tls
from transport.wire import Untrusted, open_connection

HOST: Final = "127.0.0.1"
REQUIRED: Final = ClientAuth.REQUIRED
PASSWORD: Final = "of-the-store"  # noqa: S105  of a file that lives as long as a test


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Give the tests the authority that both ends know."""
    made = authority(tmp_path_factory.mktemp("known"))
    made.issue("server", HOST)
    made.issue("client", HOST)
    return made


def tls(pem: Path | None, trusted: Path | None, client_auth: ClientAuth = ClientAuth.NONE) -> Tls:
    keystore = None if pem is None else Store("ssl.keystore", str(pem))
    truststore = None if trusted is None else Store("ssl.truststore", str(trusted))
    return Tls(keystore, truststore, client_auth=client_auth)


@frozen
class Result:
    """The outcome of a connection: the client and its words as the server heard them, and the news of each end."""

    heard: list[tuple[Principal, bytes]]
    server_told: list[str]
    client_told: str


async def talk(
    server: Tls | None, client: Tls | None, *, host: str = HOST, rules: tuple[MappingRule, ...] = BY_DEFAULT
) -> Result:
    """Connect, say hello and wait for an answer. A server or client of None has no TLS."""
    serving = TlsNetwork(TcpNetwork(), server=None if server is None else server.server_context(), rules=rules)
    asking = TlsNetwork(TcpNetwork(), client=None if client is None else client.client_context())
    heard: list[tuple[Principal, bytes]] = []
    told = ""

    async def handle(stream: trio.abc.Stream) -> None:
        assert peer_of(stream).address == HOST
        heard.append((peer_of(stream).principal, bytes(await stream.receive_some())))
        await stream.send_all(b"welcome")

    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            port = await nursery.start(serving.serve, handle, HOST, 0)
            try:
                async with await asking.connect(host, port) as stream:
                    await stream.send_all(b"hello")
                    answer = await stream.receive_some()
                    assert answer in (b"welcome", b"")
                    told = "" if answer else "the end"
            except (AuthenticationFailed, trio.BrokenResourceError) as error:
                told = str(error)
            nursery.cancel_scope.cancel()
    return Result(heard, [line["reason"] for line in logs if "reason" in line], told)


async def test_a_server_with_a_certificate_is_trusted(known: Authority) -> None:
    result = await talk(tls(known.directory / "server.pem", None), tls(None, known.certificate))
    assert result == Result([(ANONYMOUS, b"hello")], [], "")


@pytest.mark.parametrize("mode", [ClientAuth.REQUESTED, ClientAuth.REQUIRED])
async def test_a_client_is_who_its_certificate_says(known: Authority, mode: ClientAuth) -> None:
    server = tls(known.directory / "server.pem", known.certificate, mode)
    client = tls(known.directory / "client.pem", known.certificate)
    assert (await talk(server, client)).heard == [(Principal("User", "CN=client"), b"hello")]
    rules = tuple(parse_mapping_rules("RULE:CN=(.*)/$1/U"))
    assert (await talk(server, client, rules=rules)).heard == [(Principal("User", "CLIENT"), b"hello")]
    none_fits = tuple(parse_mapping_rules("RULE:OU=(.*)/$1/"))
    refused = await talk(server, client, rules=none_fits)
    assert refused.heard == []
    assert refused.server_told == ["no rule of ssl.principal.mapping.rules matches 'CN=client'"]


async def test_a_client_need_not_have_a_certificate_that_is_only_requested(known: Authority) -> None:
    server = tls(known.directory / "server.pem", known.certificate, ClientAuth.REQUESTED)
    assert (await talk(server, tls(None, known.certificate))).heard == [(ANONYMOUS, b"hello")]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_clients_that_are_not_trusted_are_told_why(known: Authority, tmp_path: Path, version: str) -> None:
    unknown = authority(tmp_path)
    server = evolve(tls(known.directory / "server.pem", known.certificate, REQUIRED), versions=(version,))
    asks = "it asks for a client certificate: set ssl.keystore.location"
    cases = [
        (None, "it shows no certificate, and ssl.client.auth is required", asks),
        (known.issue("late", HOST, days=-1), "its certificate has expired", "(it has expired): check ssl.keystore.lo"),
        (
            unknown.issue("stranger", HOST),
            "no authority of ssl.truststore.location has signed its certificate",
            "it refuses our certificate (its authority is not trusted there): check ssl.keystore.location",
        ),
    ]
    for pem, server_told, client_told in cases:
        result = await talk(server, tls(pem, known.certificate))
        assert result.heard == []
        assert result.server_told == [server_told]
        # Version 1.2 has no alert of its own for a certificate that is missing.
        expected = "TLS failed" if pem is None and version == "TLSv1.2" else client_told
        assert expected in result.client_told


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_refused_certificate_is_the_reason_whatever_was_asked(known: Authority, version: str) -> None:
    """The news comes in the middle of a handshake, or with the first answer."""
    server = evolve(tls(known.directory / "server.pem", known.certificate, REQUIRED), versions=(version,))
    asking = tls(known.issue("late", HOST, days=-1), known.certificate).client_context()
    serving = TlsNetwork(TcpNetwork(), server=server.server_context())
    told = (
        r"^cannot connect to 127.0.0.1:\d+: it refuses our certificate \(it has expired\): check ssl.keystore.location$"
    )
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serving.serve, partial(serve_stream, handlers={}), HOST, 0)
        network = TlsNetwork(TcpNetwork(), client=asking)
        for opening in (open_kafka_connection, open_connection):
            with pytest.raises(Untrusted, match=told):
                async with opening(network, HOST, port, client_id="klamm"):
                    pass
        nursery.cancel_scope.cancel()


async def test_servers_that_are_not_trusted_are_told_about(known: Authority, tmp_path: Path) -> None:
    unknown = authority(tmp_path)
    client = tls(None, known.certificate)
    elsewhere = "its certificate is not for localhost: check ssl.endpoint.identification.algorithm"
    authority_fault = "no authority of ssl.truststore.location has signed its certificate"
    cases = [
        (known.issue("old", HOST, days=-1), HOST, "its certificate has expired"),
        (unknown.issue("forged", HOST), HOST, authority_fault),
        (known.directory / "server.pem", "localhost", elsewhere),
    ]
    for pem, host, client_told in cases:
        result = await talk(tls(pem, None), client, host=host)
        assert (result.heard, result.client_told) == ([], client_told)
        assert len(result.server_told) == 1
    careless = evolve(client, verify_hostname=False)
    assert (await talk(tls(known.directory / "server.pem", None), careless, host="localhost")).client_told == ""


async def test_one_end_without_tls_is_told_so(known: Authority) -> None:
    server, client = tls(known.directory / "server.pem", None), tls(None, known.certificate)
    no_tls = "it does not speak TLS there: check the port and security.protocol"
    result = await talk(server, None)
    assert result == Result([], [no_tls], "the end")
    assert (await talk(None, client)).client_told == no_tls


async def test_ends_without_a_common_version_are_told_so(known: Authority) -> None:
    server = evolve(tls(known.directory / "server.pem", None), versions=("TLSv1.3",))
    client = evolve(tls(None, known.certificate), versions=("TLSv1.2",))
    result = await talk(server, client)
    fault = "it has no version of TLS that ssl.enabled.protocols lists"
    assert result == Result([], [fault], fault)


@pytest.mark.usefixtures("autojump_clock")
async def test_a_client_that_does_not_begin_is_sent_away(known: Authority, nursery: trio.Nursery) -> None:
    network = SimulatedNetwork(random.Random(0), lambda *_: None).at(HOST)
    context = tls(known.directory / "server.pem", None).server_context()

    async def handle(_: trio.abc.Stream) -> None:
        pytest.fail("the client was let in")

    port = await nursery.start(TlsNetwork(network, server=context).serve, handle, HOST, 0)
    start = trio.current_time()
    with capture_logs() as logs:
        async with await network.connect(HOST, port) as stream:
            assert await stream.receive_some() == b""
    assert trio.current_time() - start == pytest.approx(HANDSHAKE_SECONDS, abs=1)
    assert [line["reason"] for line in logs] == ["the handshake took more than 10 s"]


def test_who_is_at_the_other_end_of_an_ordinary_stream_is_not_known() -> None:
    ours, _ = trio.testing.memory_stream_pair()
    assert peer_of(ours) == Peer("", ANONYMOUS)


# --- key stores -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [None, "JKS", "PKCS12"])
async def test_stores_in_pkcs12(known: Authority, declared: str | None) -> None:
    """Java reads PKCS12 from a store of type JKS, which is its default, and so do we."""
    stores = [
        Store(name, str(as_pkcs12(pem, PASSWORD)), password=PASSWORD, type=declared)
        for name, pem in (("ssl.keystore", known.directory / "server.pem"), ("ssl.truststore", known.certificate))
    ]
    both = Tls(stores[0], stores[1], client_auth=REQUIRED)
    assert (await talk(both, both)).heard == [(Principal("User", "CN=server"), b"hello")]


async def test_stores_that_stand_in_the_settings(known: Authority) -> None:
    pem = (known.directory / "server.pem").read_text()
    in_a_line = pem.replace("\n", " ")
    server = Tls(Store("ssl.keystore", text=in_a_line))
    client = Tls(truststore=Store("ssl.truststore", text=known.certificate.read_text().replace("\n", " ")))
    assert (await talk(server, client)).heard == [(ANONYMOUS, b"hello")]


async def test_an_encrypted_key(known: Authority) -> None:
    store = Store("ssl.keystore", str(encrypted(known.directory / "server.pem", PASSWORD)))
    server, client = Tls(store, key_password=PASSWORD), tls(None, known.certificate)
    assert (await talk(server, client)).heard == [(ANONYMOUS, b"hello")]
    for wrong in (None, "wrong"):
        with pytest.raises(InvalidSecurity, match=r"no private key .* read from it: check ssl.key.password"):
            Tls(store, key_password=wrong).server_context()


def test_key_stores_that_cannot_be_used_are_named(known: Authority, tmp_path: Path) -> None:
    garbage, only_key = tmp_path / "garbage", tmp_path / "key.pem"
    garbage.write_bytes(b"garbage")
    only_key.write_bytes((known.directory / "server.key").read_bytes())
    p12 = as_pkcs12(known.directory / "client.pem", PASSWORD)
    no_key = as_pkcs12(known.certificate, PASSWORD)
    cases = [
        (Store("ssl.keystore", str(tmp_path / "none")), "ssl.keystore.location: cannot read .*none: No such file"),
        (Store("ssl.keystore", str(garbage)), "this is no file in PEM or PKCS12 or JKS: check ssl.keystore.type"),
        (Store("ssl.keystore", str(p12), type="PEM"), "this is no file in PEM: check ssl.keystore.type"),
        (Store("ssl.keystore", str(p12), password="wrong"), "the password is wrong.*: check ssl"),  # noqa: S106
        (Store("ssl.keystore", str(no_key), password=PASSWORD), "it has no private key with its certificate"),
        (Store("ssl.keystore", str(only_key)), "no private key with its certificate can be read"),
        (Store("ssl.keystore", text="x"), "ssl.keystore: cannot use it: no private key"),
    ]
    for store, fault in cases:
        with pytest.raises(InvalidSecurity, match=fault) as caught:
            Tls(store).server_context()
        assert PASSWORD not in str(caught.value)
    with pytest.raises(InvalidSecurity, match=r"ssl.truststore.location: cannot use .*: no certificate can be read"):
        tls(None, only_key).client_context()
    with pytest.raises(InvalidSecurity, match=r"ssl.keystore.location is not set: a server with TLS needs a key"):
        Tls().server_context()


def test_pkcs12_without_its_library_is_told_with_the_cure(known: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    p12 = as_pkcs12(known.directory / "client.pem", PASSWORD)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(InvalidSecurity, match=r"pip install 'klamm\[pkcs12\]', or convert the store to PEM"):
        Tls(Store("ssl.keystore", str(p12), password=PASSWORD, type=PKCS12)).server_context()


def test_no_key_is_left_on_the_disk(known: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    p12 = as_pkcs12(known.directory / "client.pem", PASSWORD)
    context = Tls(Store("ssl.keystore", str(p12), password=PASSWORD)).server_context()
    assert isinstance(context, ssl.SSLContext)
    assert list(tmp_path.iterdir()) == []
