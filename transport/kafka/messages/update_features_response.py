"""UpdateFeaturesResponse in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class UpdatableFeatureResult(Entity, frozen=True):
    feature: Annotated[str, STRING, At("0+")] = ""
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class UpdateFeaturesResponse(Message, frozen=True):
    api_key = 57
    versions = parse_versions("0-2")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    results: Annotated[tuple[UpdatableFeatureResult, ...], At("0-1", ignorable=True)] = ()
