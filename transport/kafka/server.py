"""The server of Kafka's protocol: the requests of each connection are answered in order, one at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import trio
from attrs import evolve, frozen

from transport.errors import ErrorCode
from transport.kafka.apis import KAFKA_APIS, KafkaApi
from transport.kafka.codec import decode, encode
from transport.kafka.header import RequestHeader, correlation_id_of, pack_response, read_api, unpack_request
from transport.kafka.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from transport.kafka.messages.api_versions_response import ApiVersion
from transport.kafka.relay import NotOurs, Relay
from transport.kafka.sasl_session import SaslSession
from transport.kafka.schema import Message, Versions
from transport.log import get_logger
from transport.security.errors import AuthenticationFailed, SecurityError
from transport.security.peers import peer_of
from transport.security.principal import USER, Principal
from transport.security.sasl import LOGIN_SECONDS, MAX_MESSAGE_BYTES, REFUSAL_SECONDS, SaslServer
from transport.wire.errors import CodecError, ConnectionBroken, FrameError
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame
from transport.wire.server import Caller

MAX_REQUEST_BYTES: Final = 8 * 1024 * 1024
"""The limit of one request. AlterPartition for 100,000 partitions takes 5 MiB.

A request takes up to 25 times its bytes while it is read: the least of AlterPartition's topics has three of them.
"""

_BEFORE_LOGIN: Final = frozenset(
    request.api_key for request in (ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest)
)

_UNKNOWN: Final = Caller("")
"""A client that has not said anything about itself."""

_log = get_logger(__name__)


@frozen
class KafkaRequest:
    """A request, with the header that it came with, and who has sent it."""

    header: RequestHeader
    message: Any
    caller: Caller = _UNKNOWN


Handler = Callable[[KafkaRequest], Awaitable[Message]]
"""Answers a request with the response of its api. What it raises closes the connection and is logged.

