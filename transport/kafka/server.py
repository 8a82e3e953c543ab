"""The server of Kafka's protocol: the requests of each connection are answered in order, one at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import frozen

from transport.errors import ErrorCode
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.codec import decode, encode
from transport.kafka.header import RequestHeader, correlation_id_of, pack_response, read_api, unpack_request
from transport.kafka.messages import ApiVersionsRequest, ApiVersionsResponse
from transport.kafka.messages.api_versions_response import ApiVersion
from transport.kafka.schema import Message
from transport.log import get_logger
from transport.wire.errors import CodecError, FrameError
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The limit of one request. AlterPartition for 100,000 partitions takes 5 MiB."""

_log = get_logger(__name__)


@frozen
class KafkaRequest:
    """A request, with the header that it came with."""

    header: RequestHeader
    message: Any


Handler = Callable[[KafkaRequest], Awaitable[Message]]
"""Answers a request with the response of its api. What it raises closes the connection and is logged."""

Handlers = Mapping[type[Message], Handler]


async def serve_stream(
    stream: trio.abc.Stream, handlers: Handlers, *, max_request_bytes: int = MAX_REQUEST_BYTES
) -> None:
    """Answer the requests of one connection until the peer ends it or sends something that is not a request.

    ApiVersions needs no handler. A request of another api without a handler, or of a version that is unknown here,
    ends the connection, as it does on Kafka's own servers: nobody sends one to a server that does not offer it.
    """
    frames = FrameStream(stream, max_request_bytes)
    try:
        while (payload := await frames.receive()) is not None:
            await frames.send(frame(await _answer(handlers, payload)))
    except (CodecError, FrameError) as error:
        _log.warning("connection closed: the peer did not send a valid request", reason=str(error))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the peer is gone
    finally:
        await frames.close()


async def _answer(handlers: Handlers, payload: bytes) -> bytes:
    key, version = read_api(payload)
    if key == ApiVersionsRequest.api_key:
        return _api_versions(handlers, payload, version)
    api = KAFKA_APIS.get(key)
    handler = handlers.get(api.request) if api is not None else None
    if api is None or handler is None:
        raise CodecError(f"no api with key {key} is served here")
    if version not in api.request.versions:
        raise CodecError(f"{api.name} is not served in version {version}")
    header, body = unpack_request(api.request, payload)
    response = await handler(KafkaRequest(header, decode(api.request, version, body)))
    return pack_response(api.response, version, header.correlation_id, encode(response, version))


def _api_versions(handlers: Handlers, payload: bytes, version: int) -> bytes:
    """Answer ApiVersions; in version 0, with an error, if its own version is unknown here (KIP-511)."""
    is_known = version in ApiVersionsRequest.versions
    error = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION
    told = version if is_known else 0
    kinds: list[type[Message]] = [ApiVersionsRequest, *handlers]
    offered = sorted(kinds, key=lambda request: request.api_key)
    keys = [ApiVersion(one.api_key, one.versions.first, one.versions.last) for one in offered]
    response = ApiVersionsResponse(error_code=error.value, api_keys=tuple(keys))
    return pack_response(ApiVersionsResponse, told, correlation_id_of(payload), encode(response, told))
