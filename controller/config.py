"""How a controller is configured."""

from __future__ import annotations

from attrs import frozen

from transport.service_settings import ServiceSettings
from transport.settings import setting


@frozen
class ControllerConfig(ServiceSettings):
    """What one controller needs to know. Times are in milliseconds; names are Kafka's where Kafka has the setting."""

    controller_id: int = setting(doc="The id of the controller, unlike every broker's.")
    host: str = setting("127.0.0.1", "Where it listens, and what it tells others if advertised.host does not.")
    port: int = setting(0, "The port that it listens on; 0 takes any free one.", at_most=65_535)
    zookeeper_connect: str = setting("127.0.0.1:2181", "The metadata store, HOST:PORT,HOST:PORT/CHROOT.")
    zookeeper_session_timeout_ms: int = setting(
        18_000, "How long ZooKeeper waits before it gives a silent process up.", at_least=1
    )
    request_timeout_ms: int = setting(30_000, "How long it waits for a broker's answer.", at_least=1)
    controller_socket_timeout_ms: int = setting(30_000, "How long it tries to connect to a broker.", at_least=1)
    delete_topic_enable: bool = setting(default=True, doc="Whether topics can be deleted.")
    auto_leader_rebalance_enable: bool = setting(
        default=True, doc="Whether leadership goes back to the preferred leaders from time to time."
    )
    leader_imbalance_per_broker_percentage: int = setting(
        10, "How many percent of the partitions that a broker should lead others may lead.", at_most=100
    )
    leader_imbalance_check_interval_seconds: int = setting(
        300, "How often the controller looks whether others lead too many.", at_least=1
    )
    unclean_leader_election_enable: bool = setting(
        default=False, doc="Whether a replica outside the ISR may lead; topics and the brokers' default outrank this."
    )
    min_insync_replicas: int = setting(
        1, "How many members the ISR must have for acks=all, as the brokers were told it.", at_least=1
    )
    state_change_log: str | None = setting(
        None, "A file that gets a line for each partition and replica that changes, with its cause."
    )
    metrics_host: str = setting("127.0.0.1", "Where /metrics, /healthz and /readyz are served.")
    metrics_port: int | None = setting(
        None, "The port that they are served on, 0 for any free one. Without it there are none.", at_most=65_535
    )
