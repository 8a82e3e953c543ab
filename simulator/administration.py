"""What else an administrator asks of a simulated cluster, through its admin api or by hand in the store.

What is asked through the api raises ApiError for the first refusal, ClusterUnreachable or WireError if there is no
answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.cluster import ADMIN, SimulatedCluster, partition_named
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
)
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import ANY_VERSION, Create, Op, Set


async def alter(cluster: SimulatedCluster, topic: str, setting: str, value: str | None) -> None:
    """Give a topic a setting, all brokers by default without a name; None takes it away again."""
    cluster.trace.add("admin", ADMIN, f"alter {topic or 'the default'}: {setting}={value}")
    kind = ConfigResourceType.TOPIC if topic else ConfigResourceType.BROKER
    operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
    altered = AlterConfigsResource(ConfigResource(kind, topic), (AlterableConfig(setting, operation, value or ""),))
    [result] = await cluster.admin.incremental_alter_configs([altered])
    if result.error is not ErrorCode.NONE:
        raise ApiError(result.error, result.message)


# --- by hand ----------------------------------------------------------------------------------------------------


def mark_for_deletion(cluster: SimulatedCluster, name: str) -> None:
    """Mark a topic for deletion, unless it is."""
    if cluster.durable.tree.read(paths.delete_topic(name)) is None:
        _write(cluster, Create(paths.delete_topic(name)))


def request_election(cluster: SimulatedCluster, names: Sequence[str]) -> None:
    """Write `/admin/preferred_replica_election`, as Kafka's old tool does."""
    path, data = paths.PREFERRED_REPLICA_ELECTION, formats.encode_partitions(map(partition_named, names))
    is_there = cluster.durable.tree.read(path) is not None
    _write(cluster, Set(path, data, ANY_VERSION) if is_there else Create(path, data))


def request_moves(cluster: SimulatedCluster, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """Write `/admin/reassign_partitions`, as Kafka's old tool does."""
    path, data = paths.REASSIGN_PARTITIONS, formats.encode_reassign_partitions(targets)
    is_there = cluster.durable.tree.read(path) is not None
    _write(cluster, Set(path, data, ANY_VERSION) if is_there else Create(path, data))


def notify_isr_change(cluster: SimulatedCluster, names: Sequence[str]) -> None:
    """Say that the ISRs of partitions changed, as leaders do that write them by themselves."""
    data = formats.encode_partitions(map(partition_named, names))
    _write(cluster, Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_", data, sequence=True))


def notify_log_dir(cluster: SimulatedCluster, broker_id: int) -> None:
    """Say that a broker lost a log directory."""
    data = formats.encode_log_dir_event(broker_id)
    _write(cluster, Create(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_", data, sequence=True))


def _write(cluster: SimulatedCluster, op: Op) -> None:
    cluster.trace.add("admin", ADMIN, f"writes {op.path}")
    cluster.world.ensemble.commit_by_hand([op])
