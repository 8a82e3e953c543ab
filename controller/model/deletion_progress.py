"""The progress of the deletion of topics, as the states of their replicas show it."""

from __future__ import annotations

from attrs import frozen

from controller.model.context import ControllerContext
from controller.model.state_machines import ReplicaPhase


def is_done(context: ControllerContext, name: str) -> bool:
    """Return whether all replicas of a topic have been deleted."""
    return context.replica_phases.are_all(context.partitions([name]), ReplicaPhase.DELETION_SUCCESSFUL)


@frozen
class Pending:
    """The replicas that may still have data, those of them that deletions wait for, and the topics of the latter.

    Deletions wait for replicas whose broker is not alive or failed to delete them.
    """

    replicas: int = 0
    ineligible: int = 0
    waiting_topics: int = 0


def pending(context: ControllerContext) -> Pending:
    """Return the counts of what is still to be deleted."""
    replicas = ineligible = waiting_topics = 0
    phases_of = context.replica_phases.of
    for name in context.deletions:
        of_topic = ineligible
        for phases in map(phases_of, context.partitions([name])):
            replicas += len(phases) - phases.count(ReplicaPhase.DELETION_SUCCESSFUL)
            ineligible += phases.count(ReplicaPhase.DELETION_INELIGIBLE)
        waiting_topics += ineligible > of_topic
    return Pending(replicas, ineligible, waiting_topics)
