"""The registrations of Kafka's brokers in `/brokers/ids/N`, versions 1 to 5, and that of our controller among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from transport import addresses
from transport.addresses import address_text
from transport.metadata import BrokerRegistration, Listener, SecurityProtocol, number_in
from transport.store import fields, formats, paths
from transport.store.fields import UndecodableZnode

_PLAIN: Final = "PLAINTEXT"
_WRITER: Final = "writer"
_CONTROLLER: Final = "klamm"


def encode_controller(listeners: Sequence[Listener]) -> bytes:
    """Encode the registration of a controller of ours, which brokers up to 2.8 look for: version 5, and its writer.

    Kafka ignores the writer, as any unknown key, and does not read the timestamp, which is left out.
    """
    plain = next((at for at in listeners if at.protocol is SecurityProtocol.PLAINTEXT), None)
    value = {
        "version": 5,
        "host": None if plain is None else plain.host,
        "port": -1 if plain is None else plain.port,
        "endpoints": [f"{at.name}://{address_text(at.host, at.port)}" for at in listeners],
        "listener_security_protocol_map": {at.name: at.protocol.name for at in listeners},
        "features": {},
        "jmx_port": -1,
        _WRITER: _CONTROLLER,
    }
    return orjson.dumps(value)


def is_controllers(broker_id: int, data: bytes) -> bool:
    """Return whether a registration is that of a controller of ours, which is no broker."""
    try:
        return bool(fields.load(paths.broker(broker_id), data).get(_WRITER) == _CONTROLLER)
    except UndecodableZnode:
        return False


def decode_registration(broker_id: int, data: bytes, czxid: int, listener: str) -> BrokerRegistration:
    """Return the registration of a broker of Kafka's, whose controller uses the listener of this name.

    The broker epoch is the znode's `czxid`. Raises UndecodableZnode if the broker has no such listener, or if it is one
    of ours.
    """
    path = paths.broker(broker_id)
    value = fields.load(path, data)
    listeners = tuple(_listeners(path, value))
    if any(one.name == formats.LISTENER for one in listeners):
        raise UndecodableZnode(path, "this is a broker of Klamm's, and the cluster is one of Apache Kafka's")
    ours = next((one for one in listeners if one.name == listener), None)
    if ours is None:
        names = ", ".join(one.name for one in listeners) or "none"
        raise UndecodableZnode(path, f"no listener named {listener}: set inter.broker.listener.name to one of {names}")
    rack = fields.optional_text(path, value.get("rack"), "rack")
    return BrokerRegistration(broker_id, ours.host, ours.port, czxid, rack, listeners=listeners)


def found_listeners(broker_id: int, data: bytes) -> tuple[str | None, tuple[Listener, ...]]:
    """Return the rack and the listeners in a registration of a broker of Kafka's, as far as it can be decoded.

    None and () for one that is damaged, or one of Klamm's.
    """
    path = paths.broker(broker_id)
    try:
        value = fields.load(path, data)
        listeners = tuple(_listeners(path, value))
        rack = fields.optional_text(path, value.get("rack"), "rack")
    except UndecodableZnode:
        return None, ()
    return (None, ()) if any(one.name == formats.LISTENER for one in listeners) else (rack, listeners)


def decode_any_registration(broker_id: int, data: bytes, czxid: int) -> BrokerRegistration:
    """Return the registration of a broker of either kind; of one of Kafka's with the address of its first listener.

    Raises UndecodableZnode.
    """
    if not formats.is_foreign(broker_id, data):
        return formats.decode_broker(broker_id, data, czxid)
    path = paths.broker(broker_id)
    first = next(_listeners(path, fields.load(path, data)), None)
    if first is None:
        raise UndecodableZnode(path, "no listener")
    return decode_registration(broker_id, data, czxid, first.name)


def _listeners(path: str, value: Mapping[str, Any]) -> Iterator[Listener]:
    endpoints = value.get("endpoints")
    # Versions 1 and 2 have a single address.
    if endpoints is None and isinstance(value.get("host"), str):
        yield Listener(_PLAIN, fields.host(path, value["host"]), fields.port(path, value.get("port")))
        return
    if not isinstance(endpoints, list):
        raise UndecodableZnode(path, f"endpoints must be a list, is {fields.shown(endpoints)}")
    protocols = fields.mapping(path, value.get("listener_security_protocol_map") or {}, "the protocols of listeners")
    for endpoint in endpoints:
        name, _, address = str(endpoint).partition("://")
        host, port = addresses.split(address)
        number = number_in(port)
        if number is None:
            raise UndecodableZnode(path, f"a listener must be NAME://host:port, is {fields.shown(endpoint)}")
        # Before version 4 a listener had the name of its protocol.
        protocol = _protocol(path, protocols.get(name, name))
        yield Listener(name, fields.host(path, host), fields.port(path, number), protocol)


def _protocol(path: str, name: object) -> SecurityProtocol:
    try:
        return SecurityProtocol[str(name)]
    except KeyError:
        # Listeners of our own wire are named KLAMM, and have Kafka's protocols.
        if name == formats.LISTENER:
            return SecurityProtocol.PLAINTEXT
        known = ", ".join(SecurityProtocol.__members__)
        raise UndecodableZnode(path, f"a listener's protocol must be one of {known}, is {fields.shown(name)}") from None
