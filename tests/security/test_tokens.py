"""The tokens of OAUTHBEARER: the message, the endpoint that gives them, and when they are renewed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from typing import Final

import pytest
import trio
from attrs import define, evolve, field
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.kit.certificates import authority
from tests.kit.token_endpoint import CLIENT, PATH, SECRET, TokenEndpoint, token_endpoint
from transport.host import Host
from transport.security import oauthbearer
from transport.security.errors import AuthenticationFailed, EndpointBusy, TokenUnavailable
from transport.security.key_stores import Store
from transport.security.sasl import SaslLogin
from transport.security.tls import Tls
from transport.security.token_endpoint import ClientCredentials
from transport.security.tokens import PATIENCE_SECONDS, Refresh, Token, Tokens, UnsignedTokens
from transport.zookeeper_server import HOST, free_port

INVALID: Final = b'{"status":"invalid_token","scope":"kafka"}'
GIVES_NONE: Final = "gives the client klamm no token"
CHECK_URL: Final = "check sasl.oauthbearer.token.endpoint.url"


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint() as running:
        yield running


def client(endpoint: TokenEndpoint, secret: str = SECRET) -> ClientCredentials:
    return ClientCredentials(endpoint.url, CLIENT, secret)


# --- the message ------------------------------------------------------------------------------------------------


def test_the_message_of_the_rfc() -> None:
    exchange = oauthbearer.client("vF9dft4qmT", {"logicalCluster": "lkc-1"})
    assert next(exchange) == b"n,,\x01auth=Bearer vF9dft4qmT\x01logicalCluster=lkc-1\x01\x01"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_a_refusal_is_noted_before_the_exchange_ends() -> None:
    exchange = oauthbearer.client("vF9dft4qmT", {})
    assert next(exchange) == b"n,,\x01auth=Bearer vF9dft4qmT\x01\x01"
    assert exchange.send(INVALID) == b"\x01"
    with pytest.raises(AuthenticationFailed, match=r"^invalid_token, it asks for the scope kafka$"):
        exchange.send(b"")


@pytest.mark.parametrize("text", ["not JSON", "[1]", '{"status":""}', "{" * 100_000])
def test_what_is_no_refusal_in_json_is_told_as_it_is(text: str) -> None:
    assert oauthbearer.refusal(text) == text[:200]


# --- tokens without a signature ---------------------------------------------------------------------------------


async def test_a_token_without_a_signature() -> None:
    source = UnsignedTokens({"sub": "alice", "scope": ["a"]}, lifetime_seconds=20, host=Host(now_ms=lambda: 5_000))
    assert source.user == "alice"
    header, claims, signature = (await source.fetch()).text.split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(claims + "==")) == {"sub": "alice", "scope": ["a"], "iat": 5, "exp": 25}
    assert signature == ""


# --- the endpoint -----------------------------------------------------------------------------------------------


async def test_an_endpoint_is_asked_as_the_rfc_says(endpoint: TokenEndpoint) -> None:
    endpoint.url += "?tenant=1"
    token = await evolve(client(endpoint), scope="kafka admin").fetch()
    [asked] = endpoint.asked
    assert (asked.path, asked.form) == (
        f"{PATH}?tenant=1",
        {"grant_type": ["client_credentials"], "scope": ["kafka admin"]},
    )
    assert asked.authorization == "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
    assert [token.text] == endpoint.given
    assert token.seconds == pytest.approx(20, abs=2)
    assert token.text not in repr(token)


async def test_an_id_and_a_secret_may_be_encoded_first(endpoint: TokenEndpoint) -> None:
    endpoint.answer = 200, b'{"access_token":"x"}'
    token = await evolve(client(endpoint, "a:b%é"), client="a:b", encodes_header=True).fetch()
    assert base64.b64decode(endpoint.asked[0].authorization.removeprefix("Basic ")) == b"a%3Ab:a%3Ab%25%C3%A9"
    assert token.seconds is None


async def test_the_life_of_a_token_that_is_not_readable(endpoint: TokenEndpoint) -> None:
    endpoint.answer = 200, b'{"access_token":"x","expires_in":30}'
    assert (await client(endpoint).fetch()).seconds == 30


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (
            401,
            b'{"error":"invalid_client","error_description":"no klamm-secret:\\nhere"}',
            f"{GIVES_NONE} (401 invalid_client: no ...: here): check the id and the secret of the client",
        ),
        (403, b"<html>", f"{GIVES_NONE} (403): check the id and the secret of the client"),
        (400, b'{"error":"invalid_scope"}', f"{GIVES_NONE} (400 invalid_scope): check sasl.oauthbearer.scope, or "),
        (404, b"", f"{GIVES_NONE} (404): {CHECK_URL}"),
        (501, b"", f"{GIVES_NONE} (501): {CHECK_URL}"),
        (302, b"", f"{GIVES_NONE} (302): {CHECK_URL}"),
        (200, b"<html>", f"does not answer as a token endpoint does: {CHECK_URL}"),
        (200, b"[1]", f"does not answer as a token endpoint does: {CHECK_URL}"),
        (200, b'{"access_token":"a b"}', f"does not answer as a token endpoint does: {CHECK_URL}"),
        (200, b'{"access_token":"a","expires_in":0}', "has expired already: check the clocks"),
        (200, b"[" * 100_000, f"does not answer as a token endpoint does: {CHECK_URL}"),
    ],
)
async def test_what_an_endpoint_refuses_is_told_with_what_to_do(
    endpoint: TokenEndpoint, status: int, body: bytes, fault: str
) -> None:
    endpoint.answer = status, body
    with pytest.raises(AuthenticationFailed) as caught:
        await client(endpoint).fetch()
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (503, b"later", "it answers 503"),
        (429, b'{"error":"slow_down"}', "it answers 429 slow_down"),
        (200, b"x" * 300_000, "it does not answer as a server of HTTP does: check"),
    ],
)
async def test_faults_that_may_pass_are_told_apart(
    endpoint: TokenEndpoint, status: int, body: bytes, fault: str
) -> None:
    endpoint.answer = status, body
    with pytest.raises(TokenUnavailable, match=f"^cannot get a token from {endpoint.url}: {fault}"):
        await client(endpoint).fetch()


async def test_an_endpoint_that_is_not_there_is_told(nursery: trio.Nursery) -> None:
    async def end(stream: trio.SocketStream) -> None:
        await stream.aclose()

    [listener] = await nursery.start(partial(trio.serve_tcp, end, 0, host=HOST))
    closing = f"http://{HOST}:{listener.socket.getsockname()[1]}/"
    silent = f"http://{HOST}:{free_port()}"
    for url, fault in (
        (closing, "it does not answer as a server of HTTP does"),
        (silent, "nothing listens there"),
        ("http://no-such-host.invalid/x?secret", r"the host no-such-host.invalid cannot be found \(.*\)"),
    ):
        shown = url.removesuffix("?secret")
        with pytest.raises(TokenUnavailable, match=f"^cannot get a token from {shown}: {fault}: {CHECK_URL}$"):
            await ClientCredentials(url, CLIENT, SECRET).fetch()
    nursery.cancel_scope.cancel()


@pytest.mark.usefixtures("autojump_clock")
async def test_an_endpoint_that_stays_silent_is_told() -> None:
    class Silent:
        async def connect(self, *_: object) -> trio.abc.Stream:
            return trio.testing.memory_stream_pair()[0]

    source = ClientCredentials("http://idp/", CLIENT, SECRET, network=Silent())  # type: ignore[arg-type]
    with pytest.raises(TokenUnavailable, match=r"^cannot get a token from http://idp/: no answer within 4 s: check"):
        await source.fetch()


async def test_the_authorities_of_an_endpoint(tmp_path: Path) -> None:
    known, other = authority(tmp_path / "known"), authority(tmp_path / "other")
    with token_endpoint(known.issue("server", HOST)) as endpoint:
        trusting, strange = (
            evolve(
                client(endpoint), tls=Tls(truststore=Store("ssl.truststore", str(one.certificate)), trusts_system=True)
            )
            for one in (known, other)
        )
        assert (await trusting.fetch()).text == endpoint.given[0]
        for source in (strange, client(endpoint)):
            with pytest.raises(TokenUnavailable, match=r"no authority of ssl.truststore.location has signed its"):
                await source.fetch()


# --- renewal ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lifetime", "draw", "seconds"),
    [
        (20, 0, 16),
        (20, 1, 17),
        (359, 0, 287.2),  # no room for 60 s and 300 s, so that they do not count
        (360, 0, 60),
        (400, 0, 100),
        (3600, 0, 2880),
        (3600, 1, 3060),
    ],
)
def test_when_a_token_is_renewed(lifetime: float, draw: float, seconds: float) -> None:
    assert Refresh().after(lifetime, draw) == pytest.approx(seconds)


def test_a_token_is_not_renewed_before_the_shortest_period() -> None:
    assert Refresh(window_factor=0.5, min_period_seconds=900, buffer_seconds=0).after(1000, 0) == 900


@pytest.mark.parametrize("has_expires_in", [True, False])
async def test_a_token_is_renewed_while_it_is_valid(
    endpoint: TokenEndpoint, mock_clock: MockClock, has_expires_in: bool
) -> None:
    endpoint.has_expires_in = has_expires_in
    tokens = Tokens(client(endpoint), rng=Random(0))
    login = SaslLogin("OAUTHBEARER", tokens)
    used: list[int] = []
    for _ in range(12):  # two minutes
        exchange = await login.start()
        token = next(exchange).split(b"\x01")[1].removeprefix(b"auth=Bearer ").decode()
        used.append(endpoint.given.index(token))
        mock_clock.jump(10)
    assert used == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert not any(token in f"{login!r}{tokens!r}" for token in (*endpoint.given, SECRET))


async def test_logins_at_the_same_time_share_a_token(endpoint: TokenEndpoint) -> None:
    tokens, used = Tokens(client(endpoint)), set()

    async def use() -> None:
        used.add(await tokens.token())

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(use)
    assert used == set(endpoint.given)
    assert len(endpoint.given) == 1


async def test_a_token_without_a_known_life_is_used_once(endpoint: TokenEndpoint) -> None:
    endpoint.answer = 200, b'{"access_token":"opaque"}'
    tokens = Tokens(client(endpoint))
    assert [await tokens.token() for _ in range(3)] == ["opaque"] * 3
    assert len(endpoint.asked) == 3


async def test_an_endpoint_that_fails_later_costs_nothing_while_the_token_is_valid(
    endpoint: TokenEndpoint, mock_clock: MockClock
) -> None:
    endpoint.has_expires_in = True
    tokens = Tokens(client(endpoint))
    await tokens.token()
    endpoint.answer = 503, b""
    mock_clock.jump(18)
    with capture_logs() as logs:
        assert await tokens.token() == endpoint.given[0]
    assert [line["event"] for line in logs] == ["token not renewed, the old one is still valid"]
    assert endpoint.given[0] not in f"{logs}"
    mock_clock.jump(2)
    with trio.fail_after(0.1), pytest.raises(TokenUnavailable, match="it answers 503"):
        await tokens.token()
    endpoint.answer = None
    mock_clock.jump(1)
    assert await tokens.token() == endpoint.given[1]


async def test_an_endpoint_that_has_never_answered_is_a_wrong_setting() -> None:
    with pytest.raises(AuthenticationFailed, match="nothing listens there"):
        await Tokens(ClientCredentials(f"http://{HOST}:{free_port()}", CLIENT, SECRET)).token()


# --- an endpoint that is busy -----------------------------------------------------------------------------------


@define
class BusySource:
    """Is busy for some seconds, and then gives a token."""

    seconds: float
    retry_after: float = 0
    start: float = field(factory=trio.current_time)
    asked_at: list[float] = field(factory=list)
    """The seconds since the start at each attempt."""

    user: str = CLIENT

    async def fetch(self) -> Token:
        await trio.lowlevel.checkpoint()
        since = trio.current_time() - self.start
        self.asked_at.append(round(since, 1))
        if since < self.seconds:
            raise EndpointBusy("it answers 503", self.retry_after)
        return Token("token", 20)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
@pytest.mark.parametrize(
    ("header", "seconds"), [(None, 0), ("3", 3), ("9" * 400, inf), ("-1", 0), ("Fri, 31 Dec 2100 23:59:59 GMT", 0)]
)
async def test_a_busy_endpoint_may_ask_for_a_pause(
    endpoint: TokenEndpoint, status: int, header: str | None, seconds: float
) -> None:
    endpoint.answer, endpoint.retry_after = (status, b""), header
    with pytest.raises(EndpointBusy) as caught:
        await client(endpoint).fetch()
    assert caught.value.retry_after == seconds


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize(
    ("retry_after", "asked_at"),
    [(0, [0, 0.1, 0.3, 0.7, 1.5]), (0.5, [0, 0.5, 1]), (10_000, [0, 10])],
)
async def test_a_busy_endpoint_is_asked_again_for_the_first_token(retry_after: float, asked_at: list[float]) -> None:
    source = BusySource(0.9, retry_after)
    tokens, used = Tokens(source), []

    async def use() -> None:
        used.append(await tokens.token())

    with trio.fail_after(11):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(use)
    assert used == ["token"] * 5
    assert source.asked_at == asked_at


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize(("seconds", "attempts"), [(5, 6), (10, 7), (inf, 9)])
async def test_a_login_ends_with_the_reason_before_its_time_is_over(seconds: float, attempts: int) -> None:
    source, start = BusySource(inf), trio.current_time()
    with trio.CancelScope(relative_deadline=seconds) as scope, pytest.raises(TokenUnavailable, match="it answers 503"):
        await Tokens(source).token()
    assert not scope.cancelled_caught
    assert trio.current_time() - start < min(seconds, PATIENCE_SECONDS)
    assert len(source.asked_at) == attempts


def test_each_run_of_trio_fetches_its_own_token(endpoint: TokenEndpoint) -> None:
    tokens = Tokens(client(endpoint))
    assert [trio.run(tokens.token) for _ in range(2)] == endpoint.given
