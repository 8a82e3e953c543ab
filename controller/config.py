"""The configuration of a controller."""

from __future__ import annotations

from attrs import frozen

from transport.kafka.releases import PROTOCOL, Protocol, parse_protocol
from transport.service_settings import ServiceSettings
from transport.settings import InvalidSetting, setting
from transport.store.limits import DEFAULT_MAX_BUFFER, LEAST_MAX_BUFFER, RequestLimits


@frozen
class ControllerConfig(ServiceSettings):
    """The settings of one controller. Times are in milliseconds; names are Kafka's for settings that Kafka has."""

    controller_id: int = setting(doc="The id of the controller, different from every broker's.")
    host: str = setting("127.0.0.1", "The address to listen on, advertised to others unless advertised.host is set.")
    port: int = setting(0, "The port to listen on; 0 for any free port.", at_most=65_535)
    zookeeper_connect: str = setting("127.0.0.1:2181", "The metadata store, HOST:PORT,HOST:PORT/CHROOT.")
    zookeeper_session_timeout_ms: int = setting(
        18_000, "The time after which ZooKeeper expires the session of a silent process.", at_least=1
    )
    jute_maxbuffer: int = setting(
        DEFAULT_MAX_BUFFER,
        "The size in bytes of the largest request that ZooKeeper's servers accept; set it as there.",
        at_least=LEAST_MAX_BUFFER,
    )
    request_timeout_ms: int = setting(30_000, "The timeout of a request to a broker.", at_least=1)
    controller_socket_timeout_ms: int = setting(30_000, "The timeout of connecting to a broker.", at_least=1)
    delete_topic_enable: bool = setting(default=True, doc="Whether topics can be deleted.")
    auto_leader_rebalance_enable: bool = setting(
        default=True, doc="Whether leadership returns to the preferred leaders from time to time."
    )
    leader_imbalance_per_broker_percentage: int = setting(
        10, "The percentage of a broker's preferred partitions that other brokers may lead.", at_most=100
    )
    leader_imbalance_check_interval_seconds: int = setting(
        300, "The interval between checks for imbalanced leadership.", at_least=1
    )
    unclean_leader_election_enable: bool = setting(
        default=False, doc="Whether a replica outside the ISR may lead; overridden by topics and the brokers' default."
    )
    min_insync_replicas: int = setting(
        1, "The minimum size of the ISR for acks=all; set it as on our brokers. Kafka's tell theirs.", at_least=1
    )
    state_change_log: str | None = setting(
        None, "A file that gets a line with the cause for each change of a partition or replica."
    )
    metrics_host: str = setting(
        "127.0.0.1", "The address that serves a page for browsers, /metrics, /healthz and /readyz."
    )
    metrics_port: int | None = setting(
        None, "The port of these pages, 0 for any free port; unset, they are not served.", at_most=65_535
    )
    kafka: bool = setting(default=False, doc="Whether this controller governs Apache Kafka's brokers instead of ours.")
    inter_broker_listener_name: str = setting("PLAINTEXT", "The listener that Kafka's brokers use among themselves.")
    control_plane_listener_name: str | None = setting(
        None, "The listener of Kafka's brokers for their controller, if they have one of its own."
    )
    inter_broker_protocol_version: str | None = setting(
        None, "The value on Kafka's brokers, where they do not let the controller read it."
    )
    listeners: str | None = setting(
        None, "Where to listen for Kafka's brokers, NAME://HOST:PORT,...; unset, on any free port of host."
    )
    advertised_listeners: str | None = setting(None, "The addresses to tell Kafka's brokers instead of listeners.")

    @property
    def orders_listener_name(self) -> str:
        """The name of the listener of Kafka's brokers to which the controller sends its orders."""
        return (self.control_plane_listener_name or self.inter_broker_listener_name).upper()

    @property
    def protocol(self) -> Protocol | None:
        """The inter.broker.protocol.version of Kafka's brokers; None if it is not set, or not to a version."""
        text = self.inter_broker_protocol_version
        return None if text is None else parse_protocol(text)

    def check_protocol(self) -> None:
        """Raise InvalidSetting if inter.broker.protocol.version is set, and not to a version."""
        text = self.inter_broker_protocol_version
        if text is not None and self.protocol is None:
            raise InvalidSetting(f"{PROTOCOL} must be a version such as 2.8 or 2.7-IV1, is {text!r:.200}")

    @property
    def request_limits(self) -> RequestLimits:
        """The limits of what the controller writes to ZooKeeper."""
        return RequestLimits(self.jute_maxbuffer)
