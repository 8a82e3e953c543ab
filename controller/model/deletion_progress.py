"""The progress of a topic's deletion."""

from __future__ import annotations

from attrs import define, field

from controller.model.facts import Replica
from controller.model.state_machines import ReplicaPhase


@define
class Deletion:
    """The progress of a topic's deletion: `left` are the replicas that may still have data.

    `ineligible` are those of them whose broker is not alive or failed to delete them: the deletion waits for these.
    """

    left: dict[Replica, None]
    ineligible: dict[Replica, None] = field(factory=dict)

    def note(self, replica: Replica, phase: ReplicaPhase) -> None:
        """Take the state that a replica of the topic enters."""
        if phase is ReplicaPhase.DELETION_SUCCESSFUL:
            self.left.pop(replica, None)
        if phase is ReplicaPhase.DELETION_INELIGIBLE:
            self.ineligible[replica] = None
        else:
            self.ineligible.pop(replica, None)
