"""The activity of the controller, by the event that it processes: Kafka's ControllerState."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ControllerState(Enum):
    """A state: its number in the gauge ControllerState, and the prefix of its timer, None for states without one."""

    IDLE = (0, None)
    CONTROLLER_CHANGE = (1, "ControllerChange")
    BROKER_CHANGE = (2, "LeaderElection")
    TOPIC_CHANGE = (3, "TopicChange")
    TOPIC_DELETION = (4, "TopicDeletion")
    ALTER_PARTITION_REASSIGNMENT = (5, "PartitionReassignment")
    AUTO_LEADER_BALANCE = (6, "AutoLeaderBalance")
    MANUAL_LEADER_BALANCE = (7, "ManualLeaderBalance")
    CONTROLLED_SHUTDOWN = (8, "ControlledShutdown")
    ISR_CHANGE = (9, "IsrChange")
    LEADER_AND_ISR_RESPONSE_RECEIVED = (10, "LeaderAndIsrResponseReceived")
    LOG_DIR_CHANGE = (11, "LogDirChange")
    UNCLEAN_LEADER_ELECTION_ENABLE = (13, "UncleanLeaderElectionEnable")
    LIST_PARTITION_REASSIGNMENT = (15, "ListPartitionReassignment")

    def __init__(self, number: int, timer: str | None) -> None:
        self.number = number
        self.timer = timer


_STATES: Final[Mapping[ControllerState, tuple[str, ...]]] = {
    ControllerState.IDLE: (
        "DescribeCluster",
        "DescribeConfigs",
        "IncrementalAlterConfigs",
        "Metadata",
        "ReassignmentProgress",
    ),
    ControllerState.CONTROLLER_CHANGE: ("Elect", "Reload", "SessionEnded"),
    ControllerState.BROKER_CHANGE: ("BrokerChange", "BrokerModifications", "MetadataFailed", "MetadataResend"),
    ControllerState.TOPIC_CHANGE: ("CreatePartitions", "CreateTopics", "PartitionModifications", "TopicChange"),
    ControllerState.TOPIC_DELETION: ("DeleteTopics", "ReplicasDeleted", "ReplicasNotDeleted", "TopicDeletion"),
    ControllerState.ALTER_PARTITION_REASSIGNMENT: (
        "AlterPartitionReassignments",
        "PartitionReassignmentIsrChange",
        "StrayDeletion",
        "ZkPartitionReassignment",
    ),
    ControllerState.AUTO_LEADER_BALANCE: ("AutoPreferredReplicaLeaderElection",),
    ControllerState.MANUAL_LEADER_BALANCE: ("ElectLeaders", "PreferredReplicaElection"),
    ControllerState.CONTROLLED_SHUTDOWN: ("ControlledShutdown",),
    ControllerState.ISR_CHANGE: ("AlterPartition", "IsrChangeNotification"),
    ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED: ("LeaderAndIsrResponseReceived",),
    ControllerState.LOG_DIR_CHANGE: ("LogDirEventNotification",),
    ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE: ("ConfigChange",),
    ControllerState.LIST_PARTITION_REASSIGNMENT: (
        "DescribeReassignments",
        "ListPartitionReassignments",
        "ListReassignments",
    ),
}

STATE_OF: Final[Mapping[str, ControllerState]] = {name: state for state, names in _STATES.items() for name in names}
"""The state in which an event of each name is processed."""


def state_of(event_name: str) -> ControllerState:
    """Return the state in which an event is processed, IDLE for an unlisted one."""
    return STATE_OF.get(event_name, ControllerState.IDLE)
