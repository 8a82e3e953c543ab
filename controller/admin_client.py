"""The admin client: finds the active controller, follows it, and asks it.

A request that says nobody did anything (NOT_CONTROLLER, no connection) is tried again until `timeout`. One that may
have been done is tried again only if doing it twice is the same as once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio
from attrs import frozen

from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    BrokerEndpoint,
    CommitTraceRequest,
    CommitTraceResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
    OngoingReassignment,
    ReassignablePartition,
    Request,
)
from transport.metadata import TopicPartition
from transport.network import Network, TcpNetwork
from transport.store.controllers import find_controller
from transport.store.protocol import ConnectionLost, MetadataStore, SessionExpired
from transport.store.zookeeper import open_zookeeper
from transport.wire import ConnectionBroken, RequestTimedOut, WireError, open_connection

R = TypeVar("R")

RETRY_SECONDS: Final = 0.2
ATTEMPT_SECONDS: Final = 5.0

Address = tuple[str, int]


class ClusterUnreachable(Exception):
    """Nobody who was asked could say who the controller is; the message says who was asked and what to do."""


@frozen
class AdminClient:
    """Asks a cluster about itself and asks it to change. Open one with `open_admin`."""

    network: Network
    bootstrap: Sequence[Address]
    store: MetadataStore | None
    timeout: float

    # --- what can be asked --------------------------------------------------------------------------------------

    async def describe_cluster(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Return the controller's view of brokers and partitions, of all topics or of those named that exist."""
        return await self._ask(MetadataRequest(None if topics is None else tuple(topics)))

    async def create_topics(self, topics: Sequence[NewTopic]) -> CreateTopicsResponse:
        """Create topics. Not repeated if the connection breaks meanwhile: then look whether they exist."""
        return await self._ask(CreateTopicsRequest(tuple(topics)), idempotent=False)

    async def alter_partition_reassignments(
        self, partitions: Sequence[ReassignablePartition]
    ) -> AlterPartitionReassignmentsResponse:
        """Begin, override or cancel reassignments. An answer without error means begun, not done."""
        return await self._ask(AlterPartitionReassignmentsRequest(tuple(partitions)))

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[OngoingReassignment, ...]:
        """Return the reassignments under way, of all partitions or of those named."""
        wanted = None if partitions is None else tuple((tp.topic, tp.partition) for tp in partitions)
        return (await self._ask(ListPartitionReassignmentsRequest(wanted))).partitions

    async def find_controller(self) -> BrokerEndpoint:
        """Return where the active controller listens. Raises ClusterUnreachable if it cannot be found in time."""
        with trio.move_on_after(self.timeout):
            while True:
                found = await self._look_up()
                if found is not None:
                    return found
                await trio.sleep(RETRY_SECONDS)
        raise ClusterUnreachable(self._nobody())

    async def read_trace(self, controller: BrokerEndpoint, sequence: int, max_wait_ms: int) -> CommitTraceResponse:
        """Return what a controller committed from `sequence` on, waiting for more. Raises WireError if it is gone."""
        request = CommitTraceRequest(sequence, max_wait_ms)
        return await self._call((controller.host, controller.port), request, self.timeout)

    # --- how it is asked ----------------------------------------------------------------------------------------

    async def _ask(self, request: Request[R], *, idempotent: bool = True) -> R:
        deadline = trio.current_time() + self.timeout
        while True:
            controller = await self.find_controller()
            left = max(deadline - trio.current_time(), 0)
            # A controller that hangs keeps its office until its session ends; the next one may answer.
            patience = min(left, ATTEMPT_SECONDS) if idempotent else left
            try:
                return await self._call((controller.host, controller.port), request, patience)
            except (ApiError, WireError) as error:
                if not _is_retriable(error, idempotent=idempotent) or trio.current_time() >= deadline:
                    raise
            await trio.sleep(RETRY_SECONDS)

    async def _look_up(self) -> BrokerEndpoint | None:
        if self.store is not None:
            try:
                return await find_controller(self.store)
            except (ConnectionLost, SessionExpired):
                return None
        for address in self.bootstrap:
            try:
                answer = await self._call(address, MetadataRequest(()), min(self.timeout, ATTEMPT_SECONDS))
            except (ApiError, WireError):
                continue
            if answer.controller is not None:
                return answer.controller
        return None

    def _nobody(self) -> str:
        if self.store is not None:
            return "no controller is active: start one with `klamm controller run`"
        asked = ", ".join(f"{host}:{port}" for host, port in self.bootstrap)
        return f"no active controller was found through {asked}: is a broker running there?"

    async def _call(self, address: Address, request: Request[R], patience: float) -> R:
        """Ask one node, on a connection of its own: requests are rare, so nothing is kept alive between them."""
        host, port = address
        async with open_connection(self.network, host, port, client_id="admin", connect_timeout=patience) as connection:
            return await connection.call(request, timeout=patience)


def _is_retriable(error: ApiError | WireError, *, idempotent: bool) -> bool:
    if isinstance(error, ApiError):
        return error.code in {ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    return idempotent and isinstance(error, ConnectionBroken | RequestTimedOut)


@asynccontextmanager
async def open_admin(
    *,
    bootstrap: Sequence[Address] = (),
    zookeeper_connect: str | None = None,
    network: Network | None = None,
    timeout: float = 30.0,  # noqa: ASYNC109  of each call, not of the whole block
) -> AsyncIterator[AdminClient]:
    """Open an admin client that finds the controller through nodes at `bootstrap`, or through ZooKeeper.

    `timeout`, in seconds, is that of each call. Raises StoreUnavailable if ZooKeeper cannot be reached.
    """
    network = network or TcpNetwork()
    if zookeeper_connect is None:
        yield AdminClient(network, bootstrap, None, timeout)
        return
    async with open_zookeeper(zookeeper_connect, connect_timeout=timeout) as store:
        yield AdminClient(network, bootstrap, store, timeout)
