"""The settings of a broker, under the names of Kafka's broker configs."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from transport.dynamic_configs import LARGEST_MESSAGE
from transport.service_settings import ServiceSettings
from transport.settings import setting

# Some defaults are not Kafka's: 200 ms instead of 1000 ms for replica.fetch.backoff.ms, because a new partition's
# followers often hear of it before its leader does; fetch.max.bytes of 16 instead of 55 MiB, so that an answer fits a
# frame with room to spare.


@frozen
class BrokerConfig(ServiceSettings):
    """What a broker is told when it starts. Times are in milliseconds."""

    broker_id: int = setting(doc="The id of the broker, unlike every other's.")
    log_dir: Path = setting(doc="Where the partitions' logs are kept.")  # noqa: RUF009  it declares the field
    host: str = setting("127.0.0.1", "Where it listens, and what it tells others if advertised.host does not.")
    port: int = setting(0, "The port that it listens on; 0 takes any free one.", at_most=65_535)
    rack: str | None = setting(None, "The rack that it is in.", name="broker.rack")
    zookeeper_session_timeout_ms: int = setting(
        18_000, "How long ZooKeeper waits before it gives a silent process up.", at_least=1
    )
    min_insync_replicas: int = setting(1, "How many members the ISR must have for acks=all.", at_least=1)
    replica_lag_time_max_ms: int = setting(
        30_000, "How long a follower may lag before its leader wants it out of the ISR.", at_least=1
    )
    replica_fetch_wait_max_ms: int = setting(500, "How long a follower's fetch waits for records.")
    replica_socket_timeout_ms: int = setting(
        30_000, "How much longer than that it waits for the leader's answer before it connects anew.", at_least=1
    )
    replica_fetch_max_bytes: int = setting(
        1024 * 1024, "How much a follower's fetch brings per partition; one record may exceed it.", at_least=1
    )
    replica_fetch_backoff_ms: int = setting(200, "How long a follower leaves a partition alone that was refused to it.")
    fetch_max_bytes: int = setting(LARGEST_MESSAGE, "How much one answer to a fetch holds.", at_least=1024)
    message_max_bytes: int = setting(1024 * 1024, "How many bytes one record may have.", at_most=LARGEST_MESSAGE)
    zookeeper_connect: str = setting("127.0.0.1:2181", "The metadata store, HOST:PORT,HOST:PORT/CHROOT.")
    controlled_shutdown_enable: bool = setting(
        default=True, doc="Whether the controller moves leadership away before the broker stops."
    )
    controlled_shutdown_max_retries: int = setting(
        3, "How often the broker asks for that before it stops all the same.", at_least=1
    )
    controlled_shutdown_retry_backoff_ms: int = setting(5_000, "How long it waits before it asks again.")
    log_dirs: str | None = setting(
        None, "Where the logs are kept if on several disks, separated by commas; counts before log.dir."
    )

    @property
    def directories(self) -> tuple[Path, ...]:
        """Where the logs are kept: `log.dirs`, or if that is not set `log.dir`."""
        if self.log_dirs is None:
            return (self.log_dir,)
        return tuple(dict.fromkeys(Path(name.strip()) for name in self.log_dirs.split(",") if name.strip()))
