"""min.insync.replicas of topics, among their described settings."""

from __future__ import annotations

from collections.abc import Iterable

from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.errors import ErrorCode
from transport.messages import ResourceConfigs


def least_isrs_in(told: Iterable[ResourceConfigs]) -> dict[str, int]:
    """Return min.insync.replicas of each topic; those whose settings could not be read are missing."""
    return {
        one.resource.name: int(entry.value)
        for one in told
        if one.error is ErrorCode.NONE
        for entry in one.entries
        if entry.name == MIN_INSYNC_REPLICAS
    }