If that is NotOurs, the request is passed on instead.
"""

Handlers = Mapping[type[Message], Handler]


async def serve_stream(
    stream: trio.abc.Stream,
    handlers: Handlers,
    *,
    sasl: SaslServer | None = None,
    relay: Relay | None = None,
    max_request_bytes: int = MAX_REQUEST_BYTES,
) -> None:
    """Answer the requests of one connection until the peer ends it or sends something that is not a request.

    ApiVersions needs no handler. A request of another api without a handler is passed on if the `relay` takes it. If
    not, or if its version is unknown here, it ends the connection, as it does on Kafka's own servers: nobody sends one
    to a server that does not offer it. With `sasl`, the client has to log in first.
    """
    frames, peer = FrameStream(stream, max_request_bytes), peer_of(stream)
    try:
        principal: Principal | None = peer.principal
        if sasl is not None:
            session = SaslSession(sasl)
            handlers = {**handlers, **_handlers_of(session)}
            frames.allow(MAX_MESSAGE_BYTES)
            principal = await _log_in(frames, handlers, session, relay)
            frames.allow(max_request_bytes)
        while principal is not None and (payload := await frames.receive()) is not None:
            await frames.send(frame(await _answer(handlers, payload, Caller("", peer.address, principal), relay)))
    except (CodecError, FrameError) as error:
        _log.warning("connection closed: the peer did not send a valid request", reason=str(error))
    except SecurityError as error:
        _log.warning("connection closed: the client did not log in", address=peer.address, reason=str(error))
    except ConnectionBroken as error:
        _log.info("connection closed: a client has to ask another node", reason=str(error))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the peer is gone
    finally:
        await frames.close()
        if relay is not None:
            await relay.close()


async def _log_in(
    frames: FrameStream, handlers: Handlers, session: SaslSession, relay: Relay | None
) -> Principal | None:
    """Answer requests until the client has logged in; None if it ends the stream. Raises SecurityError."""
    with trio.move_on_after(LOGIN_SECONDS):
        while session.user is None:
            payload = await frames.receive()
            if payload is None:
                return None
            await frames.send(frame(await _before_login(handlers, session, payload, relay)))
            if session.failure is not None:
                await trio.sleep(REFUSAL_SECONDS)
                raise AuthenticationFailed(session.failure)
        return Principal(USER, session.user)
    raise AuthenticationFailed(f"it took more than {LOGIN_SECONDS} s")


async def _before_login(handlers: Handlers, session: SaslSession, payload: bytes, relay: Relay | None) -> bytes:
    if session.takes_bare_messages:
        return await session.respond(payload)
    key, _ = read_api(payload)
    if key not in _BEFORE_LOGIN:
        name = KAFKA_APIS[key].name if key in KAFKA_APIS else f"api {key}"
        raise AuthenticationFailed(f"it sent {name} before a login: its security.protocol has to be that of SASL")
    return await _answer(handlers, payload, _UNKNOWN, relay)


def _handlers_of(session: SaslSession) -> Handlers:
    async def handle(answer: Callable[[int, Any], Awaitable[Message]], request: KafkaRequest) -> Message:
        return await answer(request.header.version, request.message)

    return {kind: partial(handle, answer) for kind, answer in session.answers.items()}


async def _answer(handlers: Handlers, payload: bytes, caller: Caller, relay: Relay | None = None) -> bytes:
    key, version = read_api(payload)
    if key == ApiVersionsRequest.api_key:
        return _api_versions(handlers, payload, version, {} if relay is None else relay.offers())
    api = KAFKA_APIS.get(key)
    own = relay.own if relay is not None and relay.takes(key, version) else {}
    handler = None if api is None else handlers.get(api.request) or own.get(api.request)
    if api is not None and handler is not None:
        try:
            return await _handled(api, handler, payload, version, caller)
        except NotOurs:
            pass
    if relay is None or not relay.takes(key, version):
        raise CodecError(f"no api with key {key} is served here")
    return await relay.ask(payload)


async def _handled(api: KafkaApi, handler: Handler, payload: bytes, version: int, caller: Caller) -> bytes:
    """Return the answer of a handler to a request."""
    if version not in api.served:
        raise CodecError(f"{api.name} is not served in version {version}")
    header, body = unpack_request(api.request, payload)
    # Kafka's servers read no further than this, so that some clients have never noticed what they append.
    message = decode(api.request, version, body, is_all=False)
    response = await handler(KafkaRequest(header, message, evolve(caller, client_id=header.client_id or "")))
    return pack_response(api.response, version, header.correlation_id, encode(response, version))


def _api_versions(handlers: Handlers, payload: bytes, version: int, relayed: Mapping[int, Versions]) -> bytes:
    """Answer ApiVersions. Raises CodecError for a request of a known version that is none."""
    if version in KAFKA_APIS[ApiVersionsRequest.api_key].served:
        _, body = unpack_request(ApiVersionsRequest, payload)
        decode(ApiVersionsRequest, version, body, is_all=False)
    kinds: list[type[Message]] = [ApiVersionsRequest, *handlers]
    own = {one.api_key: one.versions & KAFKA_APIS[one.api_key].served for one in kinds}
    return pack_api_versions({**relayed, **own}, payload, version)


def pack_api_versions(offered: Mapping[int, Versions], payload: bytes, version: int) -> bytes:
    """Return the answer to ApiVersions by a server that offers these versions, ApiVersions included, by their keys.

    The answer has version 0, and an error, if the version of the request itself is not offered (KIP-511).
    """
    is_known = version in offered[ApiVersionsRequest.api_key]
    error, told = (ErrorCode.NONE, version) if is_known else (ErrorCode.UNSUPPORTED_VERSION, 0)
    keys = [ApiVersion(key, versions.first, versions.last) for key, versions in sorted(offered.items())]
    response = ApiVersionsResponse(error_code=error.value, api_keys=tuple(keys))
    return pack_response(ApiVersionsResponse, told, correlation_id_of(payload), encode(response, told))
