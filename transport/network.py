"""The network: streams to and from addresses.

Code that opens or accepts connections takes a `Network`, so that tests and simulations can pass their own. No other
module may open a socket.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

import trio

from transport.log import get_logger

MAX_CONNECTIONS: Final = 10_000

StreamHandler = Callable[[trio.abc.Stream], Awaitable[None]]

_log = get_logger(__name__)


class Network(Protocol):
    """A way to connect to addresses and to listen on them."""

    async def addresses(self, host: str) -> Sequence[str]:
        """Return the addresses of a host in the order in which to try them; the host itself if it is not looked up."""

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        """Connect to a host at one of its addresses; without one, at the first that accepts. Raises OSError."""

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept connections until cancelled, and handle each in a task of its own.

        Reports the actual port when started, also for a `port` of 0. The stream of a connection is closed when its
        handler ends. An exception of a handler is logged and ends only that connection. Raises OSError if the address
        cannot be listened on.
        """


class TcpNetwork:
    """The real network: TCP with TCP_NODELAY, which trio sets on every stream.

    Each listener serves at most `max_connections` at a time; further connections are closed at once.
    """

    def __init__(self, max_connections: int = MAX_CONNECTIONS) -> None:
        self._max_connections = max_connections

    async def addresses(self, host: str) -> Sequence[str]:
        """Look a host up. One that cannot be found is returned as it is: `connect` says why."""
        with suppress(ValueError):
            ipaddress.ip_address(host)
            return [host]
        try:
            found = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return [host]
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        """Connect to an address of the host; without one, to the first that accepts.

        Raises socket.gaierror for an unknown host, ConnectionRefusedError if nothing listens there, else OSError.
        """
        try:
            return await trio.open_tcp_stream(address or host, port)
        except UnicodeError:
            raise socket.gaierror(socket.EAI_NONAME, "not the name of a host") from None
        except OSError as error:
            raise _sole_reason(error) from error

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen on all addresses of `host`, or with `port` 0 only on the first; see `Network.serve`."""
        listeners = await _open_listeners(host, port)
        bound_port: int = listeners[0].socket.getsockname()[1]
        slots = trio.CapacityLimiter(self._max_connections)

        async def handle(stream: trio.abc.Stream) -> None:
            await _handle_one(handler, stream, slots)

        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_listeners, handle, listeners)
            task_status.started(bound_port)


def _sole_reason(error: OSError) -> OSError:
    """Return the error that all addresses of a host have in common; trio reports one per address."""
    reasons = error.__cause__.exceptions if isinstance(error.__cause__, ExceptionGroup) else ()
    numbers = {reason.errno for reason in reasons if isinstance(reason, OSError)}
    if len(numbers) != 1:
        return error
    [number] = numbers
    return error if number is None else OSError(number, os.strerror(number))


async def _open_listeners(host: str, port: int) -> list[trio.SocketListener]:
    try:
        first, *others = await trio.open_tcp_listeners(port, host=host)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "not the name of a host") from None
    # Each address would get a different free port, and only one can be reported.
    if port == 0:
        for listener in others:
            await listener.aclose()
        return [first]
    return [first, *others]


async def _handle_one(handler: StreamHandler, stream: trio.abc.Stream, slots: trio.CapacityLimiter) -> None:
    try:
        slots.acquire_nowait()
    except trio.WouldBlock:
        _log.warning("connection refused: too many are open", limit=slots.total_tokens)
        return
    try:
        await handler(stream)
    except Exception:  # noqa: BLE001  a fault of one connection must not end the others
        _log.exception("connection handler failed")
    finally:
        slots.release()
