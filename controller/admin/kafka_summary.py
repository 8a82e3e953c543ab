"""A summary of a cluster of Kafka's in counts, as a controller of ours gives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from controller.admin import kafka_settings
from controller.admin.kafka_cluster import KafkaCluster
from controller.admin.least_isrs import least_isrs_in
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.errors import ApiError
from transport.kafka.reading import quorum
from transport.messages import (
    UNKNOWN,
    BrokerEndpoint,
    ConfigResource,
    ConfigResourceType,
    DescribeClusterResponse,
    DescribedBroker,
    MetadataResponse,
)
from transport.metadata import LEADER_DURING_DELETE
from transport.wire import UnsupportedApi

_NOBODY = BrokerEndpoint(UNKNOWN, "", UNKNOWN)


async def summarize(cluster: KafkaCluster, found: MetadataResponse) -> DescribeClusterResponse:
    """Return the counts of what metadata show. Raises ClusterUnreachable, WireError."""
    controller, epoch = await controller_of(cluster, found)
    least = await least_isrs(cluster, {state.topic for state in found.partitions})
    return counted(replace(found, controller=controller, controller_epoch=epoch), least)


async def controller_of(cluster: KafkaCluster, found: MetadataResponse) -> tuple[BrokerEndpoint, int]:
    """Return the controller and its epoch. Under KRaft, metadata name any broker in its place."""
    try:
        return await cluster.ask(quorum())
    except UnsupportedApi:
        return found.controller or _NOBODY, UNKNOWN
    except ApiError:
        return _NOBODY, UNKNOWN


async def least_isrs(cluster: KafkaCluster, topics: Iterable[str]) -> dict[str, int]:
    """Return min.insync.replicas of each topic; those whose settings we may not read are missing."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(topics)]
    return least_isrs_in(await kafka_settings.describe(cluster, resources, (MIN_INSYNC_REPLICAS,)))


def counted(found: MetadataResponse, least: Mapping[str, int]) -> DescribeClusterResponse:
    """Count brokers and partitions; `least` has min.insync.replicas of the topics of which it is known."""
    kept = [state for state in found.partitions if state.leader != LEADER_DURING_DELETE]
    topics = {state.topic for state in kept}
    leaders = Counter(state.leader for state in kept)
    replicas = Counter(broker for state in kept for broker in state.replicas)
    brokers = tuple(
        DescribedBroker(one, UNKNOWN, leaders[one.id], replicas[one.id])
        for one in sorted(found.brokers, key=lambda one: one.id)
    )
    is_known = topics <= least.keys()
    return DescribeClusterResponse(
        found.controller or _NOBODY,
        found.controller_epoch,
        brokers,
        topics=len(topics),
        topics_being_deleted=len({state.topic for state in found.partitions} - topics),
        partitions=len(kept),
        offline=sum(state.leader < 0 for state in kept),
        under_replicated=sum(state.is_under_replicated for state in kept),
        under_min_isr=sum(len(state.isr) < least[state.topic] for state in kept) if is_known else UNKNOWN,
        without_preferred_leader=sum(state.leader != state.replicas[0] for state in kept if state.replicas),
        being_reassigned=sum(state.is_being_reassigned for state in kept),
    )
