"""Connections to brokers of Kafka's."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

from transport.addresses import address_text
from transport.kafka.client import KafkaConnection
from transport.network import Network
from transport.wire.client import REQUEST_TIMEOUT_SECONDS, connect
from transport.wire.errors import NotServed
from transport.wire.secured import beneath

_AGAIN_SECONDS: Final = 0.1
_NOT_YET: Final = (ConnectionRefusedError, socket.gaierror)


@asynccontextmanager
async def open_kafka_connection(
    network: Network, host: str, port: int, *, client_id: str, connect_timeout: float = REQUEST_TIMEOUT_SECONDS
) -> AsyncIterator[KafkaConnection]:
    """Connect, ask for the versions of the server, and close the connection after the block.

    A broker registers some seconds before it listens, and its name may resolve even later, so a refused connection and
    an unknown host are tried again for `connect_timeout` seconds. Raises ConnectionBroken if there is no connection
    then, or its subclass NotServed if others answer.
    """
    network, login, _ = beneath(network)
    make = partial(KafkaConnection, peer=address_text(host, port), client_id=client_id, login=login)
    connection = await _until_reachable(partial(connect, network, host, port, make, connect_timeout), connect_timeout)
    try:
        yield connection
    finally:
        await connection.close()


async def _until_reachable(attempt: Callable[[], Awaitable[KafkaConnection]], seconds: float) -> KafkaConnection:
    deadline = trio.current_time() + seconds
    while True:
        try:
            return await attempt()
        except NotServed as fault:
            if not isinstance(fault.__cause__, _NOT_YET) or trio.current_time() + _AGAIN_SECONDS > deadline:
                raise
        await trio.sleep(_AGAIN_SECONDS)
