"""Registrations of Kafka's brokers, as releases from 0.8 to 3.9 write them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from transport.kafka.registration import decode_registration
from transport.metadata import BrokerRegistration, Listener, SecurityProtocol
from transport.store.fields import UndecodableZnode

CZXID = 77
V5: dict[str, Any] = {
    "features": {},
    "listener_security_protocol_map": {"INTERNAL": "SASL_SSL", "EXTERNAL": "SSL"},
    "endpoints": ["INTERNAL://one:9092", "EXTERNAL://[2001:db8::1]:9093"],
    "jmx_port": -1,
    "port": -1,
    "host": None,
    "version": 5,
    "timestamp": "1700000000000",
    "rack": "a",
}
LISTENERS = (
    Listener("INTERNAL", "one", 9092, SecurityProtocol.SASL_SSL),
    Listener("EXTERNAL", "2001:db8::1", 9093, SecurityProtocol.SSL),
)


def decode(value: dict[str, Any], listener: str = "INTERNAL") -> BrokerRegistration:
    return decode_registration(3, orjson.dumps(value), CZXID, listener)


def test_all_listeners_are_kept_and_the_named_one_is_the_controllers() -> None:
    assert decode(V5) == BrokerRegistration(3, "one", 9092, CZXID, "a", listeners=LISTENERS)
    assert decode(V5, "EXTERNAL").port == 9093
    assert decode(V5).is_kafkas


@pytest.mark.parametrize(
    "value",
    [
        {"version": 1, "host": "one", "port": 9092, "jmx_port": -1, "timestamp": "1"},
        {"version": 3, "host": "one", "port": 9092, "endpoints": ["PLAINTEXT://one:9092"], "timestamp": "1"},
    ],
)
def test_old_versions_have_listeners_named_after_their_protocols(value: dict[str, Any]) -> None:
    expected = BrokerRegistration(3, "one", 9092, CZXID, listeners=(Listener("PLAINTEXT", "one", 9092),))
    assert decode(value, "PLAINTEXT") == expected


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (V5 | {"endpoints": ["KLAMM://one:1"]}, "a broker of Klamm's"),
        (V5 | {"endpoints": ["EXTERNAL://one:1"]}, "no listener named INTERNAL: set .* to one of EXTERNAL"),
        (V5 | {"endpoints": []}, "no listener named INTERNAL: set .* to one of none"),
        (V5 | {"endpoints": 5}, "endpoints must be a list"),
        (V5 | {"endpoints": ["INTERNAL://one"]}, "NAME://host:port"),
        (V5 | {"endpoints": ["INTERNAL://:9092"]}, "host must be"),
        (V5 | {"endpoints": ["INTERNAL://one:0"]}, "port"),
        (V5 | {"listener_security_protocol_map": {"INTERNAL": "CARRIER_PIGEON"}}, "one of PLAINTEXT, SSL"),
        (V5 | {"listener_security_protocol_map": []}, "the protocols of listeners|no listener|one of PLAINTEXT"),
        (V5 | {"rack": 5}, "rack"),
    ],
)
def test_a_registration_that_cannot_be_used_says_why(value: dict[str, Any], fault: str) -> None:
    with pytest.raises(UndecodableZnode, match=fault) as refusal:
        decode(value)
    assert "/brokers/ids/3" in str(refusal.value)
