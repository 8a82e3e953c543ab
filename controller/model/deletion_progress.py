"""The progress of the deletion of topics, as the states of their replicas show it."""

from __future__ import annotations

from collections.abc import Iterator

from controller.model.context import ControllerContext
from controller.model.facts import Replica
from controller.model.state_machines import ReplicaPhase


def is_done(context: ControllerContext, name: str) -> bool:
    """Return whether all replicas of a topic have been deleted."""
    return context.replica_phases.are_all(context.partitions([name]), ReplicaPhase.DELETION_SUCCESSFUL)


def left(context: ControllerContext) -> list[Replica]:
    """Return the replicas of topics being deleted that may still have data."""
    return [replica for replica, phase in _replicas(context) if phase is not ReplicaPhase.DELETION_SUCCESSFUL]


def ineligible(context: ControllerContext) -> list[Replica]:
    """Return the replicas that deletions wait for: their broker is not alive or failed to delete them."""
    return [replica for replica, phase in _replicas(context) if phase is ReplicaPhase.DELETION_INELIGIBLE]


def _replicas(context: ControllerContext) -> Iterator[tuple[Replica, ReplicaPhase | None]]:
    for tp in context.partitions(context.deletions):
        states = zip(context.assignment(tp).replicas, context.replica_phases.of(tp), strict=True)
        yield from (((tp, broker_id), phase) for broker_id, phase in states)
