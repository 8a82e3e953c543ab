"""UnregisterBrokerRequest in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, At, Message, parse_versions


class UnregisterBrokerRequest(Message, frozen=True):
    api_key = 64
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    broker_id: Annotated[int, INT32, At("0+")] = 0
