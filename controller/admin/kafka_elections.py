"""Elections by a new order of replicas in a cluster of Kafka's, which has no such request.

A reassignment to the same replicas in another order moves nothing and is complete at once. Then the first one is
elected. What would not lead to its election is refused before, so that such a partition does not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.admin.election_refusals import Orders, refusals
from controller.admin.kafka_cluster import KafkaCluster
from transport.errors import ErrorCode
from transport.kafka.changing import elect, reassign
from transport.messages import ElectionType, MetadataResponse, PartitionError, PartitionState, ReassignablePartition
from transport.metadata import TopicPartition


async def elect_in_order(
    cluster: KafkaCluster, plain: Sequence[TopicPartition], orders: Orders, metadata: MetadataResponse
) -> tuple[PartitionError, ...]:
    """Elect preferred leaders of `plain` as they are, and of the others once their replicas have the given order."""
    before = {state.tp: state for state in metadata.partitions}
    outcomes = refusals(before, orders, [broker.id for broker in metadata.brokers])
    wanted = {tp: tuple(order) for tp, order in orders.items() if tp not in outcomes}
    new = [ReassignablePartition(*tp, order) for tp, order in wanted.items() if before[tp].replicas != order]
    if new:
        answers = await cluster.change(reassign(new, cluster.timeout_ms))
        outcomes |= {one.tp: one for one in answers if one.error is not ErrorCode.NONE}
    left = [*plain, *(tp for tp in wanted if tp not in outcomes)]
    if left:
        elected = await cluster.change(elect(ElectionType.PREFERRED, left, cluster.timeout_ms))
        outcomes |= {one.tp: _judged(one, wanted, before) for one in elected}
    return tuple(outcomes.values())


def _judged(outcome: PartitionError, wanted: Orders, before: Mapping[TopicPartition, PartitionState]) -> PartitionError:
    """Return the outcome of an election; one that was not needed has changed the order nevertheless."""
    tp = outcome.tp
    is_new = tp in wanted and before[tp].replicas != tuple(wanted[tp])
    return PartitionError(*tp) if is_new and outcome.error is ErrorCode.ELECTION_NOT_NEEDED else outcome
