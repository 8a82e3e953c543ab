"""Logins by OAUTHBEARER over Kafka's protocol: accepted, refused, and renewed before the session ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trio
from attrs import define, field
from trio.testing import memory_stream_pair

from tests.kafka.test_sasl import ANSWERS, SHUTDOWN
from transport.errors import ErrorCode
from transport.kafka.client import KafkaConnection
from transport.kafka.codec import decode, encode
from transport.kafka.header import correlation_id_of, pack_response, read_api, unpack_request
from transport.kafka.messages import ControlledShutdownResponse, SaslAuthenticateRequest, SaslAuthenticateResponse
from transport.security.errors import AuthenticationFailed, TokenUnavailable
from transport.security.sasl import OAUTHBEARER, SaslLogin
from transport.security.tokens import Token, Tokens
from transport.wire.errors import NoToken, Untrusted
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame

pytestmark = pytest.mark.usefixtures("autojump_clock")

ACCEPTED: Final = SaslAuthenticateResponse(session_lifetime_ms=20_000)
INVALID: Final = '{"status":"invalid_token"}'


@define
class Source:
    """Gives tokens with a number, for 20 s, or fails."""

    fault: Exception | None = None
    given: list[float] = field(factory=list)
    user: str = "klamm"

    async def fetch(self) -> Token:
        await trio.lowlevel.checkpoint()
        if self.fault is not None:
            raise self.fault
        self.given.append(trio.current_time())
        return Token(f"token-{len(self.given)}", 20)


@define
class Broker:
    """A script of the answers to SaslAuthenticate, of which the last one stays."""

    answers: Sequence[SaslAuthenticateResponse] = (ACCEPTED,)
    messages: list[tuple[float, bytes]] = field(factory=list)
    """The times and the messages of logins."""

    @asynccontextmanager
    async def client(self, source: Source) -> AsyncIterator[KafkaConnection]:
        ours, theirs = memory_stream_pair()
        login = SaslLogin(OAUTHBEARER, Tokens(source))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._serve, theirs)
            yield KafkaConnection(ours, peer="broker-1", client_id="klamm", login=login)
            await ours.aclose()

    async def _serve(self, stream: trio.abc.Stream) -> None:
        frames = FrameStream(stream)
        while (payload := await frames.receive()) is not None:
            key, version = read_api(payload)
            kind, answer = ANSWERS[key]
            if kind is SaslAuthenticateRequest:
                _, body = unpack_request(kind, payload)
                self.messages.append((trio.current_time(), decode(kind, version, body).auth_bytes))
                answer = self.answers[min(len(self.messages), len(self.answers)) - 1]
            number = correlation_id_of(payload)
            await frames.send(frame(pack_response(type(answer), version, number, encode(answer, version))))

    @property
    def sent(self) -> list[bytes]:
        """The messages of logins."""
        return [message for _, message in self.messages]


async def shut_down(client: KafkaConnection) -> None:
    await client.send(SHUTDOWN, ControlledShutdownResponse, 1)


def message(number: int) -> bytes:
    return f"n,,\x01auth=Bearer token-{number}\x01\x01".encode()


async def test_a_session_outlives_its_tokens() -> None:
    """Requests every 5 s for two minutes: each login after the first one has a token with most of its life ahead."""
    source, broker, start = Source(), Broker(), trio.current_time()
    async with broker.client(source) as client:
        await client.negotiate()
        for _ in range(24):
            await shut_down(client)
            await trio.sleep(5)
    assert broker.sent == [message(number) for number in range(1, len(broker.messages) + 1)]
    assert [round(at - start) for at, _ in broker.messages] == [0, 20, 40, 60, 80, 100]
    assert source.given == [at for at, _ in broker.messages]


async def test_a_refused_token_is_noted_and_told() -> None:
    refused = SaslAuthenticateResponse(auth_bytes=INVALID.encode())
    ended = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, INVALID)
    broker = Broker((refused, ended))
    async with broker.client(Source()) as client:
        with pytest.raises(Untrusted) as caught:
            await client.negotiate()
    assert broker.sent == [message(1), b"\x01"]
    assert str(caught.value) == (
        "the login of klamm at broker-1 by OAUTHBEARER failed (invalid_token):"
        " compare its tokens (issuer, audience, scope, clock) with what brokers accept"
    )


async def test_a_broker_that_refuses_a_token_and_goes_on_is_not_trusted() -> None:
    broker = Broker((SaslAuthenticateResponse(auth_bytes=INVALID.encode()), ACCEPTED))
    async with broker.client(Source()) as client:
        with pytest.raises(Untrusted, match=r"failed \(invalid_token\): compare"):
            await client.negotiate()


async def test_nothing_is_sent_without_a_token() -> None:
    broker = Broker()
    async with broker.client(Source(AuthenticationFailed("no token for you"))) as client:
        with pytest.raises(Untrusted, match=r"^no token for you$"):
            await client.negotiate()
    assert broker.messages == []


async def test_an_endpoint_that_fails_when_a_token_is_due_is_a_fault_that_may_pass() -> None:
    source, broker = Source(), Broker()
    async with broker.client(source) as client:
        await client.negotiate()
        source.fault = TokenUnavailable("later")
        await trio.sleep(18)
        await shut_down(client)  # the token is still valid
        assert broker.sent == [message(1), message(1)]
        await trio.sleep(18)
        with pytest.raises(NoToken, match=r"^later$"):
            await shut_down(client)
