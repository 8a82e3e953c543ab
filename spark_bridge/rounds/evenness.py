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
    movable = terms.receives & (goal.kind is not GoalKind.LEADERS)
    moving = before[:, COLUMNS], after[:, COLUMNS]
    replicas, *others = _evennesses(terms, goal, tally["max_weight"], *moving, movable)
    known = [row for row, most in zip(others, terms.share[:, 1:].max(axis=0, initial=0), strict=True) if most > 1]
    led, shared = Loads(before[:, _LEADERS], after[:, _LEADERS], leading, np.zeros(len(leading)), 1), leading > 0
    # If no broker receives, all brokers that may lead share the leaders (see `leaders.leading`).
    scope = Scope.of(terms, goal) if terms.receives.any() else Scope(shared, shared)
    # A broker without replicas cannot lead.
    has = shared & (after[:, _REPLICAS] > 0)
    even = (replicas, _even("leaders", scope, led, has, goal.tolerance), *known)
    return tuple(_shown(row, goal.tolerance) for row in even if row is not None)


def _shown(row: Evenness, tolerance: float) -> Evenness:
    """Return a measure with what the plan reached as `reachable`, if that is closer than whole replicas suggest."""
    return evolve(row, reachable=max(tolerance, min(row.reachable, row.after)))


def walls_of(
    terms: Terms,
    goal: Goal,
    heaviest: NDArray[np.int64],
    before: NDArray[np.int64],
    dealt: NDArray[np.int64] | None = None,
) -> Walls:
    """Return the walls for evening out.

    In each measure, the walls are at the largest of three distances: that of the farthest broker before the plan, that
    of the farthest after the forced moves, and the reachable one (see `_even`), of which at most a whole share counts.
    Goals that make forced moves only keep the walls of their terms.

    Args:
        terms: The terms.
        goal: The goal of the plan.
        heaviest: (3) the weights of the heaviest replica.
        before: (B, 3) the loads before the plan.
        dealt: (B, 3) the loads after the forced moves, None if there are none.
    """
    dealt = before if dealt is None else dealt
    if goal.kind in FORCED_ONLY:
        return terms.walls
    parts = np.zeros(terms.share.shape)
    for m, even in enumerate(_evennesses(terms, goal, heaviest, before, dealt, terms.receives)):
        parts[:, m] = np.inf if even is None else max(even.before, even.after, min(even.reachable, _DOUBLE))
    counted = terms.receives[:, None] & (terms.share > _NO_SHARE)
    return Walls.around(terms.share, np.where(counted, parts, np.inf))


def _evennesses(
    terms: Terms,
    goal: Goal,
    heaviest: NDArray[np.int64],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    counted: NDArray[np.bool_],
) -> list[Evenness | None]:
    """Return the evenness of each measure that moves with a replica (see `_even`).

    Args:
        terms: The terms of the plan.
        goal: The goal of the plan.
        heaviest: (3) the weights of the heaviest replica; oversized ones do not move.
        before: (B, 3) the loads before.
        after: (B, 3) the loads after.
        counted: (B) the brokers to consider.
    """
    scope, weights = Scope.of(terms, goal), np.minimum(heaviest, terms.fixed.heaviest).tolist()
    high = np.where(terms.sheds[:, None], terms.high, 0.0)
    rows = []
    for m, name in enumerate(MEASURES):
        loads = Loads(before[:, m], after[:, m], terms.share[:, m], high[:, m], weights[m])
        rows.append(_even(name, scope, loads, counted, goal.tolerance))
    return rows


def _even(name: str, scope: Scope, loads: Loads, counted: NDArray[np.bool_], tolerance: float) -> Evenness | None:
    """Return the evenness of one measure, None if no broker counts.

    The reachable distance is the largest of three: the tolerance, the heaviest replica as a part of the least share,
    and how far a broker's upper bound is above its own share.
    """
    counted = counted & (loads.share > _NO_SHARE)
    if not counted.any():
        return None
    before, after = scope.distances(loads, counted)
    piece = loads.weight / float(loads.share[counted].min())
    kept = float((loads.high[counted] / loads.share[counted]).max()) - 1
    return Evenness(name, before=before, after=after, reachable=max(tolerance, piece, kept))
