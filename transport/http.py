"""An HTTP/1.1 server for probes, scrapers and browsers: GET and HEAD, one request per connection. h11 speaks it.

Strangers can reach it, so everything is bounded: a client gets `REQUEST_SECONDS` to send a head of about
`MAX_HEAD_BYTES` and `RESPONSE_SECONDS` to take the response, or each piece of a stream, and `MAX_CLIENTS` are served at
a time. When all slots are taken, the client that has owed its request for longest loses its slot to the next one:
probes are answered however many clients are silent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Final

import h11
import trio
from attrs import define, field, frozen

from transport.network import Network

MAX_HEAD_BYTES: Final = 8192
MAX_CLIENTS: Final = 32
REQUEST_SECONDS: Final = 5.0
RESPONSE_SECONDS: Final = 30.0
PIECE_SECONDS: Final = 10.0
"""The time for a client to take a piece of a stream; a slower one is sent away."""

CHUNK_BYTES: Final = 4096

TEXT: Final = "text/plain; charset=utf-8"

Headers = tuple[tuple[str, str], ...]


@frozen
class Page:
    """The content at a path."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT
    headers: Headers = ()


Send = Callable[[bytes], Awaitable[None]]


@frozen
class Stream:
    """Content that is sent piece by piece: `write` is called with what sends a piece, and cancelled with the client."""

    write: Callable[[Send], Awaitable[None]]
    content_type: str
    headers: Headers = ()
    status: HTTPStatus = HTTPStatus.OK


Pages = Callable[[str], Awaitable[Page | Stream]]
"""Returns what is at a path. If it raises, only that request goes unanswered."""


async def serve_http(
    network: Network,
    pages: Pages,
    host: str,
    port: int,
    *,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer requests at an address until cancelled; reports the actual port when started.

    Raises OSError if the address cannot be listened on.
    """
    slots = _Slots()
    await network.serve(partial(_answer, pages, slots), host, port, task_status=task_status)


@define
class _Slots:
    """The slots of clients, each with a scope that is cancelled if another client needs it."""

    _taken: set[trio.CancelScope] = field(factory=set, init=False)
    _owing: dict[trio.CancelScope, None] = field(factory=dict, init=False)
    """The slots of those that have not sent their whole request, in the order in which they came."""

    def take(self) -> trio.CancelScope | None:
        """Return a slot, None if all are taken by clients that are being answered."""
        if len(self._taken) >= MAX_CLIENTS and self._owing:
            longest = next(iter(self._owing))
            self.release(longest)
            longest.cancel()
        if len(self._taken) >= MAX_CLIENTS:
            return None
        slot = trio.CancelScope()
        self._taken.add(slot)
        self._owing[slot] = None
        return slot

    def keep(self, slot: trio.CancelScope) -> None:
        """Note that nothing more is owed for a slot."""
        self._owing.pop(slot, None)

    def release(self, slot: trio.CancelScope) -> None:
        """Give a slot back."""
        self._taken.discard(slot)
        self._owing.pop(slot, None)


async def _answer(pages: Pages, slots: _Slots, stream: trio.abc.Stream) -> None:
    slot = slots.take()
    if slot is None:
        return  # which closes the connection
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    try:
        with slot:
            content, with_body = await _content(connection, pages, stream, partial(slots.keep, slot))
            await _send(connection, content, stream, with_body=with_body)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the client is gone
    finally:
        slots.release(slot)


async def _content(
    connection: h11.Connection, pages: Pages, stream: trio.abc.Stream, received: Callable[[], None]
) -> tuple[Page | Stream, bool]:
    """Return what a request is answered with, and whether its body is wanted."""
    try:
        with trio.fail_after(REQUEST_SECONDS):
            request = await _receive(connection, stream)
    except trio.TooSlowError:
        return _error(HTTPStatus.REQUEST_TIMEOUT), True
    except h11.RemoteProtocolError as fault:
        return _error(HTTPStatus(fault.error_status_hint)), True
    finally:
        received()
    # No answer to HEAD has a body, not even a refusal.
    return await _answer_to(request, pages), request.method != b"HEAD"


async def _send(
    connection: h11.Connection, content: Page | Stream, stream: trio.abc.Stream, *, with_body: bool
) -> None:
    if isinstance(content, Stream) and with_body:
        await _send_pieces(connection, content, stream)
        return
    with trio.move_on_after(RESPONSE_SECONDS):
        await stream.send_all(_pack(connection, content, with_body=with_body))


async def _receive(connection: h11.Connection, stream: trio.abc.Stream) -> h11.Request:
    """Return the head of the request; its body, if any, is left unread.

    Raises RemoteProtocolError, or BrokenResourceError if the client goes away without a request.
    """
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(bytes(await stream.receive_some(CHUNK_BYTES)))
    if not isinstance(event, h11.Request):
        raise trio.BrokenResourceError("closed without a request, as by a probe of the port")
    return event


async def _answer_to(request: h11.Request, pages: Pages) -> Page | Stream:
    # h11 accepts any method, and any version and target that are well-formed, such as the targets of a proxy.
    if request.method not in {b"GET", b"HEAD"}:
        return _error(HTTPStatus.METHOD_NOT_ALLOWED)
    if not request.http_version.startswith(b"1.") or not request.target.startswith(b"/"):
        return _error(HTTPStatus.BAD_REQUEST)
    return await pages(request.target.decode("ascii").partition("?")[0])


async def _send_pieces(connection: h11.Connection, content: Stream, stream: trio.abc.Stream) -> None:
    """Send a stream until it ends, or until its client goes away or is too slow for a piece."""
    async with trio.open_nursery() as nursery:

        async def send(piece: h11.Event) -> None:
            try:
                with trio.fail_after(PIECE_SECONDS):
                    await stream.send_all(connection.send(piece) or b"")
            except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError):
                nursery.cancel_scope.cancel()
                await trio.lowlevel.checkpoint()

        nursery.start_soon(_until_gone, stream, nursery.cancel_scope)
        await send(_head(content))
        await content.write(lambda piece: send(h11.Data(data=piece)))
        await send(h11.EndOfMessage())
        nursery.cancel_scope.cancel()


async def _until_gone(stream: trio.abc.Stream, scope: trio.CancelScope) -> None:
    """Cancel when the client closes the connection, or says more than its request."""
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.receive_some(CHUNK_BYTES)
    scope.cancel()


def _error(status: HTTPStatus) -> Page:
    return Page(f"{status.value} {status.phrase}\n".encode(), status)


def not_found(known: Iterable[str]) -> Page:
    """Return the page for an unknown path, which lists the known ones."""
    return Page(f"not found: try {', '.join(known)}\n".encode(), HTTPStatus.NOT_FOUND)


def _head(content: Page | Stream, *more: tuple[str, str]) -> h11.Response:
    headers = [
        ("Content-Type", content.content_type),
        *more,
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
        *content.headers,
    ]
    return h11.Response(status_code=content.status, headers=headers, reason=content.status.phrase)


def _pack(connection: h11.Connection, content: Page | Stream, *, with_body: bool = True) -> bytes:
    """Return a whole response; that to HEAD has the head alone."""
    body = content.body if isinstance(content, Page) and with_body else b""
    length = (("Content-Length", str(len(content.body))),) if isinstance(content, Page) else ()
    parts = [_head(content, *length), *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]
    return b"".join(connection.send(event) or b"" for event in parts)
