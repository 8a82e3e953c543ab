"""An HTTP/1.1 server for probes and scrapers: GET and HEAD, one request per connection. h11 speaks the protocol.

Strangers can reach it, so everything is bounded: a client gets `REQUEST_SECONDS` to send a head of about
`MAX_HEAD_BYTES` and `RESPONSE_SECONDS` to take the response, and `MAX_CLIENTS` are served at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Final

import h11
import trio
from attrs import frozen

from transport.network import Network

MAX_HEAD_BYTES: Final = 8192
MAX_CLIENTS: Final = 32
REQUEST_SECONDS: Final = 5.0
RESPONSE_SECONDS: Final = 30.0
CHUNK_BYTES: Final = 4096

TEXT: Final = "text/plain; charset=utf-8"


@frozen
class Page:
    """The content at a path."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Pages = Callable[[str], Page]
"""Returns the page at a path. If it raises, only that request goes unanswered."""


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
    slots = trio.CapacityLimiter(MAX_CLIENTS)
    await network.serve(partial(_answer, pages, slots), host, port, task_status=task_status)


async def _answer(pages: Pages, slots: trio.CapacityLimiter, stream: trio.abc.Stream) -> None:
    try:
        slots.acquire_nowait()
    except trio.WouldBlock:
        return  # which closes the connection
    try:
        response = await _respond(pages, stream)
        with trio.move_on_after(RESPONSE_SECONDS):
            await stream.send_all(response)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the client is gone
    finally:
        slots.release()


async def _respond(pages: Pages, stream: trio.abc.Stream) -> bytes:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    try:
        with trio.fail_after(REQUEST_SECONDS):
            request = await _receive(connection, stream)
    except trio.TooSlowError:
        return _pack(connection, _error(HTTPStatus.REQUEST_TIMEOUT))
    except h11.RemoteProtocolError as fault:
        return _pack(connection, _error(HTTPStatus(fault.error_status_hint)))
    page = pages(request.target.decode("ascii").partition("?")[0])
    return _pack(connection, page, with_body=request.method == b"GET")


async def _receive(connection: h11.Connection, stream: trio.abc.Stream) -> h11.Request:
    """Return the head of the request; its body, if any, is left unread. Raises RemoteProtocolError."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(bytes(await stream.receive_some(CHUNK_BYTES)))
    # The client closed the connection without a request.
    if not isinstance(event, h11.Request):
        raise h11.RemoteProtocolError("no request", HTTPStatus.BAD_REQUEST)
    # h11 accepts any method, and any version and target that are well-formed, such as the targets of a proxy.
    if event.method not in {b"GET", b"HEAD"}:
        raise h11.RemoteProtocolError("not GET or HEAD", HTTPStatus.METHOD_NOT_ALLOWED)
    if not event.http_version.startswith(b"1.") or not event.target.startswith(b"/"):
        raise h11.RemoteProtocolError("not a path, or not HTTP/1", HTTPStatus.BAD_REQUEST)
    return event


def _error(status: HTTPStatus) -> Page:
    return Page(f"{status.value} {status.phrase}\n".encode(), status)


def not_found(known: Iterable[str]) -> Page:
    """Return the page for an unknown path, which lists the known ones."""
    return Page(f"not found: try {', '.join(known)}\n".encode(), HTTPStatus.NOT_FOUND)


def _pack(connection: h11.Connection, page: Page, *, with_body: bool = True) -> bytes:
    headers = [
        ("Content-Type", page.content_type),
        ("Content-Length", str(len(page.body))),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
    ]
    head = h11.Response(status_code=page.status, headers=headers, reason=page.status.phrase)
    body = [h11.Data(data=page.body)] if with_body else []
    return b"".join(connection.send(event) or b"" for event in (head, *body, h11.EndOfMessage()))
