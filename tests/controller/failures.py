"""A replica's log that cannot be used, as the controller records it."""

from __future__ import annotations

from controller.gathered import ReplicaOrder
from controller.model.replica_failures import ReplicaFailed, ReplicaFailure
from transport.errors import ErrorCode
from transport.metadata import TopicPartition


def log_lost(tp: TopicPartition, broker_id: int) -> ReplicaFailed:
    """Return the fact that a broker cannot use the log of a replica."""
    return ReplicaFailed((tp, broker_id), ReplicaFailure(ReplicaOrder.FOLLOW, ErrorCode.KAFKA_STORAGE_ERROR, "", 0.0))
