"""New partitions: of topics that are created, of topics that grow, and of those that others have written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Final

from simulator.model.elections import Rows
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


def taken_over(row: Row, view: View) -> Rows:
    """Keep a partition as it is: only its topic gets an id. One that was never led leaves the controllers."""
    yield row
    if row.leadership is None and not row.is_moving:
        for replicas in _without_controllers(row.replicas, view):
            yield row.assigned(ReplicaAssignment(replicas))


def _without_controllers(replicas: tuple[int, ...], view: View) -> Iterator[tuple[int, ...]]:
    """Yield replicas with a live broker in the place of each controller, or without it if no broker is left."""
    taken = [r for r in replicas if r not in view.controllers]
    free = [b for b in view.standings if view.may_be_assigned(b) and b not in taken]
    held = len(replicas) - len(taken)
    for count in range(held + 1):
        for chosen in permutations(free, count):
            for places in combinations([n for n, r in enumerate(replicas) if r in view.controllers], count):
                put = dict(zip(places, chosen, strict=True))
                row = [put.get(n, r) for n, r in enumerate(replicas) if n in put or r not in view.controllers]
                if row:
                    yield tuple(row)
