"""The latest decisions on the page, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from controller.model import facts
from controller.observation.decisions import Assigned, Decision, Example, Led, OfTopic
from transport.metadata import NO_LEADER, LeaderAndIsr

REASONS: Final[Mapping[str, str]] = {
    "AllocateProducerIds": "a broker asked for ids of producers",
    "AlterPartition": "a leader asked for another ISR",
    "AlterPartitionReassignments": "a client asked for moves, or to cancel some",
    "AutoPreferredReplicaLeaderElection": "the regular check of preferred leaders was due",
    "BrokerChange": "a broker came or went",
    "BrokerModifications": "a broker changed its registration",
    "BrokerReleaseSeen": "a broker told its release",
    "ChangeRollout": "a client gave an order to a rollout",
    "ConfigChange": "settings were changed",
    "ControlledShutdown": "a broker asked to shut down",
    "CopyingSeen": "brokers told how they get on with copying",
    "CreatePartitions": "a client asked for more partitions",
    "CreateTopics": "a client asked for new topics",
    "DeleteTopics": "a client asked to delete topics",
    "DeletionsResend": "a broker was due to be told of deletions again",
    "DescribeCluster": "a client asked for the state of the cluster",
    "DescribeConfigs": "a client asked for settings",
    "DescribeReassignments": "a client asked for the progress of moves",
    "DescribeRolloutMoves": "a client asked for the moves of a rollout",
    "DescribeRollouts": "a client asked for rollouts",
    "Elect": "the office was free, or its holder changed",
    "ElectLeaders": "a client asked for an election of leaders",
    "FailedReplicasDue": "replicas that failed were due to be tried again",
    "Failover": "this controller was elected, and loaded the cluster",
    "IncrementalAlterConfigs": "a client asked for other settings",
    "IsrChangeNotification": "leaders changed ISRs in ZooKeeper",
    "LeaderAndIsrResponseReceived": "a broker answered whether it carried out its orders",
    "ListPartitionReassignments": "a client asked for the moves",
    "ListReassignments": "a client asked for the moves",
    "LogDirEventNotification": "a broker lost a log directory",
    "Metadata": "a client asked for topics",
    "OrderFailed": "a broker failed to carry out an order",
    "OrdersResend": "a broker was due to be sent its orders again",
    "OvertakenLeader": "a leader's proposal crossed its new epoch",
    "PartitionModifications": "the assignment of a topic was changed",
    "PartitionReassignmentIsrChange": "new replicas of moves joined the ISR",
    "PreferredReplicaElection": "an election of preferred leaders was asked for in ZooKeeper",
    "ReassignmentProgress": "the progress of moves was due to be looked at",
    "Reload": "the connection to ZooKeeper was lost, and came back",
    "ReplicasDeleted": "a broker deleted replicas",
    "ReplicasNotDeleted": "a broker failed to delete replicas",
    "RolloutLook": "what holds a rollout up was due to be looked at",
    "RolloutSignalled": "the signal of a rollout's operator changed",
    "RolloutsDue": "moves of a rollout ended, or brokers came or went",
    "RoomSeen": "brokers told the room on their disks",
    "SessionEnded": "the session with ZooKeeper expired",
    "StartRollout": "a client started a rollout",
    "StrayDeletion": "replicas were left over from moves",
    "TopicChange": "topics were created or deleted",
    "TopicsDeleted": "all replicas of topics had been deleted",
    "TopicDeletion": "topics were to be deleted",
    "UploadRollout": "a client uploaded a part of a plan",
    "ZkPartitionReassignment": "moves were asked for in ZooKeeper",
}
"""The cause of each event, by its name."""

_OF_TOPIC: Final = {facts.DeletionStarted: "its deletion began", facts.TopicGone: "gone"}


@frozen
class DecisionRow:
    """A decision as the page shows it; `count` events of one kind in a row are one."""

    id: str
    event: str
    time_ms: int
    seconds: float
    count: int
    why: str
    caused_by: str | None
    brokers: Mapping[str, tuple[int, ...]]
    changes: Mapping[str, int]
    examples: tuple[str, ...]


def row_of(decision: Decision) -> DecisionRow:
    """Return a decision in words."""
    return DecisionRow(
        decision.event_id,
        decision.event,
        decision.time_ms,
        decision.seconds,
        decision.count,
        REASONS.get(decision.event, ""),
        decision.caused_by,
        {name: tuple(brokers) for name, brokers in decision.brokers.items()},
        decision.changes,
        tuple(map(_words, decision.examples)),
    )


def _words(example: Example) -> str:
    match example:
        case Led(tp=tp, round=name, before=before, after=after):
            return f"{tp}: {_leadership(before, after)} ({name})"
        case Assigned(tp=tp, round=name, before=before, after=after):
            return f"{tp}: replicas {_list(before.replicas)} → {_list(after.target_replicas)} ({name})"
        case OfTopic(topic=topic, fact=fact, partitions=partitions):
            return f"{topic}: {_OF_TOPIC.get(fact) or f'new, {partitions} partitions'}"


def _leadership(before: LeaderAndIsr | None, after: LeaderAndIsr) -> str:
    if before is None:
        return f"first leader {_leader(after)}, ISR {_list(after.isr)}"
    isr = f"ISR {_list(before.isr)} → {_list(after.isr)}" if before.isr != after.isr else f"ISR {_list(after.isr)}"
    if before.leader == after.leader:
        return f"{isr}, leader {_leader(after)}"
    return f"leader {_leader(before)} → {_leader(after)}, {isr}"


def _leader(leadership: LeaderAndIsr) -> str:
    return "none" if leadership.leader == NO_LEADER else str(leadership.leader)


def _list(brokers: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, brokers))}]"
