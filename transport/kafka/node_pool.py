"""Connections to the nodes of a cluster of Kafka's: each opened when it is first needed, and kept until it breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

import trio
from attrs import define, field

from transport.addresses import Address, address_text
from transport.errors import ErrorCode
from transport.kafka.calls import Call, ask
from transport.kafka.client import KafkaConnection
from transport.kafka.messages import SaslHandshakeRequest, SaslHandshakeResponse
from transport.network import Network
from transport.wire.client import connect
from transport.wire.errors import ConnectionBroken, RequestTimedOut
from transport.wire.secured import beneath

R = TypeVar("R")

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
"""The limit of one answer. The metadata of 200,000 partitions take 12 MiB, and a cluster may have ten times as many."""


@define(eq=False)
class NodePool:
    """The connections to nodes. Open one with `open_node_pool`."""

    network: Network
    client_id: str
    _open: dict[Address, KafkaConnection] = field(factory=dict, init=False)
    _turns: dict[Address, trio.Lock] = field(factory=dict, init=False)

    async def ask(self, address: Address, call: Call[R], timeout: float) -> R:  # noqa: ASYNC109  of both steps
        """Make a call at an address; `timeout`, in seconds, includes the wait for a connection.

        Raises as `connected` and `ask` do.
        """
        deadline = trio.current_time() + timeout
        connection = await self.connected(address, timeout)
        try:
            return await ask(connection, call, max(deadline - trio.current_time(), 0))
        except (ConnectionBroken, RequestTimedOut):
            await self.drop(address)
            raise

    async def connected(self, address: Address, timeout: float) -> KafkaConnection:  # noqa: ASYNC109
        """Return the connection to an address. Raises ConnectionBroken, or its subclass NotServed, if there is none."""
        async with self._turns.setdefault(address, trio.Lock()):
            connection = self._open.get(address)
            if connection is None:
                connection = await connect_node(self.network, *address, client_id=self.client_id, timeout=timeout)
                self._open[address] = connection
            return connection

    async def mechanisms(self, address: Address, timeout: float) -> tuple[str, ...]:  # noqa: ASYNC109
        """Return the mechanisms of SASL by which clients log in at an address, () if they need not.

        Raises WireError.
        """
        below, _, _ = beneath(self.network)
        connection = await connect_node(below, *address, client_id=self.client_id, timeout=timeout)
        try:
            version = connection.version_of(SaslHandshakeRequest)
            answer = await connection.send(SaslHandshakeRequest(""), SaslHandshakeResponse, version, timeout=timeout)
        finally:
            await connection.close()
        return answer.mechanisms if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM else ()

    async def drop(self, address: Address) -> None:
        """Close the connection to an address, if there is one, so that the next call opens another."""
        connection = self._open.pop(address, None)
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Close all connections."""
        with trio.CancelScope(shield=True):
            for address in list(self._open):
                await self.drop(address)


@asynccontextmanager
async def open_node_pool(network: Network, client_id: str) -> AsyncIterator[NodePool]:
    """Keep connections to nodes for the block."""
    pool = NodePool(network, client_id)
    try:
        yield pool
    finally:
        await pool.close()


async def connect_node(
    network: Network,
    host: str,
    port: int,
    *,
    client_id: str,
    timeout: float,  # noqa: ASYNC109  of all steps
) -> KafkaConnection:
    """Connect to a node, ask for its versions, and log in. Raises ConnectionBroken, or its subclass NotServed."""
    below, login, _ = beneath(network)
    make = partial(
        KafkaConnection,
        peer=address_text(host, port),
        client_id=client_id,
        login=login,
        max_answer_bytes=MAX_ANSWER_BYTES,
    )
    return await connect(below, host, port, make, timeout)
