"""The rule of each round: what it may do to the partition that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from simulator.model import elections, reassignments, topics
from simulator.model.elections import Rows
from simulator.model.row import Row
from simulator.model.view import View

Rule = Callable[[Row, View], Rows]


RULES: Final[Mapping[str, Rule]] = {
    "create": elections.first_leader,
    "elect": elections.election,
    "order": elections.order,
    "leave": elections.leave,
    "expel": elections.expel,
    "ISR": elections.alter,
    "thaw": elections.next_epoch,
    "U1": reassignments.begin,
    "A1": reassignments.bring_in,
    "B3": reassignments.lead_inside,
    "B4": reassignments.retire,
    "B6": reassignments.complete,
    "topics": topics.taken_over,
}
"""By round. No other round changes a partition that exists, unless it removes it with its topic."""


def outcomes(name: str, row: Row, view: View) -> tuple[Row, ...]:
    """Return the rows that a round of this name may leave of a row, for a controller with this view."""
    rule = RULES.get(name)
    return () if rule is None else tuple(rule(row, view))
