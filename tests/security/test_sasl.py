"""SASL as a wire uses it: a client logs in at a server that offers some mechanisms."""

from __future__ import annotations

from typing import Final

import pytest

from transport.security import sasl, scram
from transport.security.errors import AuthenticationFailed
from transport.security.plain import PLAIN, Login
from transport.security.sasl import SaslLogin, SaslServer
from transport.security.scram import ScramCredential

ALICE: Final = Login("alice", "alice-secret")


async def credential_of(mechanism: str, user: str) -> ScramCredential | None:
    if user != ALICE.user:
        return None
    return scram.credential(scram.MECHANISMS[mechanism], ALICE.password, b"salt", 8192)


SERVER: Final = SaslServer(sasl.MECHANISMS, {ALICE.user: ALICE.password}, credential_of)


async def log_in(server: SaslServer, login: SaslLogin) -> str | None:
    """Let both ends talk, and return the user that the server let in."""
    theirs, ours = server.start(login.mechanism), await login.start()
    message = next(ours)
    while True:
        answer = await theirs.respond(message)
        try:
            message = ours.send(answer)
        except StopIteration:
            return theirs.user


@pytest.mark.parametrize("mechanism", sasl.MECHANISMS)
async def test_a_user_logs_in(mechanism: str) -> None:
    assert await log_in(SERVER, SaslLogin(mechanism, ALICE)) == "alice"


@pytest.mark.parametrize("mechanism", sasl.MECHANISMS)
@pytest.mark.parametrize("login", [Login("alice", "wrong-secret"), Login("mallory", "alice-secret")])
async def test_a_wrong_password_and_an_unknown_user_are_told_alike(mechanism: str, login: Login) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        await log_in(SERVER, SaslLogin(mechanism, login))
    assert str(caught.value) == f"the password is wrong, or there is no user {login.user!r}"


@pytest.mark.parametrize("mechanism", scram.MECHANISMS)
async def test_an_unknown_user_keeps_its_salt(mechanism: str) -> None:
    message = b"n,,n=mallory,r=x"
    [one, other] = [(await SERVER.start(mechanism).respond(message)).split(b",") for _ in range(2)]
    assert one[0] != other[0], "each exchange has a nonce of its own"
    assert one[1:] == other[1:]
    [elsewhere] = [await SaslServer(SERVER.mechanisms).start(mechanism).respond(message)]
    assert elsewhere.split(b",")[1] != one[1]


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    with pytest.raises(AuthenticationFailed, match="'GSSAPI' is not enabled here: use one of PLAIN, SCRAM-SHA-256"):
        SERVER.start("GSSAPI")


async def test_nobody_is_let_in_before_the_last_message() -> None:
    exchange = SERVER.start("SCRAM-SHA-256")
    await exchange.respond(b"n,,n=alice,r=x")
    assert exchange.user is None


def test_no_secret_is_shown() -> None:
    assert "secret" not in f"{SERVER}{SaslLogin(PLAIN, ALICE)}"
