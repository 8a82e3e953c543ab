"""ApiVersionsResponse in versions 0-5."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT16, INT32, INT64, STRING, At, Entity, Message, parse_versions


class ApiVersion(Entity, frozen=True):
    api_key: Annotated[int, INT16, At("0+")] = 0
    min_version: Annotated[int, INT16, At("0+")] = 0
    max_version: Annotated[int, INT16, At("0+")] = 0


class SupportedFeatureKey(Entity, frozen=True):
    name: Annotated[str, STRING, At("3+")] = ""
    min_version: Annotated[int, INT16, At("3+")] = 0
    max_version: Annotated[int, INT16, At("3+")] = 0


class FinalizedFeatureKey(Entity, frozen=True):
    name: Annotated[str, STRING, At("3+")] = ""
    max_version_level: Annotated[int, INT16, At("3+")] = 0
    min_version_level: Annotated[int, INT16, At("3+")] = 0


class ApiVersionsResponse(Message, frozen=True):
    api_key = 18
    versions = parse_versions("0-5")
    flexible = parse_versions("3+")

    error_code: Annotated[int, INT16, At("0+")] = 0
    api_keys: Annotated[tuple[ApiVersion, ...], At("0+")] = ()
    throttle_time_ms: Annotated[int, INT32, At("1+", ignorable=True)] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], At("3+", tag=0, tagged="3+", ignorable=True)] = ()
    finalized_features_epoch: Annotated[int, INT64, At("3+", tag=1, tagged="3+", ignorable=True)] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], At("3+", tag=2, tagged="3+", ignorable=True)] = ()
    zk_migration_ready: Annotated[bool, BOOL, At("3+", tag=3, tagged="3+", ignorable=True)] = False
