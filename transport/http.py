"""As much of HTTP/1.1 as probes and scrapers need: GET and HEAD, one request per connection.

It is written by hand because nothing of a request but its first line counts, so that a library would bring more code
that listens to strangers than it saves. A client gets `REQUEST_SECONDS` to send `MAX_HEAD_BYTES` at most and
`RESPONSE_SECONDS` to take the answer, and MAX_CLIENTS are served at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Final

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
    """What a path shows."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Pages = Callable[[str], Page]
"""Returns the page of a path; what it raises costs that answer only."""


class BadRequest(Exception):
    """What a client sent is no request that is answered here."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


async def serve_http(
    network: Network,
    pages: Pages,
    host: str,
    port: int,
    *,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer requests at an address until cancelled; reports the real port as started.

    Raises OSError if the address cannot be listened on.
    """
    slots = trio.CapacityLimiter(MAX_CLIENTS)
    await network.serve(partial(_answer, pages, slots), host, port, task_status=task_status)


async def _answer(pages: Pages, slots: trio.CapacityLimiter, stream: trio.abc.Stream) -> None:
    try:
        slots.acquire_nowait()
    except trio.WouldBlock:
        return  # the connection is closed
    try:
        response = await _respond(pages, stream)
        with trio.move_on_after(RESPONSE_SECONDS):
            await stream.send_all(response)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the client is gone
    finally:
        slots.release()


async def _respond(pages: Pages, stream: trio.abc.Stream) -> bytes:
    try:
        with trio.fail_after(REQUEST_SECONDS):
            method, path = _parse(await _read_head(stream))
    except trio.TooSlowError:
        return _pack(_fault(HTTPStatus.REQUEST_TIMEOUT), with_body=True)
    except BadRequest as fault:
        return _pack(_fault(fault.status), with_body=True)
    return _pack(pages(path), with_body=method == "GET")


async def _read_head(stream: trio.abc.Stream) -> bytes:
    """Return what comes before the first empty line. Raises BadRequest if there is none within the limit."""
    received = bytearray()
    while (end := received.find(b"\r\n\r\n")) < 0:
        if len(received) > MAX_HEAD_BYTES:
            raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        chunk = await stream.receive_some(CHUNK_BYTES)
        if not chunk:
            raise BadRequest(HTTPStatus.BAD_REQUEST)
        received += chunk
    return bytes(received[:end])


def _parse(head: bytes) -> tuple[str, str]:
    """Return the method and the path without its query. Raises BadRequest."""
    try:
        method, target, version = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    except ValueError:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from None
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    if method not in {"GET", "HEAD"}:
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    return method, target.partition("?")[0]


def _fault(status: HTTPStatus) -> Page:
    return Page(f"{status.value} {status.phrase}\n".encode(), status)


def not_found(known: Iterable[str]) -> Page:
    """Return the page of a path that does not exist, which names those that do."""
    return Page(f"not found: try {', '.join(known)}\n".encode(), HTTPStatus.NOT_FOUND)


def _pack(page: Page, *, with_body: bool) -> bytes:
    head = [
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.content_type}",
        f"Content-Length: {len(page.body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    return "\r\n".join([*head, "", ""]).encode("ascii") + (page.body if with_body else b"")
