"""How kazoo connects to a server: with our TLS context, and without waiting long for an answer."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Final

from kazoo.handlers.threading import SequentialThreadingHandler

HANDSHAKE_SECONDS: Final = 5.0
"""The longest wait for a server to connect, or to take us: a server that is just starting leaves the odd client without
an answer, and a host that is down may send none. Kazoo would wait there until the session is over."""


def impatient(invoke: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return kazoo's way of asking a server before any request, with `HANDSHAKE_SECONDS` at most for the answer."""

    def invoke_soon(timeout: float, *request: object, **options: object) -> int | None:
        return invoke(min(timeout, HANDSHAKE_SECONDS), *request, **options)

    return invoke_soon


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no annotations
    """Kazoo's threads, with connections that are made soon or not at all.

    With a context they are secured by it: kazoo's own trusts the system's authorities as well.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._tls = tls

    def create_connection(
        self,
        address: tuple[str, int],
        hostname: str,
        timeout: float,
        **_kazoo_tls: object,
    ) -> socket.socket:
        """Connect, and shake hands if there is a context. Raises OSError."""
        connection = socket.create_connection(address, min(timeout, HANDSHAKE_SECONDS))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection if self._tls is None else self._tls.wrap_socket(connection, server_hostname=hostname)
