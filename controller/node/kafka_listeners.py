"""The addresses at which a controller listens for brokers of Apache Kafka, and those that it tells them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from controller.config import ControllerConfig
from transport.kafka.listeners import parse_listeners, protocol_of
from transport.metadata import Listener
from transport.settings import InvalidSetting


@frozen
class KafkaListeners:
    """The listeners of a controller that is a node of a cluster of Apache Kafka's."""

    bound: tuple[Listener, ...]
    """The addresses to listen on; the port 0 stands for any free one."""

    advertised: tuple[Listener, ...]
    """The addresses that brokers are told; the port 0 stands for the actual one of the listener of the same name."""

    def announced(self, ports: Mapping[str, int]) -> tuple[Listener, ...]:
        """Return the addresses that brokers are told, given the actual ports by the names of listeners."""
        return tuple(evolve(at, port=at.port or ports[at.name]) for at in self.advertised)


def kafka_listeners(config: ControllerConfig) -> KafkaListeners | None:
    """Return the listeners for brokers of Kafka's, None if the brokers are ours. Raises InvalidSetting."""
    if not config.kafka:
        return None
    # Brokers send most requests to the listener for orders, and a controlled shutdown to the one among themselves.
    names = list(dict.fromkeys([config.inter_broker_listener_name.upper(), config.orders_listener_name]))
    bound = tuple(Listener(name, config.host, 0, protocol_of(name)) for name in names)
    if config.listeners is not None:
        bound = parse_listeners("listeners", config.listeners)
    _require(names, "listeners", bound)
    if config.advertised_listeners is None:
        return KafkaListeners(bound, tuple(_told(config, listener) for listener in bound))
    told = parse_listeners("advertised.listeners", config.advertised_listeners)
    _require(names, "advertised.listeners", told)
    if any(listener.port == 0 for listener in told):
        raise InvalidSetting("advertised.listeners must not have the port 0: name those that brokers connect to")
    others = evolve(config, advertised_host=None)
    return KafkaListeners(bound, tuple(_told(others, listener) for listener in told))


def _require(names: list[str], setting: str, listeners: tuple[Listener, ...]) -> None:
    missing = [name for name in names if name not in {listener.name for listener in listeners}]
    if missing:
        raise InvalidSetting(f"{setting} must have a listener named {missing[0]}, as the brokers have")


def _told(config: ControllerConfig, listener: Listener) -> Listener:
    """Return a listener with the host that others can use. Raises InvalidSetting if there is none."""
    host, _ = config.advertised(listener.host, listener.port)
    return evolve(listener, host=host)
