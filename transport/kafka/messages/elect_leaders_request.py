"""ElectLeadersRequest in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, INT32, STRING, At, Entity, Message, parse_versions


class TopicPartitions(Entity, frozen=True):
    topic: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[int, ...], INT32, At("0+")] = ()


class ElectLeadersRequest(Message, frozen=True):
    api_key = 43
    versions = parse_versions("0-2")
    flexible = parse_versions("2+")

    election_type: Annotated[int, INT8, At("1+")] = 0
    topic_partitions: Annotated[tuple[TopicPartitions, ...] | None, At("0+", nullable="0+")] = ()
    timeout_ms: Annotated[int, INT32, At("0+")] = 60000
