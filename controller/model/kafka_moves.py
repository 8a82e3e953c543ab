"""The reassignments that Kafka's own controller refuses, in its order and its words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from controller.model.context import ControllerContext
from controller.model.reassignment import reassign_to
from transport.errors import ErrorCode
from transport.messages import PartitionError, ReassignablePartition

_LARGEST_PLAIN: Final = 4
"""The most members of a set that Scala writes as `Set(1, 2)` rather than `HashSet(1, 2)`."""


def move_refusal(context: ControllerContext, item: ReassignablePartition) -> PartitionError | None:
    """Return why replicas are refused whatever the partition is, or None."""
    if item.replicas is None:
        return None
    text = _replicas_fault(context, item, item.replicas)
    return None if text is None else PartitionError(*item.tp, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _replicas_fault(context: ControllerContext, item: ReassignablePartition, replicas: tuple[int, ...]) -> str | None:
    if not replicas:
        return "Empty replica list specified in partition reassignment."
    if len(set(replicas)) != len(replicas):
        return f"Duplicate replica ids in partition reassignment replica list: {buffer(replicas)}"
    if min(replicas) < 0:
        return f"Invalid broker id in replica list: {buffer(replicas)}"
    adding = reassign_to(context.assignment(item.tp), replicas).adding_replicas
    live = context.able_brokers()
    if set(adding) <= set(live):
        return None
    kind = "Set" if len(live) <= _LARGEST_PLAIN else "HashSet"
    shown = f"Replica list: {buffer(adding)}, live broker list: {kind}({joined(live)})"
    return f"Replica assignment has brokers that are not alive. {shown}"


def buffer(numbers: Iterable[int]) -> str:
    """Return numbers as Scala writes a list of them."""
    return f"ArrayBuffer({joined(numbers)})"


def joined(numbers: Iterable[int]) -> str:
    """Return numbers as Scala writes those of a list."""
    return ", ".join(map(str, numbers))
