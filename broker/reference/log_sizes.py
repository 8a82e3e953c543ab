"""The answer to DescribeLogDirs: the sizes of a broker's logs (KIP-113)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.reference.logs import Logs
from broker.reference.replica import Replica
from transport.errors import ErrorCode
from transport.messages import UNKNOWN, LogDir, LogDirReplica
from transport.metadata import TopicPartition


def describe_log_dirs(
    logs: Logs, replicas: Mapping[TopicPartition, Replica], wanted: Sequence[TopicPartition] | None
) -> tuple[LogDir, ...]:
    """Return the log directories with their replicas, all or those of the partitions wanted.

    A directory that cannot be used has KAFKA_STORAGE_ERROR and no replicas. For a replica without orders since the
    start, only the size of its log is known.
    """
    usable = logs.directories()
    held: dict[str, list[LogDirReplica]] = {path: [] for path in usable}
    for tp in dict.fromkeys(sorted(logs.partitions()) if wanted is None else wanted):
        path = logs.directory_of(tp)
        described = None if path is None else _describe(logs, replicas.get(tp), tp)
        if path is not None and described is not None:
            held[path].append(described)
    return tuple(
        LogDir(path, ErrorCode.NONE if is_usable else ErrorCode.KAFKA_STORAGE_ERROR, tuple(held[path]))
        for path, is_usable in usable.items()
    )


def _describe(logs: Logs, replica: Replica | None, tp: TopicPartition) -> LogDirReplica | None:
    if replica is not None:
        log, topic_id = replica.log, replica.state.topic_id
        return LogDirReplica(tp.topic, topic_id, tp.partition, log.size, log.end_offset, replica.lag)
    # Its end offset would be known only after reading the whole log, which takes too long.
    try:
        return LogDirReplica(tp.topic, logs.topic_id(tp) or "", tp.partition, logs.size(tp), UNKNOWN, UNKNOWN)
    except OSError:
        return None
