"""The rules by which a broker of Kafka's takes orders, per request and per partition. Pure."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from transport.errors import ErrorCode
from transport.messages import PartitionState
from transport.metadata import EPOCH_DURING_DELETE, NO_EPOCH

FIRST_CONTROLLER_EPOCH: Final = 0
"""The controller epoch that a broker knows when it starts."""


@frozen
class Known:
    """The knowledge of a broker about a replica that it has been told to hold."""

    topic_id: str
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH


def judge_request(broker_epoch: int, controller_epoch: int, own_epoch: int, known_epoch: int) -> ErrorCode:
    """Return whether a broker takes a request: NONE, or the error of the whole of it.

    A broker epoch of -1 is not checked, and one above the broker's own is accepted.
    """
    if broker_epoch != NO_EPOCH and broker_epoch < own_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.STALE_CONTROLLER_EPOCH if controller_epoch < known_epoch else ErrorCode.NONE


def judge_leader_and_isr(known: Known | None, state: PartitionState, log_id: str, broker_id: int) -> ErrorCode:
    """Return whether a broker makes a replica lead or follow: NONE, or the error of the partition.

    `log_id` is the topic id of the log, "" if there is none. STALE_CONTROLLER_EPOCH is no news.
    """
    held = log_id or ("" if known is None else known.topic_id)
    if held and state.topic_id and held != state.topic_id:
        return ErrorCode.INCONSISTENT_TOPIC_ID
    epoch = NO_EPOCH if known is None else known.leader_epoch
    if state.leader_epoch <= epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.NONE if broker_id in state.replicas else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def judge_stop_replica(known: Known | None, leader_epoch: int, *, takes_equal: bool) -> ErrorCode:
    """Return whether a broker stops a replica: NONE, or the error of the partition."""
    if known is None or leader_epoch in (NO_EPOCH, EPOCH_DURING_DELETE):
        return ErrorCode.NONE
    is_new = leader_epoch > known.leader_epoch or (takes_equal and leader_epoch == known.leader_epoch)
    return ErrorCode.NONE if is_new else ErrorCode.FENCED_LEADER_EPOCH
