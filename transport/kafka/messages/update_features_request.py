"""UpdateFeaturesRequest in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, INT16, INT32, STRING, At, Entity, Message, parse_versions


class FeatureUpdateKey(Entity, frozen=True):
    feature: Annotated[str, STRING, At("0+")] = ""
    max_version_level: Annotated[int, INT16, At("0+")] = 0
    allow_downgrade: Annotated[bool, BOOL, At("0")] = False
    upgrade_type: Annotated[int, INT8, At("1+")] = 1


class UpdateFeaturesRequest(Message, frozen=True):
    api_key = 57
    versions = parse_versions("0-2")
    flexible = parse_versions("0+")

    timeout_ms: Annotated[int, INT32, At("0+")] = 60000
    feature_updates: Annotated[tuple[FeatureUpdateKey, ...], At("0+")] = ()
    validate_only: Annotated[bool, BOOL, At("1+")] = False
