"""SCRAM: the examples of the RFCs, both ends together, and what each end refuses."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Generator
from typing import Final

import pytest
from attrs import evolve, frozen
from hypothesis import given, strategies as st

from transport.security import scram
from transport.security.errors import AuthenticationFailed
from transport.security.plain import Login

SALT: Final = b"16 bytes of salt"
PENCIL: Final = Login("user", "pencil")
ALICE: Final = Login("alice", "alice-secret")
HASHES: Final = tuple(scram.MECHANISMS.values())


@frozen
class Example:
    """The messages of an exchange, as a document shows them."""

    hash_name: str
    client_nonce: str
    messages: tuple[bytes, bytes, bytes, bytes]

    @property
    def server_nonce(self) -> str:
        whole = re.search(r"r=([^,]+)", self.messages[1].decode())
        assert whole is not None
        return whole[1].removeprefix(self.client_nonce)

    @property
    def salt(self) -> bytes:
        salt = re.search(r"s=([^,]+)", self.messages[1].decode())
        assert salt is not None
        return base64.b64decode(salt[1])


RFC_5802: Final = Example(
    "sha1",
    "fyko+d2lbbFgONRv9qkxdawL",
    (
        b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
)
RFC_7677: Final = Example(
    "sha256",
    "rOprNGfwEbeRWgbNEkqO",
    (
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
)


def finish(exchange: Generator[bytes, bytes, object], message: bytes) -> object:
    """Send the last message to one end, and return its result."""
    with pytest.raises(StopIteration) as end:
        exchange.send(message)
    return end.value.value


@pytest.mark.parametrize("example", [RFC_5802, RFC_7677])
def test_the_examples_of_the_rfcs(example: Example) -> None:
    first, challenge, proof, outcome = example.messages
    client = scram.client(example.hash_name, PENCIL, example.client_nonce)
    assert next(client) == first
    assert client.send(challenge) == proof
    finish(client, outcome)
    known = scram.credential(example.hash_name, PENCIL.password, example.salt, 4096)
    server = scram.server(example.hash_name, scram.read_client_first(first), known, example.server_nonce)
    assert next(server) == challenge
    assert finish(server, proof) == outcome


def exchange(hash_name: str, login: Login, known: scram.ScramCredential, change: Callable[[bytes], bytes]) -> str:
    """Let both ends talk, and return the user that the server let in. `change` is done to the client's proof."""
    client = scram.client(hash_name, login, "client-nonce")
    first = scram.read_client_first(next(client))
    server = scram.server(hash_name, first, known, "server-nonce")
    proof = client.send(next(server))
    outcome = finish(server, change(proof))
    assert isinstance(outcome, bytes)
    finish(client, outcome)
    return first.user


def unchanged(message: bytes) -> bytes:
    return message


@pytest.mark.parametrize("hash_name", HASHES)
@given(user=st.text(min_size=1, max_size=20), password=st.text(max_size=20))
def test_any_name_and_password_pass_both_ends(hash_name: str, user: str, password: str) -> None:
    known = scram.credential(hash_name, password, SALT, 4096)
    assert exchange(hash_name, Login(user, password), known, unchanged) == user


@pytest.mark.parametrize("hash_name", HASHES)
def test_a_wrong_password_is_refused(hash_name: str) -> None:
    known = scram.credential(hash_name, "another", SALT, 4096)
    with pytest.raises(AuthenticationFailed, match="the password is wrong"):
        exchange(hash_name, ALICE, known, unchanged)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda proof: proof.replace(b"server-nonce", b"served-nonce"), "malformed"),
        (lambda proof: proof.replace(b"c=biws", b"c=eSws"), "malformed"),
        (lambda proof: proof.partition(b",p=")[0], "malformed"),
        (lambda proof: proof[:-8] + b"!", "not base64"),
        (lambda _: b"c=biws,r=client-nonceserver-nonce,p=AAAA", "the wrong length"),
        (lambda _: b"\xff", "not UTF-8"),
    ],
)
def test_a_server_refuses_a_last_message_that_is_none(change: Callable[[bytes], bytes], fault: str) -> None:
    known = scram.credential("sha256", ALICE.password, SALT, 4096)
    with pytest.raises(AuthenticationFailed, match=fault):
        exchange("sha256", ALICE, known, change)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (b"", "malformed"),
        (b"y,,n=alice,r=x", "malformed"),
        (b"p=tls-unique,,n=alice,r=x", "malformed"),
        (b"n,,m=ext,n=alice,r=x", "malformed"),
        (b"n,,n=,r=x", "malformed"),
        (b"n,,n=alice,r=", "malformed"),
        (b"n,,n=al=ice,r=x", "name .* malformed"),
        (b"n,,n=alice,r=\x7f", "nonce .* malformed"),
        (b"n,a=bob,n=alice,r=x", "act as another user"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_server_refuses_a_first_message_that_is_none(message: bytes, fault: str) -> None:
    with pytest.raises(AuthenticationFailed, match=fault):
        scram.read_client_first(message)


def test_a_server_takes_the_same_user_twice_and_ignores_extensions() -> None:
    first = scram.read_client_first(b"n,a=alice,n=alice,r=x,tokenauth=true")
    assert (first.user, first.nonce, first.header) == ("alice", "x", "n,a=alice,")


@pytest.mark.parametrize(
    ("challenge", "fault"),
    [
        (b"r=other,s=QQ==,i=4096", "does not extend"),
        (b"r=mine,s=QQ==,i=4096", "does not extend"),
        (b"r=mine\xc3\xa4,s=QQ==,i=4096", "does not extend"),
        (b"r=mine+,s=QQ==,i=4095", "4096 to 100000 are accepted"),
        (b"r=mine+,s=QQ==,i=100001", "4096 to 100000 are accepted"),
        (b"r=mine+,s=QQ==,i=-5000", "4096 to 100000 are accepted"),
        (b"r=mine+,s=QQ==", "4096 to 100000 are accepted"),
        (b"r=mine+,s=,i=4096", "no salt"),
        (b"r=mine+,s=!,i=4096", "not base64"),
        (b"m=ext,r=mine+,s=QQ==,i=4096", "an extension"),
        (b"r=mine+,r=mine+,s=QQ==,i=4096", "malformed"),
        (b"nothing", "malformed"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_client_refuses_a_challenge_that_is_none(challenge: bytes, fault: str) -> None:
    client = scram.client("sha256", ALICE, "mine")
    next(client)
    with pytest.raises(AuthenticationFailed, match=fault):
        client.send(challenge)


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [
        (b"e=invalid-proof", "refused: invalid-proof"),
        (b"v=AAAA", "an impostor"),
        (b"x=1", "an impostor"),
        (b"", "malformed"),
    ],
)
def test_a_client_refuses_a_server_that_does_not_prove_itself(outcome: bytes, fault: str) -> None:
    client = scram.client("sha256", ALICE, "mine")
    next(client)
    client.send(b"r=mine+,s=QQ==,i=4096")
    with pytest.raises(AuthenticationFailed, match=fault):
        client.send(outcome)


def test_no_secret_is_shown() -> None:
    known = scram.credential("sha256", ALICE.password, SALT, 4096)
    assert repr(known) == "ScramCredential(iterations=4096)"
    assert repr(ALICE) == "Login(user='alice')"
    assert known != evolve(known, stored_key=b"other")
