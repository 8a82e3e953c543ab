"""AllocateProducerIdsRequest in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, INT64, At, Message, parse_versions


class AllocateProducerIdsRequest(Message, frozen=True):
    api_key = 67
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    broker_id: Annotated[int, INT32, At("0+")] = 0
    broker_epoch: Annotated[int, INT64, At("0+")] = -1
