"""New partitions: of topics that are created, and of topics that grow."""

from __future__ import annotations

from typing import Final

from simulator.model.row import Row
from simulator.model.view import View
from transport.metadata import ReplicaAssignment

_CREATORS: Final = {"topics": "CreateTopics", "grow": "CreatePartitions"}
"""The rounds that add partitions, each with its only event."""


def is_addition(name: str, new: Row, first: Row, view: View) -> bool:
    """Return whether a round may add a partition to a topic whose first partition is `first`."""
    replicas = new.assignment.replicas
    is_plain = new == Row(ReplicaAssignment(replicas)) and len(set(replicas)) == len(replicas) > 0
    is_live = all(view.may_be_assigned(r) for r in replicas)
    has_factor = len(replicas) == len(first.replicas)
    return _CREATORS.get(name) == view.event and is_plain and is_live and has_factor
