"""The server of the wire: the requests of each connection are answered in order, one at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio
from attrs import frozen

from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.messages import Api, ApiVersion, ApiVersionsRequest, ApiVersionsResponse, Request
from transport.network import Network
from transport.security.peers import peer_of
from transport.security.principal import ANONYMOUS, Principal
from transport.wire.apis import OURS, ApiTable
from transport.wire.codec import encode
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope, is_kafkas
from transport.wire.errors import CodecError, FrameError, FrameTooLarge
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import MAX_FRAME_BYTES, frame
from transport.wire.gradual import decode_request

Handler = Callable[[Any], Awaitable[object]]
"""Answers a request of its class with the response of that class, or raises ApiError."""

Handlers = Mapping[type[Request[Any]], Handler]


@frozen
class Caller:
    """The sender of a request: its client id, its address, "" if it has none, and the name that it has proved."""

    client_id: str
    address: str = ""
    principal: Principal = ANONYMOUS


Admit = Callable[[Caller, type[Request[Any]], Handler], Handler]
"""Returns the handler of a caller's requests of a class, given the usual one. Raises ApiError to refuse them all."""


_Offers = Mapping[int, tuple[Api, Handler]]

_VERSIONS: Final = OURS.by_request[ApiVersionsRequest].key

_log = get_logger(__name__)


async def serve(  # noqa: PLR0913  the last four are keyword-only
    network: Network,
    handlers: Handlers,
    host: str,
    port: int,
    *,
    own_apis: Iterable[Api] = (),
    admit: Admit | None = None,
    gives_up: bool = False,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer requests at an address until cancelled; reports the actual port when started.

    Every request gets one answer: the response that its handler returns, the ApiError that it raises,
    UNKNOWN_SERVER_ERROR for any other exception (logged with the api's name), INVALID_REQUEST for a body that is not
    the expected message, or UNSUPPORTED_VERSION for an api or version without a handler. ApiVersions needs no handler.
    The apis in `own_apis` are served besides ours. `admit` may refuse a request before its body is decoded, or replace
    its handler. For `gives_up` see `serve_stream`. Raises OSError if the address cannot be listened on, and ValueError
    for a handler without an api.
    """
    apis = ApiTable.of(own_apis)
    if missing := sorted(request.__name__ for request in handlers if request not in apis.by_request):
        raise ValueError(f"no api has the request {missing[0]}: give it a row in own_apis")
    serve_one = partial(_answer_all, offers=_offers(handlers, apis), admit=admit, gives_up=gives_up)
    await network.serve(serve_one, host, port, task_status=task_status)


async def serve_stream(
    stream: trio.abc.Stream,
    handlers: Handlers,
    *,
    apis: ApiTable = OURS,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    admit: Admit | None = None,
    gives_up: bool = False,
) -> None:
    """Answer the requests of one connection until the peer ends it or sends something that is not a request.

    If the peer disconnects while its request is handled, the handler finishes, because only writing the answer fails.
    With `gives_up`, the handler is cancelled as soon as the peer ends the stream, even if only its own direction.
    """
    await _answer_all(stream, _offers(handlers, apis), max_frame_bytes, admit, gives_up=gives_up)


async def _answer_all(
    stream: trio.abc.Stream,
    offers: _Offers,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    admit: Admit | None = None,
    *,
    gives_up: bool,
) -> None:
    frames = FrameStream(stream, max_frame_bytes)
    peer = peer_of(stream)

    def find(request: RequestEnvelope) -> tuple[Api, Handler]:
        api, handler = _find_offer(offers, request)
        if admit is not None:
            handler = admit(Caller(request.client_id, peer.address, peer.principal), api.request, handler)
        return api, handler

    try:
        while (payload := await frames.receive()) is not None:
            if is_kafkas(payload):
                return
            request = RequestEnvelope.unpack(payload)
            respond = partial(_respond, find, request, max_frame_bytes)
            may_wait = gives_up and request.api_key != _VERSIONS
            answer = await _unless_ended(frames, respond) if may_wait else await respond()
            # The peer gave up waiting for the answer.
            if answer is None:
                return
            await frames.send(answer)
    except (CodecError, FrameError) as error:
        _log.warning("connection closed: the peer did not send a valid request", reason=str(error))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the peer is gone


async def _unless_ended(frames: FrameStream, respond: Callable[[], Awaitable[bytes]]) -> bytes | None:
    """Return the result of `respond`, or cancel it and return None if the peer ends the stream first."""
    answer: bytes | None = None
    async with trio.open_nursery() as nursery:

        async def notice_end() -> None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await frames.wait_ended()
            nursery.cancel_scope.cancel()

        nursery.start_soon(notice_end)
        answer = await respond()
        nursery.cancel_scope.cancel()
    return answer


async def _respond(
    find: Callable[[RequestEnvelope], tuple[Api, Handler]], request: RequestEnvelope, max_frame_bytes: int
) -> bytes:
    try:
        body = await _handle(*find(request), request)
        return frame(ResponseEnvelope(request.correlation_id, ErrorCode.NONE, body).pack(), max_frame_bytes)
    except ApiError as error:
        code, message = error.code, error.message
    except FrameTooLarge as error:
        code, message = ErrorCode.INVALID_REQUEST, f"The answer is too large: {error}. Ask for less at a time."
    return frame(ResponseEnvelope(request.correlation_id, code, encode(message)).pack())


def _find_offer(offers: _Offers, request: RequestEnvelope) -> tuple[Api, Handler]:
    offer = offers.get(request.api_key)
    if offer is None:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"There is no api with key {request.api_key} here.")
    api, _ = offer
    if not api.min_version <= request.api_version <= api.max_version:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{api.name} is supported in versions {api.min_version} to {api.max_version}, not {request.api_version}.",
        )
    return offer


async def _handle(api: Api, handler: Handler, request: RequestEnvelope) -> bytes:
    try:
        message = await decode_request(api.request, request.body)
    except CodecError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"This is not a valid {api.name} request: {error}.") from None
    try:
        return _encode_response(api, await handler(message))
    except ApiError:
        raise
    except Exception:  # noqa: BLE001  the request is answered and the log says what failed
        _log.exception("request failed", api=api.name, client_id=request.client_id)
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{api.name} failed; the server's log says why.") from None


def _encode_response(api: Api, response: object) -> bytes:
    if not isinstance(response, api.response):
        raise TypeError(f"the handler of {api.name} returned {type(response).__name__}")
    return encode(response)


def _offers(handlers: Handlers, apis: ApiTable) -> _Offers:
    """Return the supported apis by key: those with a handler, and ApiVersions."""
    offered = [api for api in apis.by_key.values() if api.request in handlers or api.request is ApiVersionsRequest]
    versions = ApiVersionsResponse(tuple(ApiVersion(api.key, api.min_version, api.max_version) for api in offered))

    async def api_versions(_: ApiVersionsRequest) -> ApiVersionsResponse:
        return versions

    answering: Handlers = {**handlers, ApiVersionsRequest: api_versions}
    return {api.key: (api, answering[api.request]) for api in offered}
