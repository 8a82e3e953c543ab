"""Listeners as Kafka's settings name them, such as `INTERNAL://10.0.0.5:9092,EXTERNAL://kafka.example:9093`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from transport.metadata import MAX_PORT, Listener, SecurityProtocol, number_in
from transport.settings import InvalidSetting

_LISTENER: Final = re.compile(r"(?P<name>[\w.-]+)://(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\s\[\]]+):(?P<port>[0-9]+)")


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
