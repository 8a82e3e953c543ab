"""The brokers' distances from their shares before and after a plan; only brokers that the plan may change count."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.tally import Tally
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.walls import Walls
from spark_bridge.model.block import MEASURES
from spark_bridge.model.goal import FORCED_ONLY, Goal, GoalKind
from spark_bridge.model.summary import Evenness

_NO_SHARE = 1e-3
"""A share below this counts as zero: `terms` keeps every share above zero, to divide by it."""

_DOUBLE = 1.0
"""A broker that began closer to its share is never taken beyond twice its share, however heavy a replica is."""

_REPLICAS, _LEADERS = 0, 1
COLUMNS = (0, 2, 3)
"""The columns of all loads that hold the measures that move with a replica."""


@frozen(eq=False)
class Loads:
    """One measure before and after a plan.

    Attributes:
        before: (B) the loads before.
        after: (B) the loads after.
        share: (B) the shares.
        high: (B) the upper bounds of brokers that must end below them, 0 for others.
        weight: The weight of the heaviest replica that moves.
    """

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    share: NDArray[np.float64]
    high: NDArray[np.float64]
    weight: int


@frozen(eq=False)
class Scope:
    """The brokers that may lose load under a goal, and those that may gain: (B) each."""

    lose: NDArray[np.bool_]
    gain: NDArray[np.bool_]

    @classmethod
    def of(cls, terms: Terms, goal: Goal) -> Scope:
        """Return the scope of a goal.

        If the goal names brokers to fill, only the others may lose load; if it names brokers to relieve, only the
        others may gain load.
        """
        if goal.kind in {GoalKind.ADD_BROKERS, GoalKind.RELIEVE}:
            return cls(terms.gives, terms.takes)
        return cls(terms.receives, terms.receives)

    def distances(self, loads: Loads, counted: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the largest distance of the counted brokers from their shares, before and after, as a part of a share.

        A broker above its share counts if it may lose load or has gained some.
        A broker below its share counts if it may gain load or has lost some.
        """
        more, less = loads.after > loads.before, loads.after < loads.before
        share = np.where(counted, loads.share, 1.0)
        parts = [load / share - 1 for load in (loads.before, loads.after)]
        above, below = counted & (self.lose | more), counted & (self.gain | less)
        first, last = (float((np.abs(part) * np.where(part > 0, above, below)).max(initial=0.0)) for part in parts)
        return first, last


def evenness(terms: Terms, goal: Goal, leading: NDArray[np.float64], tally: Tally) -> tuple[Evenness, ...]:
    """Return the evenness of every measure that has data and brokers that the plan may change.

    Args:
        terms: The terms of the plan.
        goal: The goal of the plan.
        leading: (B) the shares of leaders, 0 for brokers without one.
        tally: `before` and `after`, (B, 5) loads each, and `max_weight`, (3).
    """
    before, after = tally["before"], tally["after"]
    scope, weights = Scope.of(terms, goal), _heaviest(terms, tally)
    high = _kept(terms)
    movable = terms.receives & (goal.kind is not GoalKind.LEADERS)
    rows = []
    for m, name in enumerate(MEASURES):
        share, column = terms.share[:, m], COLUMNS[m]
        loads = Loads(before[:, column], after[:, column], share, high[:, m], weights[m])
        if column == _REPLICAS or share.max(initial=0) > 1:
            rows.append(_even(name, scope, loads, movable, goal.tolerance))
    led, shared = Loads(before[:, _LEADERS], after[:, _LEADERS], leading, np.zeros(len(leading)), 1), leading > 0
    # If no broker receives, all brokers that may lead share the leaders (see `leaders.leading`).
    scope = scope if terms.receives.any() else Scope(shared, shared)
    # A broker without replicas cannot lead.
    has = shared & (after[:, _REPLICAS] > 0)
    even = (rows[0], _even("leaders", scope, led, has, goal.tolerance), *rows[1:])
    return tuple(_shown(row, goal.tolerance) for row in even if row is not None)


def _shown(row: Evenness, tolerance: float) -> Evenness:
    """Return a measure with what the plan reached as `reachable`, if that is closer than whole replicas suggest."""
    return evolve(row, reachable=max(tolerance, min(row.reachable, row.after)))


def _heaviest(terms: Terms, tally: Tally) -> list[int]:
    """Return the weight of the heaviest replica that moves, in each measure."""
    heaviest: list[int] = np.minimum(tally["max_weight"], terms.fixed.heaviest).tolist()
    return heaviest


def _kept(terms: Terms) -> NDArray[np.float64]:
    """Return (B, 3) the upper bounds of brokers that must end below them, 0 for others."""
    return np.where(terms.sheds[:, None], terms.high, 0.0)


def walls_of(
    terms: Terms, goal: Goal, tally: Tally, before: NDArray[np.int64], dealt: NDArray[np.int64] | None = None
) -> Walls:
    """Return the walls for evening out.

    In each measure, the walls are at the largest of three distances: that of the farthest broker before the plan, that
    of the farthest after the forced moves, and the reachable one (see `_even`), of which at most a whole share counts.
    Goals that make forced moves only keep the walls of their terms.

    Args:
        terms: The terms.
        goal: The goal of the plan.
        tally: `max_weight`, (3).
        before: (B, 3) the loads before the plan.
        dealt: (B, 3) the loads after the forced moves, None if there are none.
    """
    dealt = before if dealt is None else dealt
    if goal.kind in FORCED_ONLY:
        return terms.walls
    scope, weights = Scope.of(terms, goal), _heaviest(terms, tally)
    high = _kept(terms)
    parts = np.zeros(terms.share.shape)
    for m, name in enumerate(MEASURES):
        loads = Loads(before[:, m], dealt[:, m], terms.share[:, m], high[:, m], weights[m])
        even = _even(name, scope, loads, terms.receives, goal.tolerance)
        parts[:, m] = np.inf if even is None else max(even.before, even.after, min(even.reachable, _DOUBLE))
    counted = terms.receives[:, None] & (terms.share > _NO_SHARE)
    return Walls.around(terms.share, np.where(counted, parts, np.inf))


def _even(name: str, scope: Scope, loads: Loads, counted: NDArray[np.bool_], tolerance: float) -> Evenness | None:
    """Return the evenness of one measure, None if no broker counts.

    The reachable distance is the largest of three: the tolerance, the heaviest replica as a part of the least share,
    and how far a broker's upper bound is above its own share.
    """
    counted = counted & (loads.share > _NO_SHARE)
    if not counted.any():
        return None
    before, after = scope.distances(loads, counted)
    pieces, kept = (
        loads.weight / float(loads.share[counted].min()),
        float((loads.high[counted] / loads.share[counted]).max()) - 1,
    )
    reachable = max(tolerance, pieces, kept)
    return Evenness(name, before=before, after=after, reachable=reachable)
