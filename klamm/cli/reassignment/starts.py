"""The start of a plan: the replicas that its partitions had when it was made, which each entry may name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from klamm.cli.reassignment.files import Targets
from transport.messages import PartitionState
from transport.metadata import TopicPartition

_NAMED: Final = 3
"""The number of partitions that a refusal names."""


def faults_of(
    states: Mapping[TopicPartition, PartitionState], targets: Targets, starts: Targets
) -> dict[TopicPartition, str]:
    """Describe the partitions that are neither as they were when planned nor on their way to their targets.

    A moving partition counts with its target replicas, as it does in planning.
    """
    found = {}
    for tp, start in starts.items():
        state = states[tp]
        goes_to = tuple(r for r in state.replicas if r not in state.removing_replicas)
        if goes_to not in (start, targets[tp]):
            moves = state.adding_replicas or state.removing_replicas
            found[tp] = f"{'is being moved to' if moves else 'has replicas'} {list(goes_to)}, not {list(start)}"
    return found


def refusal(faults: Mapping[TopicPartition, str]) -> str:
    """Return one line that names changed partitions and says what to do."""
    names = list(map(str, faults))
    shown, left = names[:_NAMED], len(names) - _NAMED
    if left > 0:
        listed = f"{', '.join(shown)} and {left:,} more partition{'' if left == 1 else 's'}"
    else:
        listed = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    are, they = ("is", "it was") if len(names) == 1 else ("are", "they were")
    first, fault = next(iter(faults.items()))
    return (
        f"{listed} {are} not as {they} when this was planned ({first} {fault}): plan again, or begin with what is "
        "there by --force"
    )
