"""Kazoo's handler of sockets, and two calls of its connection, changed to what a session needs of them."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Final

from kazoo.handlers.threading import SequentialThreadingHandler

HANDSHAKE_SECONDS: Final = 5.0
"""The timeout for connecting and for opening the session. A server that is starting leaves some clients unanswered, and
a host that is down may send nothing at all; kazoo would wait until the session has expired."""


class KazooHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no annotations
    """Kazoo's threads, with a short timeout for connections.

    A TLS context secures the connections: kazoo's own would trust the system's authorities as well.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._tls = tls

    def select(
        self,
        readers: Sequence[socket.socket],
        writers: Sequence[socket.socket],
        _others: Sequence[socket.socket],
        timeout: float | None = None,
    ) -> tuple[list[socket.socket], list[socket.socket], list[socket.socket]]:
        """Wait for sockets in one system call; kazoo's own makes five. Raises ValueError for one that is closed."""
        waiting = select.poll()
        for each in readers:
            waiting.register(each, select.POLLIN)
        for each in writers:
            waiting.register(each, select.POLLOUT)
        ready = {number for number, _ in waiting.poll(None if timeout is None else timeout * 1000)}
        found = [[each for each in sockets if each.fileno() in ready] for sockets in (readers, writers)]
        return found[0], found[1], []

    def create_connection(
        self,
        address: tuple[str, int],
        hostname: str,
        timeout: float,
        **_kazoo_tls: object,
    ) -> socket.socket:
        """Connect, with a TLS handshake if there is a context. Raises OSError."""
        connection = socket.create_connection(address, min(timeout, HANDSHAKE_SECONDS))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection if self._tls is None else self._tls.wrap_socket(connection, server_hostname=hostname)


def impatient(invoke: Callable[..., int | None]) -> Callable[..., int | None]:
    """Wrap the call with which kazoo opens a session, so that it waits at most `HANDSHAKE_SECONDS` for the answer."""

    def invoke_soon(timeout: float, *request: object, **options: object) -> int | None:
        return invoke(min(timeout, HANDSHAKE_SECONDS), *request, **options)

    return invoke_soon


def telling(submit: Callable[..., None], is_over: threading.Event) -> Callable[..., None]:
    """Wrap the call with which kazoo's thread writes a request to the socket, so that it tells when that is over."""

    def submit_and_tell(*request: object) -> None:
        try:
            submit(*request)
        finally:
            is_over.set()

    return submit_and_tell
