"""Listeners as Kafka's settings name them, such as `INTERNAL://10.0.0.5:9092,EXTERNAL://kafka.example:9093`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import frozen

from transport.metadata import MAX_PORT, Listener, SecurityProtocol, number_in
from transport.settings import InvalidSetting

INTER_BROKER_LISTENER: Final = "inter.broker.listener.name"
INTER_BROKER_PROTOCOL: Final = "security.inter.broker.protocol"
CONTROL_PLANE_LISTENER: Final = "control.plane.listener.name"
LISTENERS: Final = "listeners"
OF_LISTENERS: Final = (INTER_BROKER_LISTENER, INTER_BROKER_PROTOCOL, CONTROL_PLANE_LISTENER, LISTENERS)
"""The settings of a broker that say what its listeners are for."""

_LISTENER: Final = re.compile(
    r"(?P<name>[\w.-]+)://(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^:/\s\[\]]+):(?P<port>[0-9]+)"
)


@frozen
class BrokerListeners:
    """The settings of a broker of Kafka's that say what its listeners are for. Names are in upper case."""

    inter_broker: str
    """The listener that brokers use among themselves, and at which they look for the controller."""

    control_plane: str | None
    """The listener for the controller's orders, if there is one of its own."""

    names: tuple[str, ...]
    """All listeners, in the order of the setting."""


def broker_listeners(settings: Mapping[str, str | None]) -> BrokerListeners | None:
    """Return what a broker's settings say; None if it does not tell them all."""
    inter_broker = settings.get(INTER_BROKER_LISTENER) or settings.get(INTER_BROKER_PROTOCOL)
    if inter_broker is None or LISTENERS not in settings or CONTROL_PLANE_LISTENER not in settings:
        return None
    control_plane = settings[CONTROL_PLANE_LISTENER]
    # Up to 2.8, a broker may have a host and a port in place of listeners.
    listeners = settings[LISTENERS] or f"{inter_broker}://"
    names = tuple(each.strip().partition("://")[0].upper() for each in listeners.split(","))
    return BrokerListeners(inter_broker.upper(), control_plane.upper() if control_plane else None, names)


def parse_listeners(setting: str, text: str) -> tuple[Listener, ...]:
    """Return the listeners in the value of a setting. Raises InvalidSetting.

    A listener has the protocol that it is named after, and else PLAINTEXT.
    """
    found = tuple(_listeners(setting, text))
    if len({listener.name for listener in found}) < len(found):
        raise InvalidSetting(f"{setting} must name each listener once, is {text!r:.200}")
    return found


def _listeners(setting: str, text: str) -> Iterator[Listener]:
    for each in text.split(","):
        parts = _LISTENER.fullmatch(each.strip())
        port = None if parts is None else number_in(parts["port"])
        if parts is None or port is None or port > MAX_PORT:
            raise InvalidSetting(f"{setting} must be NAME://HOST:PORT,NAME://HOST:PORT,..., is {text!r:.200}")
        yield Listener(parts["name"].upper(), parts["host"].strip("[]"), port, protocol_of(parts["name"]))


def protocol_of(name: str) -> SecurityProtocol:
    """Return the protocol of a listener of this name."""
    return SecurityProtocol.__members__.get(name.upper(), SecurityProtocol.PLAINTEXT)
