"""SASL with ZooKeeper by DIGEST-MD5, as Kafka's brokers authenticate."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from kazoo.exceptions import AuthFailedError

from tests.kit.jaas import CREDENTIALS, USER, java_options
from tests.store.events import CONNECTED, PATIENCE, Events
from transport.store.protocol import Create, Set, StoreError, StoreUnavailable
from transport.store.sasl import DigestMd5
from transport.store.security import ZooKeeperSecurity, security_of_environment
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
EXAMPLE = DigestMd5("chris", "secret", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")
US = ZooKeeperSecurity(CREDENTIALS, set_acl=True, sasl=True)


def test_the_example_of_rfc_2831() -> None:
    assert EXAMPLE.answer(CHALLENGE).decode() == (
        'username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",cnonce="OA6MHXh6VqTrRk",nc=00000001,'
        'qop=auth,digest-uri="imap/elwood.innosoft.com",response=d388dad90d4bbd760a152321f2143af7,charset=utf-8'
    )
    EXAMPLE.verify(CHALLENGE, b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


@pytest.mark.parametrize("final", [b"", b"rspauth=ea40f60335c427b5527b84dbabcdfffe"])
def test_a_server_that_does_not_know_the_password_is_not_trusted(final: bytes) -> None:
    with pytest.raises(AuthFailedError, match="the server does not know the password"):
        EXAMPLE.verify(CHALLENGE, final)


def test_an_answer_that_is_no_challenge_is_refused() -> None:
    with pytest.raises(AuthFailedError, match="the server has no SASL"):
        EXAMPLE.answer(b"")


def test_names_are_quoted() -> None:
    assert rb'username="a\"b\\c",' in DigestMd5('a"b\\c', "secret").answer(CHALLENGE)
    assert rb'nonce="a\"b",' in EXAMPLE.answer(rb'nonce="a\"b"')


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(EXAMPLE)


async def test_a_secured_zookeeper(zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert zookeeper, "the fixture tells that there is a Java to run a server with SASL"
    monkeypatch.setenv("JDK_JAVA_OPTIONS", java_options(tmp_path))
    async with development_zookeeper(tmp_path / "zookeeper") as server:
        async with open_zookeeper(server.address, security=US) as ours, open_zookeeper(server.address) as nobodys:
            await ours.multi([Create("/ours")])
            with pytest.raises(StoreError, match="/ours may not be touched"):
                await nobodys.multi([Set("/ours", b"", 0)])
            ours._session._client._connection._socket.shutdown(2)  # noqa: SLF001 - there is no other way
            await Events(ours).until(CONNECTED)
            await ours.multi([Set("/ours", b"", 0)])
        wrong = ZooKeeperSecurity(f"{USER}:wrong", sasl=True)
        with trio.fail_after(PATIENCE), pytest.raises(StoreUnavailable, match="refused our credentials"):
            async with open_zookeeper(server.address, security=wrong):
                pass


async def test_a_zookeeper_without_sasl_refuses_it(zookeeper: str) -> None:
    with trio.fail_after(PATIENCE), pytest.raises(StoreUnavailable, match="refused our credentials"):
        async with open_zookeeper(zookeeper, security=US):
            pass


def test_sasl_is_a_setting() -> None:
    environment = {"KLAMM_ZOOKEEPER_SASL_CLIENT": "true"}
    known = {"KLAMM_ZOOKEEPER_CREDENTIALS": CREDENTIALS}
    assert security_of_environment(environment | known) == ZooKeeperSecurity(CREDENTIALS, sasl=True)
    with pytest.raises(StoreUnavailable, match=r"zookeeper.sasl.client needs credentials"):
        security_of_environment(environment)
