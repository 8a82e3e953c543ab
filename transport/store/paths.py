"""The paths of the metadata store: Kafka's layout, and our own below `/klamm`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from transport.metadata import Stray, TopicPartition, is_topic_id, is_topic_name, number_in

CLUSTER_ID: Final = "/cluster/id"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
REASSIGNMENTS: Final = "/admin/reassignments"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"
DELETE_TOPICS: Final = "/admin/delete_topics"
ISR_CHANGE_NOTIFICATION: Final = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION: Final = "/log_dir_event_notification"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
CONFIG_CHANGES: Final = "/config/changes"
DEFAULT: Final = "<default>"
PRODUCER_IDS: Final = "/latest_producer_id_block"
KLAMM_CONTROLLERS: Final = "/klamm/controllers"
STRAYS: Final = "/klamm/strays"
STORAGE_IDS: Final = "/klamm/storage_ids"
ROLLOUTS: Final = "/klamm/rollouts"

MIGRATION: Final = "/migration"
"""Exists once Kafka's migration to KRaft has begun."""

OFFICE_LOCK: Final = "/klamm/office"
"""The ephemeral of our controller that is in office among Kafka's brokers."""

RELEASED: Final = "/klamm/released"
"""Exists while none of our controllers may stand for election among Kafka's brokers."""

CONTROLLER_IDS: Final = "/klamm/controller_ids"
"""The parent of the ids of all controllers of ours that have been in office among Kafka's brokers."""

TAKE_OVER: Final = "/klamm/take_over"
"""The order to take the office from Kafka's controller; who takes it deletes the order."""

PERSISTENT: Final = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    BROKER_CONFIGS,
    "/config/ips",
    DELETE_TOPICS,
    REASSIGNMENTS,
    "/brokers/seqid",
    ISR_CHANGE_NOTIFICATION,
    PRODUCER_IDS,
    LOG_DIR_EVENT_NOTIFICATION,
    KLAMM_CONTROLLERS,
    STRAYS,
    STORAGE_IDS,
)
"""The znodes that brokers and controllers create at start-up if they are missing."""


def broker(broker_id: int) -> str:
    """Return the path of a broker's registration, an ephemeral whose czxid is the broker epoch."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """Return the path of a topic's znode, which holds its assignment and its id."""
    return f"{TOPICS}/{name}"


def topic_partitions(name: str) -> str:
    """Return the path of the parent of a topic's partitions."""
    return f"{TOPICS}/{name}/partitions"


def partition(tp: TopicPartition) -> str:
    """Return the path of a partition, the parent of its state."""
    return f"{TOPICS}/{tp.topic}/partitions/{tp.partition}"


def partition_state(tp: TopicPartition) -> str:
    """Return the path of a partition's state: leader, ISR and epochs."""
    return f"{TOPICS}/{tp.topic}/partitions/{tp.partition}/state"


def partition_states(tps: Iterable[TopicPartition]) -> list[str]:
    """Return the paths of the states of partitions."""
    return [f"{TOPICS}/{topic}/partitions/{number}/state" for topic, number in tps]


def delete_topic(name: str) -> str:
    """Return the path of the marker that requests the deletion of a topic."""
    return f"{DELETE_TOPICS}/{name}"


def topic_reassignments(name: str) -> str:
    """Return the path of the parent of the reassignments of a topic's partitions."""
    return f"{REASSIGNMENTS}/{name}"


def reassignment(tp: TopicPartition) -> str:
    """Return the path whose czxid identifies a partition's reassignment, and whose ctime is its start (KIP-240)."""
    return f"{REASSIGNMENTS}/{tp.topic}/{tp.partition}"


def topic_config(name: str) -> str:
    """Return the path of a topic's own settings."""
    return f"{TOPIC_CONFIGS}/{name}"


def broker_config(broker_id: int | None) -> str:
    """Return the path of a broker's own settings or, for None, of the default of all brokers."""
    return f"{BROKER_CONFIGS}/{DEFAULT if broker_id is None else broker_id}"


def controller_endpoint(controller_id: int) -> str:
    """Return the path of the ephemeral with a controller's address."""
    return f"{KLAMM_CONTROLLERS}/{controller_id}"


def controller_id(id_: int) -> str:
    """Return the path that lasts and says that the controller of this id has been in office among Kafka's brokers."""
    return f"{CONTROLLER_IDS}/{id_}"


def storage_id(broker_id: int) -> str:
    """Return the path of the storage id that a broker had when it last received its orders."""
    return f"{STORAGE_IDS}/{broker_id}"


def stray(replica: Stray) -> str:
    """Return the path of the marker that requests the deletion of a replica."""
    return f"{STRAYS}/{replica.topic_id}:{replica.topic}:{replica.partition}:{replica.broker_id}"


def parse_stray(name: str) -> Stray | None:
    """Return the replica that a child of `/klamm/strays` names; None if the name is malformed."""
    parts = name.split(":")
    if len(parts) != len(Stray._fields):
        return None
    topic_id, topic, partition, broker_id = parts[0], parts[1], number_in(parts[2]), number_in(parts[3])
    if partition is None or broker_id is None or not (is_topic_id(topic_id) and is_topic_name(topic)):
        return None
    return Stray(topic_id, topic, partition, broker_id)


def rollout(name: str) -> str:
    """Return the path of a rollout's state, which is empty while its plan is being uploaded."""
    return f"{ROLLOUTS}/{name}"


def rollout_plans(name: str) -> str:
    """Return the path of the parent of the parts of a rollout's plan."""
    return f"{ROLLOUTS}/{name}/moves"


def rollout_plan(name: str, first: int) -> str:
    """Return the path of the part of a rollout's plan whose first move has this number."""
    return f"{ROLLOUTS}/{name}/moves/{first}"


def rollout_marks(name: str, first: int) -> str:
    """Return the path of the progress of that part."""
    return f"{ROLLOUTS}/{name}/marks/{first}"


def rollout_strangers(name: str) -> str:
    """Return the path of the partitions that administrators have moved before the rollout has read its part."""
    return f"{ROLLOUTS}/{name}/by_hand"


def numbers(names: Iterable[str]) -> list[int]:
    """Return the broker ids or partition numbers among the names of children; other names are ignored."""
    return [number for name in names if (number := number_in(name)) is not None]
