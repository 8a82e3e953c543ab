"""The settings of a broker, under the names of Kafka's broker configs."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from transport.dynamic_configs import LARGEST_MESSAGE
from transport.service_settings import ServiceSettings
from transport.settings import setting

# Two defaults differ from Kafka's. replica.fetch.backoff.ms is 200 ms instead of 1000 ms, because the followers of a
# new partition often receive their orders before its leader. fetch.max.bytes is 16 instead of 55 MiB, so that a
# response fits easily into a frame.


@frozen
class BrokerConfig(ServiceSettings):
    """The settings with which a broker starts. Times are in milliseconds."""

    broker_id: int = setting(doc="The id of the broker, different from every other's.")
    log_dir: Path = setting(doc="The directory of the partitions' logs.")  # noqa: RUF009  it declares the field
    host: str = setting("127.0.0.1", "The address to listen on, advertised to others unless advertised.host is set.")
    port: int = setting(0, "The port to listen on; 0 for any free port.", at_most=65_535)
    rack: str | None = setting(None, "The rack of the broker.", name="broker.rack")
    zookeeper_session_timeout_ms: int = setting(
        18_000, "The time after which ZooKeeper expires the session of a silent process.", at_least=1
    )
    min_insync_replicas: int = setting(1, "The minimum size of the ISR for acks=all.", at_least=1)
    replica_lag_time_max_ms: int = setting(
        30_000, "The time that a follower may lag before its leader removes it from the ISR.", at_least=1
    )
    replica_fetch_wait_max_ms: int = setting(500, "The time that a follower's fetch waits for records.")
    replica_socket_timeout_ms: int = setting(
        30_000, "The time beyond the fetch wait after which a follower reconnects to a silent leader.", at_least=1
    )
    replica_fetch_max_bytes: int = setting(
        1024 * 1024, "The size of a fetch response per partition; a single record may exceed it.", at_least=1
    )
    replica_fetch_backoff_ms: int = setting(200, "The time before a follower retries a partition after an error.")
    fetch_max_bytes: int = setting(LARGEST_MESSAGE, "The size of a whole fetch response.", at_least=1024)
    message_max_bytes: int = setting(1024 * 1024, "The largest size of a record in bytes.", at_most=LARGEST_MESSAGE)
    zookeeper_connect: str = setting("127.0.0.1:2181", "The metadata store, HOST:PORT,HOST:PORT/CHROOT.")
    controller_socket_timeout_ms: int = setting(
        30_000, "The timeout of connecting to the controller, and of each request to it.", at_least=1
    )
    controlled_shutdown_enable: bool = setting(
        default=True, doc="Whether the controller moves leadership away before the broker stops."
    )
    controlled_shutdown_max_retries: int = setting(
        3, "The number of attempts at a controlled shutdown before the broker stops anyway.", at_least=1
    )
    controlled_shutdown_retry_backoff_ms: int = setting(5_000, "The time between attempts at a controlled shutdown.")
    log_dirs: str | None = setting(
        None, "The directories of the logs on several disks, separated by commas; overrides log.dir."
    )

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories of the logs: `log.dirs` or, if that is not set, `log.dir`."""
        if self.log_dirs is None:
            return (self.log_dir,)
        names = [name.strip() for name in self.log_dirs.split(",")]
        return tuple(dict.fromkeys(Path(name) for name in names if name))
