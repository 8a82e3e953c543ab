"""The elections that will fail, as far as metadata shows it: for a dry run, and before Kafka gets a new replica order.

The controller decides in the end, because it knows more, such as replicas that failed to lead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from transport.errors import ErrorCode, Fault
from transport.messages import ElectionType, PartitionError, PartitionState
from transport.metadata import LEADER_DURING_DELETE, TopicPartition

Orders = Mapping[TopicPartition, Sequence[int]]


def refusals(
    states: Mapping[TopicPartition, PartitionState], orders: Orders, live: Collection[int]
) -> dict[TopicPartition, PartitionError]:
    """Return the orders that cannot make their first replica the leader, each with the reason."""
    faults = {tp: _order_fault(tp, states.get(tp), tuple(order), live) for tp, order in orders.items()}
    return {tp: PartitionError(*tp, *fault) for tp, fault in faults.items() if fault is not None}


def failure(election_type: ElectionType, state: PartitionState, live: Collection[int]) -> PartitionError | None:
    """Return why an election without a new order, which the partition needs, will fail; None if it may succeed."""
    if state.leader == LEADER_DURING_DELETE:
        fault: Fault | None = _being_deleted(state)
    elif election_type is ElectionType.PREFERRED:
        fault = _preferred_fault(state, state.replicas[0], live)
    elif not any(_is_online(state, replica, live) for replica in state.replicas):
        text = f"no replica of {state.tp} is alive: start one of the brokers {list(state.replicas)}"
        fault = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text
    else:
        fault = None
    return None if fault is None else PartitionError(*state.tp, *fault)


def _order_fault(
    tp: TopicPartition, state: PartitionState | None, order: tuple[int, ...], live: Collection[int]
) -> Fault | None:
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}"
    if state.leader == LEADER_DURING_DELETE:
        return _being_deleted(state)
    if state.is_being_reassigned:
        text = f"{tp} is being moved: wait until it is, or move it to the order that you want"
        return ErrorCode.REASSIGNMENT_IN_PROGRESS, text
    if sorted(order) != sorted(state.replicas):
        text = f"{list(order)} is no order of {tp}'s replicas {list(state.replicas)}: name each of them once"
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    return _preferred_fault(state, order[0], live)


def _preferred_fault(state: PartitionState, preferred: int, live: Collection[int]) -> Fault | None:
    named = f"the preferred leader {preferred} of {state.tp}"
    if not _is_online(state, preferred, live):
        text = f"{named} is not alive, shuts down or cannot use its log: start it"
    elif preferred not in state.isr:
        isr = list(state.isr)
        text = f"{named} is not in the ISR {isr}: wait for it to catch up"
    else:
        return None
    return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text


def _is_online(state: PartitionState, replica: int, live: Collection[int]) -> bool:
    return replica in live and replica not in state.offline_replicas


def _being_deleted(state: PartitionState) -> Fault:
    return ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {state.topic} is being deleted"
