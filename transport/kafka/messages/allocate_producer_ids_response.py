"""AllocateProducerIdsResponse in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, INT64, At, Message, parse_versions


class AllocateProducerIdsResponse(Message, frozen=True):
    api_key = 67
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    producer_id_start: Annotated[int, INT64, At("0+")] = 0
    producer_id_len: Annotated[int, INT32, At("0+")] = 0
