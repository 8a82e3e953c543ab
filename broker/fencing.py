"""Which of the controller's requests still count: fencing by controller, broker, leader and partition epoch. Pure."""

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
    """Knows the highest controller epoch that was heard of, and the latest request.

    They are not kept over a restart: a request for an earlier life of the broker is refused for its broker epoch.
    """

    def __init__(self) -> None:
        self.controller_epoch = NO_EPOCH
        self._latest = NO_EPOCH, NO_EPOCH, UNNUMBERED

    def admit(self, request: ControllerRequest, broker_epoch: int) -> None:
        """Let a request pass, or raise ApiError with STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH or INVALID_REQUEST.

        The last is for a copy that was on its way on a connection that the controller has given up, and comes after
        later requests: live brokers, topics and replicas that are gone have no epoch that would tell it.

        A broker epoch larger than ours passes, as in Kafka: the controller has seen our new registration before the
        store's answer reached us, and it would not send the request again.
        """
        if request.broker_epoch < broker_epoch:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"{request.broker_epoch} is not {broker_epoch}, this broker's")
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
    """The latest order that a replica on this broker obeys. A stopped one keeps its data and its epoch."""

    state: PartitionState
    stopped: bool = False


class Verdict(Enum):
    """What a partition's state means to a replica."""

    TRANSITION = "a new leader epoch: lead or follow"
    REFRESH = "the leader epoch in force, but a newer ISR or replica set"
    KNOWN = "nothing new"


def judge_leader_and_isr(hosted: HostedReplica | None, state: PartitionState) -> Verdict:
    """Say what `state` means to a replica; `hosted` is None for one that this broker does not hold yet.

    Raises ApiError with FENCED_LEADER_EPOCH, or UNKNOWN_TOPIC_ID if the replica is of an earlier topic of that name,
    which must be deleted first.
    """
    if hosted is None:
        return Verdict.TRANSITION
    known = hosted.state
    check_topic_id(known.topic_id, state.topic_id)
    if state.leader_epoch < known.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"{state.leader_epoch} is older than {known.leader_epoch}")
    if hosted.stopped or state.leader_epoch > known.leader_epoch:
        return Verdict.TRANSITION
    # the replica set lives in another znode than the ISR, so it can change without the partition epoch
    if state == known or state.partition_epoch < known.partition_epoch:
        return Verdict.KNOWN
    return Verdict.REFRESH


def judge_stop_replica(hosted: HostedReplica | None, partition: StopReplicaPartition) -> bool:
    """Tell whether a StopReplica has anything to stop; a replica of another topic id counts as stopped already.

    `hosted` None may still have data from an earlier run, so there is something to stop. An epoch equal to the
    replica's passes (KAFKA-13972). Raises ApiError with FENCED_LEADER_EPOCH.
    """
    if hosted is None:
        return True
    known = hosted.state
    if known.topic_id != partition.topic_id:
        return False
    if partition.leader_epoch != EPOCH_DURING_DELETE and partition.leader_epoch < known.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"{partition.leader_epoch} is older than {known.leader_epoch}")
    return True


def check_topic_id(held: str, named: str) -> None:
    """Raise ApiError with UNKNOWN_TOPIC_ID unless the topic id held here is the one named in a request."""
    if held != named:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"the replica here is of topic id {held}, not {named}: delete it first"
        )
