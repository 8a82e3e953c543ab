"""The admin client, which finds the active controller, follows it when it changes, and sends it requests.

A request that was certainly not carried out (NOT_CONTROLLER, no connection) is retried until `timeout`. One that may
have been carried out is retried only if it only reads: repeating a change after its answer was lost might undo a
concurrent change, and a repeated cancel would report that nothing is in progress. Such a change raises OutcomeUnknown.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from itertools import chain
from typing import Final, Protocol, TypeVar

import trio
from attrs import frozen
from msgspec.structs import replace

from controller.admin.broker_log_dirs import BrokerLogDirs, ask_log_dirs
from controller.admin.reassignments import Reassignment, ReassignmentDescriptions, listed
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterConfigsResource,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    BrokerEndpoint,
    CommitTraceRequest,
    CommitTraceResponse,
    ConfigResource,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    LeaderOrder,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    MetadataResponse,
    NewPartitions,
    NewTopic,
    OngoingReassignment,
    PartitionError,
    ReassignablePartition,
    Request,
    ResourceConfigs,
    ResourceError,
)
from transport.metadata import TopicPartition
from transport.network import Network, TcpNetwork
from transport.store.controllers import find_controller
from transport.store.existing import open_existing
from transport.store.formats import UndecodableZnode
from transport.store.protocol import ConnectionLost, MetadataStore, SessionExpired
from transport.store.security import OPEN, ZooKeeperSecurity
from transport.wire import Connection, ConnectionBroken, RequestTimedOut, UnsupportedApi, WireError, open_connection

R = TypeVar("R")

RETRY_SECONDS: Final = 0.2
ATTEMPT_SECONDS: Final = 5.0
STARTING_SECONDS: Final = 3.0
"""The time within which a cluster that is starting must appear in ZooKeeper."""

_NONE_KNOWN: Final = "it knows no active controller"
_ANSWER_IS_LOST: Final = (ConnectionBroken, RequestTimedOut)
_NOTHING_WAS_DONE: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED)

Address = tuple[str, int]


class ClusterUnreachable(Exception):
    """No node could name the active controller; the message lists the nodes asked and gives the remedy."""


class OutcomeUnknown(WireError):
    """The answer to a change was lost: it may have been carried out or not; the message says so."""


class _Wait(Protocol):
    """Sends a request over a connection to the controller and waits for its answer, for up to `left` seconds."""

    async def __call__(
        self, connection: Connection, controller: BrokerEndpoint, request: Request[R], left: float, /
    ) -> R: ...


class _NotTaken(Exception):
    """The request was not taken, so it can be retried safely."""

    def __init__(self, reason: ApiError | ConnectionBroken) -> None:
        super().__init__(str(reason))
        self.reason = reason


@frozen
class AdminClient:
    """Describes and changes a cluster. Open one with `open_admin`."""

    network: Network
    bootstrap: Sequence[Address]
    store: MetadataStore | None
    timeout: float

    # --- requests -----------------------------------------------------------------------------------------------

    async def read_metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Return the controller's view of brokers and partitions, of all topics or of those named that exist.

        Raises ApiError (TOPIC_AUTHORIZATION_FAILED) if a named topic may not be described. Without names, such topics
        are left out.
        """
        request = MetadataRequest(None if topics is None else tuple(topics))
        described = await _in_parts(self._ask, request, "partitions", "refused")
        for refused in described.refused:
            raise ApiError(refused.error, refused.message)
        return described

    async def describe_cluster(self) -> DescribeClusterResponse:
        """Return the controller's view of the brokers, and counts of topics and partitions."""
        return await self._ask(DescribeClusterRequest())

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> CreateTopicsResponse:
        """Create topics, or only check whether they could be created.

        Raises OutcomeUnknown if the answer is lost: then check whether they exist.
        """
        return await _in_parts(self._change, CreateTopicsRequest(tuple(topics), validate_only), "topics")

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> CreatePartitionsResponse:
        """Add partitions to topics, or only check whether they could be added.

        Raises OutcomeUnknown if the answer is lost: then check the number of partitions.
        """
        return await _in_parts(self._change, CreatePartitionsRequest(tuple(topics), validate_only), "topics")

    async def delete_topics(self, names: Sequence[str]) -> DeleteTopicsResponse:
        """Delete topics. An answer without error means that the request is durable, not that the deletion is complete.

        Until then, `read_metadata` shows leader -2, and the replicas that the deletion waits for as offline. Raises
        OutcomeUnknown if the answer is lost.
        """
        return await _in_parts(self._change, DeleteTopicsRequest(tuple(names)), "topics")

    async def alter_partition_reassignments(
        self, partitions: Sequence[ReassignablePartition]
    ) -> AlterPartitionReassignmentsResponse:
        """Begin, override or cancel reassignments. An answer without error means begun, not complete.

        Raises OutcomeUnknown if the answer is lost: then list the reassignments in progress.
        """
        return await _in_parts(self._change, AlterPartitionReassignmentsRequest(tuple(partitions)), "partitions")

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[OngoingReassignment, ...]:
        """Return the reassignments in progress, of all partitions or of those named."""
        wanted = None if partitions is None else tuple((tp.topic, tp.partition) for tp in partitions)
        return (await _in_parts(self._ask, ListPartitionReassignmentsRequest(wanted), "partitions")).partitions

    async def list_reassignments(self, partitions: Sequence[TopicPartition] | None = None) -> tuple[Reassignment, ...]:
        """Return the reassignments in progress, of all partitions or of those named, each with an identity (KIP-240).

        Raises ApiError (UNKNOWN_TOPIC_OR_PARTITION) if a named partition does not exist.
        """
        wanted = None if partitions is None else tuple((tp.topic, tp.partition) for tp in partitions)
        request = ListReassignmentsRequest(wanted, round(self.timeout * 1000))
        return listed(await _in_parts(self._ask, request, "reassignments", "errors"))

    async def describe_reassignments(
        self, reassignments: Collection[Reassignment] | None = None
    ) -> ReassignmentDescriptions:
        """Return the progress of reassignments, of all or of those given; completed ones are missing (KIP-240)."""
        keys = None if reassignments is None else tuple(each.key for each in reassignments)
        request = DescribeReassignmentsRequest(keys, round(self.timeout * 1000))
        response = await _in_parts(self._ask, request, "reassignments")
        return ReassignmentDescriptions.of(response, reassignments)

    async def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Sequence[TopicPartition] | None = None,
        *,
        orders: Mapping[TopicPartition, Sequence[int]] | None = None,
    ) -> tuple[PartitionError, ...]:
        """Elect preferred leaders, or uncleanly any live replica, for the partitions named or for all that need it.

        With `orders`, which require a preferred election, the replicas of these partitions are reordered and the first
        one leads; `partitions` None then means no others. Raises OutcomeUnknown if the answer is lost: then check the
        leaders. Raises UnsupportedApi if the controller is too old for orders.
        """
        orders = orders or {}
        named = partitions or () if orders else partitions
        wanted = None if named is None else tuple((tp.topic, tp.partition) for tp in named)
        ordered = tuple(LeaderOrder(*tp, tuple(replicas)) for tp, replicas in orders.items())
        request = ElectLeadersRequest(election_type, wanted, ordered)
        outcomes = (await _in_parts(self._change, request, "partitions")).partitions
        if not orders.keys() <= {item.tp for item in outcomes}:
            raise UnsupportedApi("the controller knows no orders of replicas and heeded none: upgrade it first")
        return outcomes

    async def describe_configs(self, resources: Sequence[ConfigResource]) -> tuple[ResourceConfigs, ...]:
        """Return the settings in effect for topics and brokers, and the sources of their values."""
        return (await _in_parts(self._ask, DescribeConfigsRequest(tuple(resources)), "resources")).resources

    async def incremental_alter_configs(self, resources: Sequence[AlterConfigsResource]) -> tuple[ResourceError, ...]:
        """Change settings of topics and brokers at run time (KIP-339); those of one resource all or not at all.

        Raises OutcomeUnknown if the answer is lost: then check the settings.
        """
        request = IncrementalAlterConfigsRequest(tuple(resources))
        return (await _in_parts(self._change, request, "resources")).resources

    async def describe_log_dirs(
        self, broker_ids: Sequence[int] | None = None, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[int, BrokerLogDirs]:
        """Return the contents of log directories, of all live brokers and partitions or of those named.

        The brokers are asked directly and concurrently. One that is not alive or does not answer has a `fault` instead.
        """
        live = {broker.id: broker for broker in (await self.read_metadata(())).brokers}
        wanted = list(live) if broker_ids is None else list(dict.fromkeys(broker_ids))
        request = DescribeLogDirsRequest(None if partitions is None else tuple((*tp,) for tp in partitions))
        brokers = [live[broker_id] for broker_id in wanted if broker_id in live]
        said = await ask_log_dirs(self.network, brokers, request, timeout=min(self.timeout, ATTEMPT_SECONDS))
        return {id_: said.get(id_, BrokerLogDirs(fault=f"broker {id_} is not alive")) for id_ in wanted}

    async def find_controller(self) -> BrokerEndpoint:
        """Return the address of the active controller. Raises ClusterUnreachable if it cannot be found in time."""
        return await self._find(trio.current_time() + self.timeout)

    async def read_trace(self, controller: BrokerEndpoint, sequence: int, max_wait_ms: int) -> CommitTraceResponse:
        """Return a controller's commits from `sequence` on, waiting for new ones. Raises WireError if it is gone."""
        request = CommitTraceRequest(sequence, max_wait_ms)
        return await self._call((controller.host, controller.port), request, self.timeout)

    # --- sending ------------------------------------------------------------------------------------------------

    async def _ask(self, request: Request[R]) -> R:
        """Send a read-only request until it is answered: if a controller hangs, the next one may answer."""
        deadline = trio.current_time() + self.timeout
        while True:
            try:
                return await self._ask_active(request, deadline, self._wait_a_while)
            except _ANSWER_IS_LOST:
                if trio.current_time() >= deadline:
                    raise
            await trio.sleep(RETRY_SECONDS)

    async def _change(self, request: Request[R]) -> R:
        """Send a change to one controller only, and wait for its answer unless another controller takes office."""
        deadline = trio.current_time() + self.timeout
        try:
            return await self._ask_active(request, deadline, self._wait_while_active)
        except _ANSWER_IS_LOST as error:
            raise OutcomeUnknown(f"{error}; it may have been done or not: look before you ask again") from error

    async def _ask_active(self, request: Request[R], deadline: float, wait: _Wait) -> R:
        """Send a request until a controller takes it, and wait for the answer with `wait`."""
        while True:
            try:
                return await self._ask_once(request, deadline, wait)
            except _NotTaken as refusal:
                if trio.current_time() >= deadline:
                    raise refusal.reason from None
            await trio.sleep(RETRY_SECONDS)

    async def _ask_once(self, request: Request[R], deadline: float, wait: _Wait) -> R:
        controller = await self._find(deadline)
        left = max(deadline - trio.current_time(), 0)
        async with AsyncExitStack() as stack:
            try:
                connecting = self._connect((controller.host, controller.port), min(left, ATTEMPT_SECONDS))
                connection = await stack.enter_async_context(connecting)
            except ConnectionBroken as error:
                raise _NotTaken(error) from error
            left = max(deadline - trio.current_time(), 0)
            try:
                return await wait(connection, controller, request, left)
            except ApiError as error:
                if error.code is ErrorCode.REQUEST_TIMED_OUT:
                    raise RequestTimedOut(error.message) from error
                if error.code in _NOTHING_WAS_DONE:
                    raise _NotTaken(error) from error
                raise

    async def _wait_a_while(self, connection: Connection, _: BrokerEndpoint, request: Request[R], left: float) -> R:
        return await connection.call(request, timeout=min(left, ATTEMPT_SECONDS))

    async def _wait_while_active(
        self, connection: Connection, controller: BrokerEndpoint, request: Request[R], left: float
    ) -> R:
        """Wait for up to `left` seconds. Raises RequestTimedOut as soon as another controller is in office.

        A paused controller that has lost its office answers only when it resumes, which may be never.
        """
        fault: ApiError | WireError = RequestTimedOut(
            f"controller {controller.id} did not answer, and it is no longer the active one"
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_when_replaced, controller, nursery.cancel_scope)
            try:
                return await connection.call(request, timeout=left)
            except (ApiError, WireError) as error:
                fault = error
            finally:
                nursery.cancel_scope.cancel()
        raise fault

    async def _cancel_when_replaced(self, controller: BrokerEndpoint, scope: trio.CancelScope) -> None:
        found: BrokerEndpoint | None = controller
        while found in (controller, None):
            await trio.sleep(ATTEMPT_SECONDS)
            with suppress(UndecodableZnode):
                found = await self._look_up({})
        scope.cancel()

    async def _find(self, deadline: float) -> BrokerEndpoint:
        faults: dict[Address, str] = {}
        with trio.move_on_at(deadline):
            while True:
                found = await self._look_up(faults)
                if found is not None:
                    return found
                await trio.sleep(RETRY_SECONDS)
        raise ClusterUnreachable(self._nobody(faults))

    async def _look_up(self, faults: dict[Address, str]) -> BrokerEndpoint | None:
        """Ask the addresses for the controller; their latest errors and unhelpful answers are stored in `faults`."""
        if self.store is not None:
            try:
                return await find_controller(self.store)
            except (ConnectionLost, SessionExpired):
                return None
        for address in self.bootstrap:
            try:
                answer = await self._call(address, MetadataRequest(()), min(self.timeout, ATTEMPT_SECONDS))
            except (ApiError, WireError) as error:
                faults[address] = str(error)
                continue
            if answer.controller is not None:
                return answer.controller
            faults[address] = _NONE_KNOWN
        return None

    def _nobody(self, faults: Mapping[Address, str]) -> str:
        if self.store is not None or _NONE_KNOWN in faults.values():
            return "no controller is active: start one with `klamm controller run`"
        asked = ", ".join(f"{host}:{port}" for host, port in self.bootstrap)
        why = "; ".join(faults.values()) or f"no answer within {self.timeout:g} s"
        return f"no active controller was found through {asked}: {why}"

    async def _call(self, address: Address, request: Request[R], patience: float) -> R:
        async with self._connect(address, patience) as connection:
            return await connection.call(request, timeout=patience)

    def _connect(self, address: Address, patience: float) -> AbstractAsyncContextManager[Connection]:
        """Open a connection for one request; requests are rare, so none is kept open between them."""
        host, port = address
        return open_connection(self.network, host, port, client_id="admin", connect_timeout=patience)


async def _in_parts(ask: Callable[[Request[R]], Awaitable[R]], request: Request[R], *lists: str) -> R:
    """Send a request, in several parts if it is too large for one, and join the named lists of the answers."""
    answers = [await ask(part) for part in request.parts()]
    if len(answers) == 1:
        return answers[0]
    joined = {name: tuple(chain.from_iterable(getattr(answer, name) for answer in answers)) for name in lists}
    return replace(answers[0], **joined)  # type: ignore[type-var]


@asynccontextmanager
async def open_admin(
    *,
    bootstrap: Sequence[Address] = (),
    zookeeper_connect: str | None = None,
    zookeeper_security: ZooKeeperSecurity = OPEN,
    network: Network | None = None,
    timeout: float = 30.0,  # noqa: ASYNC109  of each call, not of the whole block
) -> AsyncIterator[AdminClient]:
    """Open an admin client that finds the controller through the nodes at `bootstrap`, or through ZooKeeper.

    `timeout` limits each call, in seconds. Raises StoreUnavailable if ZooKeeper cannot be reached, NoCluster if it
    holds no cluster.
    """
    network = network or TcpNetwork()
    if zookeeper_connect is None:
        yield AdminClient(network, bootstrap, None, timeout)
        return
    patience = min(timeout, STARTING_SECONDS)
    opening = open_existing(zookeeper_connect, patience=patience, connect_timeout=timeout, security=zookeeper_security)
    async with opening as store:
        yield AdminClient(network, bootstrap, store, timeout)
