"""The cluster as the active controller knows it, for whoever asks."""

from __future__ import annotations

from collections.abc import Sequence

from controller.context import ControllerContext
from transport.messages import MetadataResponse


def describe_cluster(context: ControllerContext, names: Sequence[str] | None) -> MetadataResponse:
    """Return the live brokers and the partitions of all topics, or of those named that exist."""
    wanted = context.topics if names is None else set(names)
    partitions = [context.describe(tp) for tp in context.leadership if tp.topic in wanted]
    partitions += context.describe_deletions(name for name in context.deletions if name in wanted)
    return MetadataResponse(context.controller, context.epoch, context.live_brokers(), tuple(partitions))
