"""Kazoo's connections to servers, with our TLS context and with short timeouts."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Final

from kazoo.handlers.threading import SequentialThreadingHandler

HANDSHAKE_SECONDS: Final = 5.0
"""The timeout for connecting and for opening the session. A server that is starting leaves some clients unanswered, and
a host that is down may send nothing at all; kazoo would wait until the session has expired."""


def impatient(invoke: Callable[..., int | None]) -> Callable[..., int | None]:
    """Wrap the call with which kazoo opens a session, so that it waits at most `HANDSHAKE_SECONDS` for the answer."""

    def invoke_soon(timeout: float, *request: object, **options: object) -> int | None:
        return invoke(min(timeout, HANDSHAKE_SECONDS), *request, **options)

    return invoke_soon


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no annotations
    """Kazoo's threads, with a short timeout for connections.

    A TLS context secures the connections: kazoo's own would trust the system's authorities as well.
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
        """Connect, with a TLS handshake if there is a context. Raises OSError."""
        connection = socket.create_connection(address, min(timeout, HANDSHAKE_SECONDS))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection if self._tls is None else self._tls.wrap_socket(connection, server_hostname=hostname)
