"""The admin client: finds the active controller, follows it, and asks it.

A request that nobody carried out (NOT_CONTROLLER, no connection) is tried again until `timeout`. What may have been
carried out is asked again only if it reads: a change repeated after its answer was lost might undo what somebody else
asked for in between, and a cancel would be told that nothing is under way. Its outcome is unknown, and said to be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from itertools import chain
from typing import Final, Protocol, TypeVar

import trio
from attrs import evolve, frozen

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
"""The time that a cluster which is being started has to appear in ZooKeeper."""

_NONE_KNOWN: Final = "it knows no active controller"
_ANSWER_IS_LOST: Final = (ConnectionBroken, RequestTimedOut)
_NOTHING_WAS_DONE: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED)

Address = tuple[str, int]


class ClusterUnreachable(Exception):
    """Nobody who was asked could say who the controller is; the message says who was asked and what to do."""


class OutcomeUnknown(WireError):
    """The answer to a change was lost: it may have been carried out or not; the message says so."""


class _Wait(Protocol):
    """How to wait for an answer of the controller at the other end of a connection, for up to `left` seconds."""

    async def __call__(
        self, connection: Connection, controller: BrokerEndpoint, request: Request[R], left: float, /
    ) -> R: ...


class _NotTaken(Exception):
    """Nobody has begun to do what was asked for."""

    def __init__(self, reason: ApiError | ConnectionBroken) -> None:
        super().__init__(str(reason))
        self.reason = reason


@frozen
class AdminClient:
    """Asks a cluster about itself and asks it to change. Open one with `open_admin`."""

    network: Network
    bootstrap: Sequence[Address]
    store: MetadataStore | None
    timeout: float

    # --- what can be asked --------------------------------------------------------------------------------------

    async def read_metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Return the controller's view of brokers and partitions, of all topics or of those named that exist.

        Raises ApiError (TOPIC_AUTHORIZATION_FAILED) if a named topic may not be described. Asked for all topics, it
        leaves such topics out.
        """
        request = MetadataRequest(None if topics is None else tuple(topics))
        described = await _in_parts(self._ask, request, "partitions", "refused")
        for refused in described.refused:
            raise ApiError(refused.error, refused.message)
        return described

    async def describe_cluster(self) -> DescribeClusterResponse:
        """Return the controller's view of brokers and, in counts, of partitions."""
        return await self._ask(DescribeClusterRequest())

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> CreateTopicsResponse:
        """Create topics, or only say whether they could be.

        Raises OutcomeUnknown if the answer is lost: then look whether they exist.
        """
        return await _in_parts(self._change, CreateTopicsRequest(tuple(topics), validate_only), "topics")

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> CreatePartitionsResponse:
        """Add partitions to topics, or only say whether they could be.

        Raises OutcomeUnknown if the answer is lost: then look how many there are.
        """
        return await _in_parts(self._change, CreatePartitionsRequest(tuple(topics), validate_only), "topics")

    async def delete_topics(self, names: Sequence[str]) -> DeleteTopicsResponse:
        """Delete topics. An answer without error means that the deletion is durable, not that it is done.

        Until it is, `read_metadata` shows leader -2, and as offline the replicas that it waits for. Raises
        OutcomeUnknown if the answer is lost.
        """
        return await _in_parts(self._change, DeleteTopicsRequest(tuple(names)), "topics")

    async def alter_partition_reassignments(
        self, partitions: Sequence[ReassignablePartition]
    ) -> AlterPartitionReassignmentsResponse:
        """Begin, override or cancel reassignments. An answer without error means begun, not done.

        Raises OutcomeUnknown if the answer is lost: then look at the list of ongoing ones.
        """
        return await _in_parts(self._change, AlterPartitionReassignmentsRequest(tuple(partitions)), "partitions")

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[OngoingReassignment, ...]:
        """Return the reassignments under way, of all partitions or of those named."""
        wanted = None if partitions is None else tuple((tp.topic, tp.partition) for tp in partitions)
        return (await _in_parts(self._ask, ListPartitionReassignmentsRequest(wanted), "partitions")).partitions

    async def list_reassignments(self, partitions: Sequence[TopicPartition] | None = None) -> tuple[Reassignment, ...]:
        """Return the reassignments under way, of all partitions or of those named, each with an identity (KIP-240).

        Raises ApiError (UNKNOWN_TOPIC_OR_PARTITION) if one named does not exist.
        """
        wanted = None if partitions is None else tuple((tp.topic, tp.partition) for tp in partitions)
        request = ListReassignmentsRequest(wanted, round(self.timeout * 1000))
        return listed(await _in_parts(self._ask, request, "reassignments", "errors"))

    async def describe_reassignments(
        self, reassignments: Collection[Reassignment] | None = None
    ) -> ReassignmentDescriptions:
        """Return how far reassignments are, those given or all; those that are over are missing (KIP-240)."""
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
        """Elect preferred leaders, or uncleanly any that is alive, for the partitions named or for all that need it.

        With `orders`, which are for preferred elections, the replicas of these partitions take a new order and its
        first leads; no `partitions` are none beside them then. Raises OutcomeUnknown if the answer is lost: then look
        who leads. Raises UnsupportedApi if the controller is too old to take orders.
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
        """Return the settings of topics and brokers that are in force, and where their values are from."""
        return (await _in_parts(self._ask, DescribeConfigsRequest(tuple(resources)), "resources")).resources

    async def incremental_alter_configs(self, resources: Sequence[AlterConfigsResource]) -> tuple[ResourceError, ...]:
        """Change settings of topics and brokers at run time (KIP-339); those of one resource together or not at all.

        Raises OutcomeUnknown if the answer is lost: then look at the settings.
        """
        request = IncrementalAlterConfigsRequest(tuple(resources))
        return (await _in_parts(self._change, request, "resources")).resources

    async def describe_log_dirs(
        self, broker_ids: Sequence[int] | None = None, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[int, BrokerLogDirs]:
        """Return what the log directories of brokers hold, of all live brokers and partitions or of those named.

        The brokers are asked themselves, at the same time. Who is not alive or does not answer has a `fault` instead.
        """
        live = {broker.id: broker for broker in (await self.read_metadata(())).brokers}
        wanted = list(live) if broker_ids is None else list(dict.fromkeys(broker_ids))
        request = DescribeLogDirsRequest(None if partitions is None else tuple((*tp,) for tp in partitions))
        brokers = [live[broker_id] for broker_id in wanted if broker_id in live]
        said = await ask_log_dirs(self.network, brokers, request, timeout=min(self.timeout, ATTEMPT_SECONDS))
        return {id_: said.get(id_, BrokerLogDirs(fault=f"broker {id_} is not alive")) for id_ in wanted}

    async def find_controller(self) -> BrokerEndpoint:
        """Return where the active controller listens. Raises ClusterUnreachable if it cannot be found in time."""
        return await self._find(trio.current_time() + self.timeout)

    async def read_trace(self, controller: BrokerEndpoint, sequence: int, max_wait_ms: int) -> CommitTraceResponse:
        """Return what a controller committed from `sequence` on, waiting for more. Raises WireError if it is gone."""
        request = CommitTraceRequest(sequence, max_wait_ms)
        return await self._call((controller.host, controller.port), request, self.timeout)

    # --- how it is asked ----------------------------------------------------------------------------------------

    async def _ask(self, request: Request[R]) -> R:
        """Ask until there is an answer: if a controller hangs, the next one may answer."""
        deadline = trio.current_time() + self.timeout
        while True:
            try:
                return await self._ask_active(request, deadline, self._wait_a_while)
            except _ANSWER_IS_LOST:
                if trio.current_time() >= deadline:
                    raise
            await trio.sleep(RETRY_SECONDS)

    async def _change(self, request: Request[R]) -> R:
        """Ask once: what a controller took waits for its answer, unless another one is found in office."""
        deadline = trio.current_time() + self.timeout
        try:
            return await self._ask_active(request, deadline, self._wait_while_active)
        except _ANSWER_IS_LOST as error:
            raise OutcomeUnknown(f"{error}; it may have been done or not: look before you ask again") from error

    async def _ask_active(self, request: Request[R], deadline: float, wait: _Wait) -> R:
        """Ask until somebody takes the request, and wait for the answer as `wait` does."""
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
        """Wait for up to `left` seconds; raises RequestTimedOut as soon as somebody else is in office than was asked.

        A controller that was paused has lost its office, and says so when it goes on, which may be never.
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
        """Ask the addresses which node is the controller; `faults` gets their latest errors and other answers."""
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
        """Open a connection for one request: they are rare, so nothing is kept alive between them."""
        host, port = address
        return open_connection(self.network, host, port, client_id="admin", connect_timeout=patience)


async def _in_parts(ask: Callable[[Request[R]], Awaitable[R]], request: Request[R], *lists: str) -> R:
    """Send a request, in several parts if it lists too much for one; join these lists of the answers."""
    answers = [await ask(part) for part in request.parts()]
    if len(answers) == 1:
        return answers[0]
    joined = {name: tuple(chain.from_iterable(getattr(answer, name) for answer in answers)) for name in lists}
    return evolve(answers[0], **joined)  # type: ignore[misc]


@asynccontextmanager
async def open_admin(
    *,
    bootstrap: Sequence[Address] = (),
    zookeeper_connect: str | None = None,
    zookeeper_security: ZooKeeperSecurity = OPEN,
    network: Network | None = None,
    timeout: float = 30.0,  # noqa: ASYNC109  of each call, not of the whole block
) -> AsyncIterator[AdminClient]:
    """Open an admin client that finds the controller through nodes at `bootstrap`, or through ZooKeeper.

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
