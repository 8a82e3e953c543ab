"""The settings of a broker, under the names of Kafka's broker configs."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen


@frozen
class BrokerConfig:
    """What a broker is told when it starts. The defaults are Kafka's, unless a reason is given."""

    broker_id: int
    log_dir: Path
    host: str = "127.0.0.1"
    """Where it listens, and what it tells others."""

    port: int = 0
    """0 takes any free port."""

    rack: str | None = None
    zookeeper_session_timeout_ms: int = 18_000
    """The time-out of the store's session: how long the registration of a dead broker may stay."""

    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = 30_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_max_bytes: int = 1024 * 1024
    """Per partition; one record may exceed it."""

    replica_fetch_backoff_ms: int = 200
    """How long a follower leaves a partition alone that its leader refused. Kafka waits 1000 ms, which a new
    partition's followers often do once, because they hear of it before its leader does."""

    fetch_max_bytes: int = 16 * 1024 * 1024
    """Of the records in one answer, so that it fits a frame with room to spare. Kafka: 55 MiB."""

    message_max_bytes: int = 1024 * 1024
    """Of one record, so that every answer to a fetch can hold it."""
