"""ElectLeadersResponse in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class PartitionResult(Entity, frozen=True):
    partition_id: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class ReplicaElectionResult(Entity, frozen=True):
    topic: Annotated[str, STRING, At("0+")] = ""
    partition_result: Annotated[tuple[PartitionResult, ...], At("0+")] = ()


class ElectLeadersResponse(Message, frozen=True):
    api_key = 43
    versions = parse_versions("0-2")
    flexible = parse_versions("2+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("1+")] = 0
    replica_election_results: Annotated[tuple[ReplicaElectionResult, ...], At("0+")] = ()
