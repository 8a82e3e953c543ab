"""The activity of the controller, by the event that it processes: Kafka's ControllerState."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ControllerState(Enum):
    """A state: its number, the prefix of its timer (None for states without one), and the events processed in it."""

    IDLE = (
        0,
        None,
        (
            "AllocateProducerIds",
            "DescribeCluster",
            "DescribeConfigs",
            "IncrementalAlterConfigs",
            "Metadata",
            "ReassignmentProgress",
        ),
    )
    CONTROLLER_CHANGE = (1, "ControllerChange", ("Elect", "Reload", "SessionEnded"))
    BROKER_CHANGE = (
        2,
        "LeaderElection",
        (
            "BrokerChange",
            "BrokerModifications",
            "BrokerReleaseSeen",
            "FailedReplicasDue",
            "OrderFailed",
            "OrdersResend",
        ),
    )
    TOPIC_CHANGE = (3, "TopicChange", ("CreatePartitions", "CreateTopics", "PartitionModifications", "TopicChange"))
    TOPIC_DELETION = (
        4,
        "TopicDeletion",
        ("DeleteTopics", "DeletionsResend", "ReplicasDeleted", "ReplicasNotDeleted", "TopicDeletion", "TopicsDeleted"),
    )
    ALTER_PARTITION_REASSIGNMENT = (
        5,
        "PartitionReassignment",
        (
            "AlterPartitionReassignments",
            "ChangeRollout",
            "CopyingSeen",
            "PartitionReassignmentIsrChange",
            "RolloutLook",
            "RolloutSignalled",
            "RolloutsDue",
            "RoomSeen",
            "StartRollout",
            "StrayDeletion",
            "UploadRollout",
            "ZkPartitionReassignment",
        ),
    )
    AUTO_LEADER_BALANCE = (6, "AutoLeaderBalance", ("AutoPreferredReplicaLeaderElection",))
    MANUAL_LEADER_BALANCE = (7, "ManualLeaderBalance", ("ElectLeaders", "PreferredReplicaElection"))
    CONTROLLED_SHUTDOWN = (8, "ControlledShutdown", ("ControlledShutdown",))
    ISR_CHANGE = (9, "IsrChange", ("AlterPartition", "IsrChangeNotification", "OvertakenLeader"))
    LEADER_AND_ISR_RESPONSE_RECEIVED = (10, "LeaderAndIsrResponseReceived", ("LeaderAndIsrResponseReceived",))
    LOG_DIR_CHANGE = (11, "LogDirChange", ("LogDirEventNotification",))
    UNCLEAN_LEADER_ELECTION_ENABLE = (13, "UncleanLeaderElectionEnable", ("ConfigChange",))
    LIST_PARTITION_REASSIGNMENT = (
        15,
        "ListPartitionReassignment",
        (
            "DescribeReassignments",
            "DescribeRolloutMoves",
            "DescribeRollouts",
            "ListPartitionReassignments",
            "ListReassignments",
        ),
    )

    def __init__(self, number: int, timer: str | None, events: tuple[str, ...]) -> None:
        self.number = number
        self.timer = timer
        self.events = events


STATE_OF: Final[Mapping[str, ControllerState]] = {name: state for state in ControllerState for name in state.events}
"""The state in which an event of each name is processed."""


def state_of(event_name: str) -> ControllerState:
    """Return the state in which an event is processed, IDLE for an unlisted one."""
    return STATE_OF.get(event_name, ControllerState.IDLE)
