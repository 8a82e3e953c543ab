"""The registration of a broker of Kafka's."""

from __future__ import annotations

from typing import Any

import orjson

from broker.registration import Registration
from simulator.kafka.orders import LISTENER
from transport.kafka.registration import decode_registration
from transport.metadata import BrokerRegistration


class KafkaRegistration(Registration):
    """Registers a broker as Kafka's brokers do: version 5, with one listener and no storage id."""

    def encode(self, registration: BrokerRegistration, now_ms: int) -> bytes:
        """Return the contents of the znode."""
        value: dict[str, Any] = {
            "features": {},
            "listener_security_protocol_map": {LISTENER: "PLAINTEXT"},
            "endpoints": [f"{LISTENER}://{registration.host}:{registration.port}"],
            "jmx_port": -1,
            "port": -1,
            "host": None,
            "version": 5,
            "timestamp": str(now_ms),
        }
        if registration.rack is not None:
            value["rack"] = registration.rack
        return orjson.dumps(value)

    def decode(self, data: bytes, czxid: int) -> BrokerRegistration:
        """Return the registration in the contents of a znode. Raises UndecodableZnode."""
        return decode_registered(self.broker_id, data, czxid)


def decode_registered(broker_id: int, data: bytes, czxid: int) -> BrokerRegistration:
    """Return a registration as controllers with `--kafka` read it. Raises UndecodableZnode."""
    return decode_registration(broker_id, data, czxid, LISTENER)
