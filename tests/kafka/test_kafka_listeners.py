"""The addresses at which a controller listens for brokers of Kafka's, and those that it tells them."""

from __future__ import annotations

from typing import Any

import pytest

from controller.config import ControllerConfig
from controller.node.kafka_listeners import kafka_listeners
from transport.metadata import Listener, SecurityProtocol
from transport.settings import InvalidSetting


def listeners(**settings: Any) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    """Return the bound and the announced listeners; a free port is 999."""
    found = kafka_listeners(ControllerConfig(1001, kafka=True, **settings))
    assert found is not None
    return found.bound, found.announced({listener.name: listener.port or 999 for listener in found.bound})


def test_a_controller_of_our_brokers_has_none() -> None:
    assert kafka_listeners(ControllerConfig(1001, listeners="nonsense")) is None


def test_unset_there_is_one_for_each_name_at_a_free_port_of_the_host() -> None:
    assert listeners(host="::1") == ((Listener("PLAINTEXT", "::1", 0),), (Listener("PLAINTEXT", "::1", 999),))
    names = {"inter_broker_listener_name": "internal", "control_plane_listener_name": "control"}
    _, told = listeners(host="0.0.0.0", advertised_host="c.example", advertised_port=7, **names)  # noqa: S104
    assert told == (Listener("INTERNAL", "c.example", 999), Listener("CONTROL", "c.example", 999))


def test_listeners_are_named_after_their_protocols_or_freely() -> None:
    bound, told = listeners(listeners="ssl://[::1]:9093, PLAINTEXT://h:0", inter_broker_listener_name="SSL")
    assert bound == (Listener("SSL", "::1", 9093, SecurityProtocol.SSL), Listener("PLAINTEXT", "h", 0))
    assert told == (bound[0], Listener("PLAINTEXT", "h", 999))


def test_other_addresses_are_told_than_listened_on() -> None:
    bound, told = listeners(listeners="PLAINTEXT://0.0.0.0:9092", advertised_listeners="PLAINTEXT://c.example:19092")
    assert bound == (Listener("PLAINTEXT", "0.0.0.0", 9092),)  # noqa: S104
    assert told == (Listener("PLAINTEXT", "c.example", 19092),)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"listeners": "PLAINTEXT://h"}, "listeners must be NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://h:70000"}, "listeners must be NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://:1"}, "listeners must be NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://h:1,plaintext://h:2"}, "listeners must name each listener once"),
        ({"listeners": "INTERNAL://h:1"}, "listeners must have a listener named PLAINTEXT"),
        ({"advertised_listeners": "INTERNAL://h:1"}, "advertised.listeners must have a listener named PLAINTEXT"),
        ({"control_plane_listener_name": "C", "listeners": "PLAINTEXT://h:1"}, "a listener named C"),
        ({"listeners": "PLAINTEXT://0.0.0.0:1"}, "wildcard"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "wildcard"),
        ({"advertised_listeners": "PLAINTEXT://h:1,X://h:0"}, "advertised.listeners must not have the port 0"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidSetting, match=fault):
        listeners(**settings)
