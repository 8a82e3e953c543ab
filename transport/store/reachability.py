"""A check that ZooKeeper is reachable before kazoo connects, because kazoo retries forever without a reason."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from transport.addresses import Address, address_text
from transport.log import get_logger
from transport.store.protocol import ConnectionLost, SessionExpired, StoreUnavailable

PROBE_SECONDS: Final = 5.0
"""The time for a server to accept a connection before the next server is tried."""

FIRST_DELAY_SECONDS: Final = 0.1
LONGEST_DELAY_SECONDS: Final = 2.0
"""The longest pause between two attempts to reach the servers."""

NOTICE_SECONDS: Final = 30.0
"""The interval of log messages about the wait."""

T = TypeVar("T")

_log = get_logger(__name__)


class NothingListens(StoreUnavailable):
    """No server accepts connections at the moment."""


def joined(servers: Sequence[Address]) -> str:
    """Return the servers as a connect string."""
    return ",".join(address_text(*server) for server in servers)


async def until_reachable(servers: Sequence[Address], tls: ssl.SSLContext | None, deadline: float) -> None:
    """Wait until a server accepts connections, and log the reason from time to time.

    An unknown host does not end the wait, because its name may be registered after this service starts.

    Raises:
        NothingListens: No server did, and the next attempt would start after `deadline`.
        StoreUnavailable: A server cannot be trusted, so that waiting would not help.
    """
    delay = FIRST_DELAY_SECONDS
    say_at = trio.current_time()
    while True:
        try:
            return await _look(servers, tls)
        except NothingListens as nothing:
            if trio.current_time() + delay >= deadline:
                raise
            if trio.current_time() >= say_at:
                _log.warning("waiting for ZooKeeper", reason=str(nothing))
                say_at = trio.current_time() + NOTICE_SECONDS
        await trio.sleep(delay)
        delay = min(2 * delay, LONGEST_DELAY_SECONDS)


async def told_now_and_then(event: trio.Event, reason: str) -> None:
    """Wait for an event, and log the reason from time to time."""
    while not event.is_set():
        with trio.move_on_after(NOTICE_SECONDS) as patience:
            await event.wait()
        if patience.cancelled_caught:
            _log.warning("waiting for ZooKeeper", reason=reason)


async def until_answered(work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `work`, restarting it if the connection to ZooKeeper breaks meanwhile."""
    while True:
        try:
            return await work()
        except (ConnectionLost, SessionExpired) as error:
            _log.warning("waiting for ZooKeeper", reason=str(error))
        await trio.sleep(LONGEST_DELAY_SECONDS)


async def _look(servers: Sequence[Address], tls: ssl.SSLContext | None) -> None:
    faults, closed = [], []
    for server in servers:
        try:
            with trio.fail_after(PROBE_SECONDS):
                await _probe(server, tls)
        except (socket.gaierror, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not the name of a host"
            faults.append(f"ZooKeeper: the host {server[0]} cannot be found ({why})")
        except trio.TooSlowError:
            faults.append(f"{address_text(*server)} takes no connection within {PROBE_SECONDS:g} s")
        except OSError:
            closed.append(server)
        else:
            return
    if closed:
        faults.append(f"nothing listens at {joined(closed)}: start one with `klamm zookeeper run`")
    raise NothingListens("; ".join(faults))


async def _probe(server: Address, tls: ssl.SSLContext | None) -> None:
    stream: trio.abc.Stream = await trio.open_tcp_stream(*server)
    async with stream:
        if tls is None:
            return
        secured = trio.SSLStream(stream, tls, server_hostname=server[0])
        try:
            await secured.do_handshake()
        except trio.BrokenResourceError as error:
            reason = getattr(error.__cause__, "verify_message", None) or getattr(error.__cause__, "reason", None)
            why = reason or "it does not speak TLS there"
            text = f"no TLS with ZooKeeper at {address_text(*server)} ({why})"
            raise StoreUnavailable(f"{text}: check the port and zookeeper.ssl.truststore.location") from None
