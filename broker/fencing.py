"""The fencing of the controller's requests by controller, broker, leader and partition epochs. Pure."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from transport.errors import ApiError, ErrorCode
from transport.messages import (
    LeaderAndIsrRequest,
    PartitionState,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.messages.control import UNNUMBERED
from transport.metadata import EPOCH_DURING_DELETE, NO_EPOCH

ControllerRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


class ControllerFence:
    """The highest controller epoch seen, and the latest request.

    They need not survive a restart: requests for an earlier incarnation of the broker are stale by their broker epoch.
    """

    def __init__(self) -> None:
        self.controller_epoch = NO_EPOCH
        self._latest = NO_EPOCH, NO_EPOCH, UNNUMBERED

    def admit(self, request: ControllerRequest, broker_epoch: int, *, is_registering: bool = False) -> None:
        """Accept a request, or raise ApiError with STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH or INVALID_REQUEST.

        The last means a copy on a connection that the controller has abandoned, which arrives after later requests. Its
        number gives it away, because lists of live brokers and topics, and deleted replicas, have no epochs.

        A larger broker epoch than ours is accepted while we register: the controller has seen our new registration
        before the store's answer reached us, and would not send the request again. At other times it is for another
        broker, perhaps of another cluster, that had this address before us, and is INVALID_REQUEST, too.
        """
        if request.broker_epoch < broker_epoch:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"{request.broker_epoch} is not {broker_epoch}, this broker's")
        if request.broker_epoch > broker_epoch and not is_registering:
            text = f"broker epoch {request.broker_epoch} is not {broker_epoch}: the request is for another broker"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if request.controller_epoch < self.controller_epoch:
            raise ApiError(
                ErrorCode.STALE_CONTROLLER_EPOCH, f"{request.controller_epoch} is older than {self.controller_epoch}"
            )
        self.controller_epoch = request.controller_epoch
        this = request.controller_epoch, request.broker_epoch, request.number
        if request.number != UNNUMBERED:
            if this < self._latest:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"request {request.number} is older than one that was obeyed")
            self._latest = this


@frozen
class HostedReplica:
    """The latest order that a replica on this broker carried out. A stopped replica keeps its data and its epoch."""

    state: PartitionState
    stopped: bool = False


class Verdict(Enum):
    """The effect of a partition's state on a replica."""

    TRANSITION = "a new leader epoch: lead or follow"
    REFRESH = "the same leader epoch, but a newer ISR or replica set"
    KNOWN = "no news"


def judge_leader_and_isr(hosted: HostedReplica | None, state: PartitionState) -> Verdict:
    """Return the effect of `state` on a replica; `hosted` is None if this broker does not host the replica yet.

    Raises ApiError with FENCED_LEADER_EPOCH, or with UNKNOWN_TOPIC_ID if the replica belongs to an earlier topic of
    that name, which must be deleted first.
    """
    if hosted is None:
        return Verdict.TRANSITION
    known = hosted.state
    check_topic_id(known.topic_id, state.topic_id)
    if state.leader_epoch < known.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"{state.leader_epoch} is older than {known.leader_epoch}")
    if hosted.stopped or state.leader_epoch > known.leader_epoch:
        return Verdict.TRANSITION
    # Equal states are compared as a whole: the replica set is in another znode than the ISR, so it can change under the
    # same partition epoch.
    if state == known or state.partition_epoch < known.partition_epoch:
        return Verdict.KNOWN
    return Verdict.REFRESH


def judge_stop_replica(hosted: HostedReplica | None, partition: StopReplicaPartition) -> bool:
    """Return whether a StopReplica has anything to stop. Raises ApiError with FENCED_LEADER_EPOCH.

    An epoch equal to the replica's is accepted (KAFKA-13972).
    """
    # Without orders since the start, the replica may still have data of an earlier run.
    if hosted is None:
        return True
    known = hosted.state
    # A replica of another topic of that name: the one to stop is gone already.
    if known.topic_id != partition.topic_id:
        return False
    if partition.leader_epoch != EPOCH_DURING_DELETE and partition.leader_epoch < known.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"{partition.leader_epoch} is older than {known.leader_epoch}")
    return True


def check_topic_id(held: str, named: str) -> None:
    """Raise ApiError with UNKNOWN_TOPIC_ID unless the topic id held here is the one named in a request."""
    if held != named:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"the replica here has topic id {held}, not {named}: delete it first"
        )
