"""The network as the product sees it: streams to and from addresses.

Everything that opens or accepts a connection takes a `Network`, so that tests and simulations can pass their own.
No other module may open a socket.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import trio

from transport.log import get_logger

MAX_CONNECTIONS: Final = 10_000

StreamHandler = Callable[[trio.abc.Stream], Awaitable[None]]

_log = get_logger(__name__)


class Network(Protocol):
    """A way to connect to addresses and to listen on them."""

    async def connect(self, host: str, port: int) -> trio.abc.Stream:
        """Connect to an address; raises OSError if nobody can be reached there."""

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept connections until cancelled, each handled in a task of its own.

        Reports the real port as started, which tells what a `port` of 0 became. A connection's stream is closed when
        its handler ends; an Exception from a handler is logged and ends that connection only. Raises OSError if the
        address cannot be listened on.
        """


class TcpNetwork:
    """The real network: TCP with TCP_NODELAY, which trio sets on every stream.

    At most `max_connections` are served at a time per listener; one more is closed at once.
    """

    def __init__(self, max_connections: int = MAX_CONNECTIONS) -> None:
        self._max_connections = max_connections

    async def connect(self, host: str, port: int) -> trio.abc.Stream:
        """Connect to the first of the host's addresses that answers.

        Raises socket.gaierror for a host without address, ConnectionRefusedError where nothing listens, else OSError.
        """
        try:
            return await trio.open_tcp_stream(host, port)
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
        """Listen on all addresses of `host`, or with `port` 0 on the first one alone, and see `Network.serve`."""
        listeners = await _open_listeners(host, port)
        bound_port: int = listeners[0].socket.getsockname()[1]
        slots = trio.CapacityLimiter(self._max_connections)

        async def handle(stream: trio.abc.Stream) -> None:
            await _handle_one(handler, stream, slots)

        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_listeners, handle, listeners)
            task_status.started(bound_port)


def _sole_reason(error: OSError) -> OSError:
    """Return the error that all addresses of a host have in common; trio reports one for each address only."""
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
    if port == 0:  # each address would get a port of its own, and only one can be reported
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
    except Exception:  # noqa: BLE001  one connection's fault must not end the others
        _log.exception("connection handler failed")
    finally:
        slots.release()
