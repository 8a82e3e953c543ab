"""Clients log in over Kafka's protocol before anything else, or are sent away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import pytest
import trio
from structlog.testing import capture_logs
from structlog.typing import EventDict
from trio.testing import memory_stream_pair

from transport.errors import ErrorCode
from transport.kafka.client import KafkaConnection
from transport.kafka.codec import decode, encode
from transport.kafka.header import RequestHeader, pack_request, unpack_response
from transport.kafka.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from transport.kafka.messages.api_versions_response import ApiVersion
from transport.kafka.schema import Message
from transport.kafka.server import Handlers, KafkaRequest, serve_stream
from transport.security import sasl, scram
from transport.security.plain import PLAIN, Login
from transport.security.principal import Principal
from transport.security.sasl import SaslLogin, SaslServer
from transport.security.scram import ScramCredential
from transport.wire.errors import ConnectionBroken, Untrusted
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame
from transport.wire.server import Caller

ALICE: Final = Login("alice", "alice-secret")
SHUTDOWN: Final = ControlledShutdownRequest(broker_id=1)
pytestmark = pytest.mark.usefixtures("autojump_clock")


async def credential_of(mechanism: str, user: str) -> ScramCredential | None:
    known = scram.credential(scram.MECHANISMS[mechanism], ALICE.password, b"salt", 4096)
    return known if user == ALICE.user else None


SERVER: Final = SaslServer(sasl.MECHANISMS, {ALICE.user: ALICE.password}, credential_of)


class Service:
    """A server that remembers who has called, and what it has logged."""

    def __init__(self, server: SaslServer | None = SERVER) -> None:
        self.server = server
        self.callers: list[Caller] = []
        self.logs: list[EventDict] = []

    async def handle(self, request: KafkaRequest) -> ControlledShutdownResponse:
        self.callers.append(request.caller)
        return ControlledShutdownResponse()

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[trio.abc.Stream]:
        ours, theirs = memory_stream_pair()
        handlers: Handlers = {ControlledShutdownRequest: self.handle}
        with capture_logs() as self.logs:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(serve_stream, theirs, handlers, sasl=self.server))
                yield ours
                await ours.aclose()

    @asynccontextmanager
    async def client(self, login: SaslLogin | None) -> AsyncIterator[KafkaConnection]:
        async with self.stream() as stream:
            yield KafkaConnection(stream, peer="broker-1", client_id="klamm", login=login)


@pytest.mark.parametrize("mechanism", sasl.MECHANISMS)
async def test_a_user_logs_in_and_is_known_from_then_on(mechanism: str) -> None:
    service = Service()
    async with service.client(SaslLogin(mechanism, ALICE)) as client:
        await client.negotiate()
        await client.send(SHUTDOWN, ControlledShutdownResponse, client.version_of(ControlledShutdownRequest))
    assert service.callers == [Caller("klamm", "", Principal("User", "alice"))]
    assert service.logs == []


@pytest.mark.parametrize("mechanism", sasl.MECHANISMS)
@pytest.mark.parametrize("login", [Login("alice", "wrong-secret"), Login("mallory", "alice-secret")])
async def test_who_is_not_known_is_told_so_and_sent_away(mechanism: str, login: Login) -> None:
    service = Service()
    async with service.client(SaslLogin(mechanism, login)) as client:
        with pytest.raises(Untrusted) as caught:
            await client.negotiate()
        with pytest.raises(ConnectionBroken, match="is closed"):
            await client.negotiate()
    assert str(caught.value) == (
        f"the login of {login.user} at broker-1 by {mechanism} failed"
        " (The user name or the password is wrong): check sasl.jaas.config"
    )
    [line] = service.logs
    assert line["reason"] == f"the password is wrong, or there is no user {login.user!r}"
    assert "secret" not in f"{line}"


async def test_a_server_that_does_not_know_the_password_is_an_impostor() -> None:
    async def forged(mechanism: str, user: str) -> ScramCredential | None:
        known = await credential_of(mechanism, user)
        assert known is not None
        return ScramCredential(known.salt, known.stored_key, b"another key", known.iterations)

    service = Service(SaslServer(sasl.MECHANISMS, credential_of=forged))
    async with service.client(SaslLogin("SCRAM-SHA-512", ALICE)) as client:
        with pytest.raises(Untrusted, match="may be an impostor"):
            await client.negotiate()


async def test_a_mechanism_that_is_not_offered_is_refused_with_those_that_are() -> None:
    service = Service(SaslServer(("SCRAM-SHA-256", "SCRAM-SHA-512")))
    async with service.client(SaslLogin(PLAIN, ALICE)) as client:
        with pytest.raises(Untrusted) as caught:
            await client.negotiate()
    assert str(caught.value) == (
        "broker-1 does not offer PLAIN: set sasl.mechanism to one of SCRAM-SHA-256, SCRAM-SHA-512"
    )
    assert [line["reason"][:40] for line in service.logs] == ["the mechanism 'PLAIN' is not enabled her"]


async def test_a_request_before_the_login_ends_the_connection() -> None:
    service = Service()
    async with service.client(None) as client:
        await client.negotiate()
        with pytest.raises(ConnectionBroken, match="broker-1 closed the connection"):
            await client.send(SHUTDOWN, ControlledShutdownResponse, 3)
    assert service.callers == []
    assert [line["reason"][:39] for line in service.logs] == ["it sent ControlledShutdown before a log"]


async def test_a_client_that_says_nothing_is_sent_away() -> None:
    service, start = Service(), trio.current_time()
    async with service.stream() as stream:
        assert await stream.receive_some() == b""
        assert trio.current_time() - start == pytest.approx(sasl.LOGIN_SECONDS)
    assert [line["reason"] for line in service.logs] == ["it took more than 30 s"]


async def test_little_is_read_before_the_login() -> None:
    service = Service()
    async with service.stream() as stream:
        await stream.send_all((sasl.MAX_MESSAGE_BYTES + 1).to_bytes(4, "big"))
        assert await stream.receive_some() == b""
    assert "exceeds the limit of 65536" in service.logs[0]["reason"]


async def test_more_is_read_after_the_login() -> None:
    service = Service()
    async with service.stream() as stream:
        frames = FrameStream(stream)
        await talk(frames, SaslHandshakeRequest(PLAIN), 1, SaslHandshakeResponse)
        await talk(frames, SaslAuthenticateRequest(b"\0alice\0alice-secret"), 1, SaslAuthenticateResponse)
        await frames.send(frame(bytes(sasl.MAX_MESSAGE_BYTES + 1)))
        assert await stream.receive_some() == b""
    assert [line["reason"] for line in service.logs] == ["no api with key 0 is served here"]


async def talk(stream: FrameStream, request: Message, version: int, response: type[Message]) -> Message:
    header = RequestHeader(request.api_key, version, 7, "me")
    await stream.send(frame(pack_request(type(request), header, encode(request, version))))
    payload = await stream.receive()
    assert payload is not None
    _, body = unpack_response(response, version, payload)
    return decode(response, version, body)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_every_version_of_the_messages_is_understood(version: int) -> None:
    service = Service()
    async with service.stream() as stream:
        frames = FrameStream(stream)
        await talk(frames, SaslHandshakeRequest(PLAIN), 1, SaslHandshakeResponse)
        request = SaslAuthenticateRequest(b"\0alice\0alice-secret")
        answer = await talk(frames, request, version, SaslAuthenticateResponse)
        assert answer == SaslAuthenticateResponse(error_message=None)
        # A second login on the same connection is refused, and the first one stays.
        for again, kind in ((SaslHandshakeRequest(PLAIN), SaslHandshakeResponse), (request, SaslAuthenticateResponse)):
            refusal = await talk(frames, again, 1, kind)
            assert isinstance(refusal, SaslHandshakeResponse | SaslAuthenticateResponse)
            assert refusal.error_code == ErrorCode.ILLEGAL_SASL_STATE
        await talk(frames, SHUTDOWN, 3, ControlledShutdownResponse)
    assert [caller.principal.name for caller in service.callers] == ["alice"]


@pytest.mark.parametrize(("password", "answers"), [(b"alice-secret", b"\0\0\0\0"), (b"wrong", b"")])
async def test_after_the_first_version_of_the_handshake_messages_are_bare(password: bytes, answers: bytes) -> None:
    service = Service()
    async with service.stream() as stream:
        frames = FrameStream(stream)
        await talk(frames, SaslHandshakeRequest(PLAIN), 0, SaslHandshakeResponse)
        await stream.send_all(frame(b"\0alice\0" + password))
        assert await stream.receive_some() == answers
        if answers:
            await talk(frames, SHUTDOWN, 3, ControlledShutdownResponse)
    assert len(service.callers) == len(answers) / 4


async def test_authentication_without_a_handshake_is_refused() -> None:
    service = Service()
    async with service.stream() as stream:
        request = SaslAuthenticateRequest(b"\0alice\0alice-secret")
        answer = await talk(FrameStream(stream), request, 1, SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        refused_at = trio.current_time()
        assert await stream.receive_some() == b""
        assert trio.current_time() - refused_at == pytest.approx(sasl.REFUSAL_SECONDS)


async def test_a_login_is_renewed_before_its_session_ends() -> None:
    """The server is a script: it lets sessions end after 10 s, and refuses the second login."""
    ours, theirs = memory_stream_pair()
    asked: list[tuple[float, str]] = []
    login = SaslLogin(PLAIN, ALICE)

    async def serve() -> None:
        frames, logins = FrameStream(theirs), 0
        while (payload := await frames.receive()) is not None:
            key, version = int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")
            kind, answer = ANSWERS[key]
            asked.append((trio.current_time() - start, kind.__name__))
            if kind is SaslAuthenticateRequest:
                logins += 1
                answer = SaslAuthenticateResponse(58 * (logins // 2), "enough", session_lifetime_ms=10_000)
            await frames.send(frame(payload[4:8] + b"\0" * tagged(answer, version) + encode(answer, version)))

    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        client = KafkaConnection(ours, peer="broker-1", client_id="klamm", login=login)
        await client.negotiate()
        await trio.sleep(8)
        await client.send(SHUTDOWN, ControlledShutdownResponse, 1)
        await trio.sleep(1)
        with pytest.raises(Untrusted, match="failed \\(enough\\)"):
            await client.send(SHUTDOWN, ControlledShutdownResponse, 1)
    names = [name.removesuffix("Request") for _, name in asked]
    login_again = ["SaslHandshake", "SaslAuthenticate"]
    assert names == ["ApiVersions", *login_again, "ControlledShutdown", *login_again]
    assert [round(at) for at, _ in asked] == [0, 0, 0, 8, 9, 9]


def tagged(answer: Message, version: int) -> int:
    return int(version in answer.flexible and answer.api_key != ApiVersionsRequest.api_key)


def _offers() -> Message:
    keys = ((17, 0, 1), (36, 0, 2), (7, 0, 3))
    return ApiVersionsResponse(api_keys=tuple(ApiVersion(*row) for row in keys))


ANSWERS: Final[dict[int, tuple[type[Message], Message]]] = {
    18: (ApiVersionsRequest, _offers()),
    17: (SaslHandshakeRequest, SaslHandshakeResponse()),
    36: (SaslAuthenticateRequest, SaslAuthenticateResponse()),
    7: (ControlledShutdownRequest, ControlledShutdownResponse()),
}
