"""How far from their shares brokers are, before a plan and after it: of those that it may change."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.tally import Tally
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import MEASURES
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.model.summary import Evenness

_NO_SHARE = 1e-3
"""A share below this is none: `terms` keeps every share above nothing, to divide by it."""

_REPLICAS, _LEADERS = 0, 1
_COLUMNS = (0, 2, 3)
"""Where the measures that follow a replica stand among all loads."""


@frozen(eq=False)
class Loads:
    """Broker-sized loads of one measure before and after a plan, the shares, and the greatest weight of a replica."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    share: NDArray[np.float64]
    weight: int


@frozen(eq=False)
class Scope:
    """Which brokers a goal lets lose, and which gain: (B) each."""

    lose: NDArray[np.bool_]
    gain: NDArray[np.bool_]

    @classmethod
    def of(cls, terms: Terms, goal: Goal) -> Scope:
        """Return the scope of a goal: where it names brokers to fill or to relieve, others do the opposite."""
        if goal.kind in {GoalKind.ADD_BROKERS, GoalKind.RELIEVE}:
            return cls(terms.gives, terms.takes)
        return cls(terms.receives, terms.receives)

    def distances(self, loads: Loads, counted: NDArray[np.bool_]) -> tuple[float, float]:
        """Return how far the farthest of some brokers is from its share before and after, as parts of the share.

        One that is above counts if it may lose or was given something, one below if it may gain or lost something.
        """
        more, less = loads.after > loads.before, loads.after < loads.before
        share = np.where(counted, loads.share, 1.0)
        parts = [load / share - 1 for load in (loads.before, loads.after)]
        above, below = counted & (self.lose | more), counted & (self.gain | less)
        first, last = (float(np.where(part > 0, part * above, -part * below).max(initial=0.0)) for part in parts)
        return first, last


def evenness(terms: Terms, goal: Goal, leading: NDArray[np.float64], tally: Tally) -> tuple[Evenness, ...]:
    """Measure every measure that anything is known of.

    Args:
        terms: The terms of the plan.
        goal: What was planned for.
        leading: (B) the shares of leaders.
        tally: `before` and `after`, (B, 5) loads each, and `max_weight`, (3).
    """
    before, after, weights = tally["before"], tally["after"], tally["max_weight"].tolist()
    scope = Scope.of(terms, goal)
    rows = []
    for m, name in enumerate(MEASURES):
        share, column = terms.share[:, m], _COLUMNS[m]
        loads = Loads(before[:, column], after[:, column], share, weights[m])
        if column == _REPLICAS or share.max(initial=0) > 1:
            rows.append(_even(name, scope, loads, terms.receives, goal.tolerance))
    led = Loads(before[:, _LEADERS], after[:, _LEADERS], leading, 1)
    # Who has no replica leads nothing.
    has = terms.receives & (after[:, _REPLICAS] > 0)
    return (rows[0], _even("leaders", scope, led, has, goal.tolerance), *rows[1:])


def _even(name: str, scope: Scope, loads: Loads, counted: NDArray[np.bool_], tolerance: float) -> Evenness:
    """Measure one measure; what is reachable is the tolerance, or what one replica makes of the smallest share."""
    counted = counted & (loads.share > _NO_SHARE)
    if not counted.any():
        return Evenness(name, 0.0, 0.0, tolerance)
    before, after = scope.distances(loads, counted)
    reachable = max(tolerance, loads.weight / float(loads.share[counted].min()))
    return Evenness(name, before=before, after=after, reachable=reachable)
