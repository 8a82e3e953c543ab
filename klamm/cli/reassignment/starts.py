"""The replicas that partitions had when a plan was made, which each entry of its file may contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from klamm.cli.reassignment.files import Targets
from transport.messages import PartitionState
from transport.metadata import TopicPartition

_NAMED: Final = 3
"""The number of partitions that an error message names."""


def faults_of(
    states: Mapping[TopicPartition, PartitionState], targets: Targets, starts: Targets
) -> dict[TopicPartition, str]:
    """Describe the partitions that have changed since the plan was made and are not moving to their targets.

    A moving partition counts with its target replicas, as in planning.
    """
    found = {}
    for tp, start in starts.items():
        state = states[tp]
        goes_to = state.target_replicas
        if goes_to not in (start, targets[tp]):
            has = "is being moved to" if state.is_being_reassigned else "has replicas"
            found[tp] = f"{has} {list(goes_to)}, not {list(start)}"
    return found


def refusal(faults: Mapping[TopicPartition, str]) -> str:
    """Return a line that names the changed partitions and says what to do."""
    names = list(map(str, faults))
    shown, left = names[:_NAMED], len(names) - _NAMED
    if left > 0:
        listed = f"{', '.join(shown)} and {left:,} more partition{'' if left == 1 else 's'}"
    else:
        listed = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    have = "has" if len(names) == 1 else "have"
    first, fault = next(iter(faults.items()))
    return (
        f"{listed} {have} changed since the plan was made ({first} {fault}): plan again, or use --force to begin with "
        "the current replicas"
    )
