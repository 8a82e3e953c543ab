"""Elections by a new order of replicas in a cluster of Kafka's, which has no such request.

A reassignment to the same replicas in another order moves nothing and is complete at once. Then the first one is
elected. What would not lead to its election is refused before, so that such a partition does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from controller.admin.kafka_cluster import KafkaCluster
from transport.errors import ErrorCode, Fault
from transport.kafka.changing import elect, reassign
from transport.messages import ElectionType, PartitionError, PartitionState, ReassignablePartition
from transport.metadata import TopicPartition

Orders = Mapping[TopicPartition, Sequence[int]]


async def elect_in_order(
    cluster: KafkaCluster, plain: Sequence[TopicPartition], orders: Orders, states: Iterable[PartitionState]
) -> tuple[PartitionError, ...]:
    """Elect preferred leaders of `plain` as they are, and of the others once their replicas have the given order."""
    before = {state.tp: state for state in states}
    outcomes = refusals(before, orders)
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


def refusals(states: Mapping[TopicPartition, PartitionState], orders: Orders) -> dict[TopicPartition, PartitionError]:
    """Return the orders that cannot make their first replica the leader, each with the reason."""
    faults = {tp: _fault(tp, states.get(tp), tuple(order)) for tp, order in orders.items()}
    return {tp: PartitionError(*tp, *fault) for tp, fault in faults.items() if fault is not None}


def _fault(tp: TopicPartition, state: PartitionState | None, order: tuple[int, ...]) -> Fault | None:
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}"
    if state.is_being_reassigned:
        return ErrorCode.REASSIGNMENT_IN_PROGRESS, f"{tp} is being moved: wait until that is over"
    if sorted(order) != sorted(state.replicas):
        text = f"{list(order)} is no order of the replicas {list(state.replicas)} of {tp}"
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    if order[0] not in state.isr:
        text = f"broker {order[0]} is not in the ISR of {tp}, which is {sorted(state.isr)}"
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text
    return None


def _judged(outcome: PartitionError, wanted: Orders, before: Mapping[TopicPartition, PartitionState]) -> PartitionError:
    """Return the outcome of an election; one that was not needed has changed the order nevertheless."""
    tp = outcome.tp
    is_new = tp in wanted and before[tp].replicas != tuple(wanted[tp])
    return PartitionError(*tp) if is_new and outcome.error is ErrorCode.ELECTION_NOT_NEEDED else outcome
