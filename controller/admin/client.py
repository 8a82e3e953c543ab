"""The admin client: the requests of administrators to a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Final

from attrs import frozen

from controller.admin.active_controller import ATTEMPT_SECONDS
from controller.admin.broker_log_dirs import BrokerLogDirs, ask_log_dirs
from controller.admin.reassignments import Reassignment, ReassignmentDescriptions, listed
from controller.admin.rollouts import RolloutAdmin
from controller.admin.visibility import PROBE, Visibility, judge
from transport import messages
from transport.addresses import Address
from transport.errors import ApiError
from transport.metadata import TopicPartition
from transport.network import Network, TcpNetwork
from transport.store.existing import open_existing
from transport.store.security import OPEN, ZooKeeperSecurity
from transport.wire import UnsupportedApi

STARTING_SECONDS: Final = 3.0
"""The time within which a cluster that is starting must appear in ZooKeeper."""


@frozen
class AdminClient(RolloutAdmin):
    """Describes and changes a cluster of Klamm. Open one with `open_admin`."""

    async def read_metadata(self, topics: Sequence[str] | None = None) -> messages.MetadataResponse:
        """Return the controller's view of brokers and partitions, of all topics or of those named that exist.

        Raises ApiError (TOPIC_AUTHORIZATION_FAILED) if a named topic may not be described. Without names, such topics
        are left out.
        """
        request = messages.MetadataRequest(None if topics is None else tuple(topics))
        described = await self._ask(request, "partitions", "refused")
        for refused in described.refused:
            raise ApiError(refused.error, refused.message)
        return described

    async def visibility(
        self,
        others: Mapping[str, int] = MappingProxyType({}),
        *,
        settings: bool = False,  # noqa: ARG002  of Kafka clusters only
    ) -> Visibility:
        """Return how much of the cluster we may see, judged by the topic of an arbitrary name.

        `others` are topics that brokers have logs of and that `read_metadata` does not show, with their numbers of
        partitions (`controller.admin.visibility.undescribed`); those that we may not describe count as hidden.
        """
        described = await self._ask(messages.MetadataRequest((PROBE, *others)), "partitions", "refused")
        return judge(described.refused, others)

    async def cluster_id(self) -> str | None:
        """Return the id of the cluster, None if it has none."""
        return (await self._ask(messages.MetadataRequest(()))).cluster_id or None

    async def describe_cluster(self) -> messages.DescribeClusterResponse:
        """Return the controller's view of the brokers, and counts of topics and partitions."""
        return await self._ask(messages.DescribeClusterRequest())

    async def create_topics(
        self, topics: Sequence[messages.NewTopic], *, validate_only: bool = False
    ) -> messages.CreateTopicsResponse:
        """Create topics, or only check whether they could be created.

        Raises OutcomeUnknown if the answer is lost: then check whether they exist.
        """
        return await self._change(messages.CreateTopicsRequest(tuple(topics), validate_only), "topics")

    async def create_partitions(
        self, topics: Sequence[messages.NewPartitions], *, validate_only: bool = False
    ) -> messages.CreatePartitionsResponse:
        """Add partitions to topics, or only check whether they could be added.

        Raises OutcomeUnknown if the answer is lost: then check the number of partitions.
        """
        return await self._change(messages.CreatePartitionsRequest(tuple(topics), validate_only), "topics")

    async def delete_topics(self, names: Sequence[str]) -> messages.DeleteTopicsResponse:
        """Delete topics. An answer without error means that the request is durable, not that the deletion is complete.

        Until then, `read_metadata` shows leader -2, and the replicas that the deletion waits for as offline. Raises
        OutcomeUnknown if the answer is lost.
        """
        return await self._change(messages.DeleteTopicsRequest(tuple(names)), "topics")

    async def alter_partition_reassignments(
        self, partitions: Sequence[messages.ReassignablePartition]
    ) -> messages.AlterPartitionReassignmentsResponse:
        """Begin, override or cancel reassignments. An answer without error means begun, not complete.

        Raises OutcomeUnknown if the answer is lost: then list the reassignments in progress.
        """
        return await self._change(messages.AlterPartitionReassignmentsRequest(tuple(partitions)), "partitions")

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[messages.OngoingReassignment, ...]:
        """Return the reassignments in progress, of all partitions or of those named."""
        wanted = None if partitions is None else tuple(partitions)
        return (await self._ask(messages.ListPartitionReassignmentsRequest(wanted), "partitions")).partitions

    async def list_reassignments(self, partitions: Sequence[TopicPartition] | None = None) -> tuple[Reassignment, ...]:
        """Return the reassignments in progress, of all partitions or of those named, each with an identity (KIP-240).

        Raises ApiError (UNKNOWN_TOPIC_OR_PARTITION) if a named partition does not exist.
        """
        wanted = None if partitions is None else tuple(partitions)
        request = messages.ListReassignmentsRequest(wanted, round(self.timeout * 1000))
        return listed(await self._ask(request, "reassignments", "errors"))

    async def describe_reassignments(
        self, reassignments: Collection[Reassignment] | None = None
    ) -> ReassignmentDescriptions:
        """Return the progress of reassignments, of all or of those given; completed ones are missing (KIP-240)."""
        keys = None if reassignments is None else tuple(each.key for each in reassignments)
        request = messages.DescribeReassignmentsRequest(keys, round(self.timeout * 1000))
        response = await self._ask(request, "reassignments")
        return ReassignmentDescriptions.of(response, reassignments)

    async def elect_leaders(
        self,
        election_type: messages.ElectionType,
        partitions: Sequence[TopicPartition] | None = None,
        *,
        orders: Mapping[TopicPartition, Sequence[int]] | None = None,
    ) -> tuple[messages.PartitionError, ...]:
        """Elect preferred leaders, or uncleanly any live replica, for the partitions named or for all that need it.

        With `orders`, which require a preferred election, the replicas of these partitions are reordered and the first
        one leads; `partitions` None then means no others. Raises OutcomeUnknown if the answer is lost: then check the
        leaders. Raises UnsupportedApi if the controller is too old for orders.
        """
        orders = orders or {}
        named = partitions or () if orders else partitions
        wanted = None if named is None else tuple(named)
        ordered = tuple(messages.LeaderOrder(*tp, tuple(replicas)) for tp, replicas in orders.items())
        request = messages.ElectLeadersRequest(election_type, wanted, ordered)
        outcomes = (await self._change(request, "partitions")).partitions
        if not orders.keys() <= {item.tp for item in outcomes}:
            raise UnsupportedApi("the controller knows no orders of replicas and heeded none: upgrade it first")
        return outcomes

    async def describe_configs(
        self, resources: Sequence[messages.ConfigResource]
    ) -> tuple[messages.ResourceConfigs, ...]:
        """Return the settings in effect for topics and brokers, and the sources of their values."""
        return (await self._ask(messages.DescribeConfigsRequest(tuple(resources)), "resources")).resources

    async def incremental_alter_configs(
        self, resources: Sequence[messages.AlterConfigsResource], *, validate_only: bool = False
    ) -> tuple[messages.ResourceError, ...]:
        """Change settings of topics and brokers at run time (KIP-339), or only check whether they could be changed.

        Those of one resource change all or not at all. Raises OutcomeUnknown if the answer is lost: then check the
        settings; UnsupportedApi if the controller is of a release that cannot only check them.
        """
        request = messages.IncrementalAlterConfigsRequest(tuple(resources), validate_only)
        return (await self._change(request, "resources")).resources

    async def describe_log_dirs(
        self, broker_ids: Sequence[int] | None = None, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[int, BrokerLogDirs]:
        """Return the contents of log directories, of all live brokers and partitions or of those named.

        The brokers are asked directly and concurrently. One that is not alive or does not answer has a `fault` instead.
        """
        known = await self.read_metadata(())
        live = {broker.id: broker for broker in known.brokers}
        wanted = list(live) if broker_ids is None else list(dict.fromkeys(broker_ids))
        request = messages.DescribeLogDirsRequest(None if partitions is None else tuple(partitions))
        brokers = [live[broker_id] for broker_id in wanted if broker_id in live]
        seconds = min(self.timeout, ATTEMPT_SECONDS)
        said = await ask_log_dirs(self.network, brokers, request, timeout=seconds, are_kafkas=known.are_kafkas)
        return {id_: said.get(id_, BrokerLogDirs(fault=f"broker {id_} is not alive")) for id_ in wanted}

    async def read_trace(
        self, controller: messages.BrokerEndpoint, sequence: int, max_wait_ms: int
    ) -> messages.CommitTraceResponse:
        """Return a controller's commits from `sequence` on, waiting for new ones. Raises WireError if it is gone."""
        request = messages.CommitTraceRequest(sequence, max_wait_ms)
        return await self._call((controller.host, controller.port), request, self.timeout)


@asynccontextmanager
async def open_klamm_admin(
    *,
    bootstrap: Sequence[Address] = (),
    zookeeper_connect: str | None = None,
    zookeeper_security: ZooKeeperSecurity = OPEN,
    network: Network | None = None,
    timeout: float = 30.0,  # noqa: ASYNC109  of each call, not of the whole block
) -> AsyncIterator[AdminClient]:
    """Open an admin client that finds Klamm's controller through the nodes at `bootstrap`, or through ZooKeeper.

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
