"""How a controller is configured."""

from __future__ import annotations

from attrs import frozen


@frozen
class ControllerConfig:
    """What one controller needs to know. Times are in milliseconds; names are Kafka's where Kafka has the setting.

    `controller_id` must differ from every broker's id. `port` 0 takes any free one.
    """

    controller_id: int
    host: str = "127.0.0.1"
    port: int = 0
    zookeeper_connect: str = "127.0.0.1:2181"
    zookeeper_session_timeout_ms: int = 18_000
    request_timeout_ms: int = 30_000
    controller_socket_timeout_ms: int = 30_000
    unclean_leader_election_enable: bool = False
    """Whether a replica outside the ISR may lead where neither the topic nor the brokers' default says so."""
    state_change_log: str | None = None
    """A file that gets a line for each partition and replica that changes, with its cause."""
