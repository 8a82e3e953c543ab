"""Fair shares of brokers by linear programs: a measure of evenness that is independent of the planner.

Partitions may be cut up for it, but not put on a broker twice, nor on racks beyond their limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy.optimize import linprog

from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import GoalKind
from tests.spark.kernel.exact import MEASURES, Loads, Problem


def fair_shares(problem: Problem, brokers: Brokers) -> Loads:
    """Return (B, 3) shares in proportion to capacity, or as near as the rules permit; 0 for who receives nothing.

    The fullest brokers are made as little full as can be, then the fullest of the others, and so on.
    """
    shares = [_shares_of(problem, brokers.capacity, measure) for measure in range(MEASURES)]
    return np.stack(shares, axis=1)


def bands(shares: Loads, tolerance: float) -> tuple[Loads, Loads]:
    """Return (B, 3) the least and the greatest load within tolerance; of replicas at least the whole numbers."""
    lo, hi = shares * (1 - tolerance), shares * (1 + tolerance)
    replicas = np.round(shares[:, 0], 6)
    lo[:, 0] = np.minimum(np.ceil(np.round(lo[:, 0], 6)), np.floor(replicas))
    hi[:, 0] = np.maximum(np.floor(np.round(hi[:, 0], 6)), np.ceil(replicas))
    return lo, hi


def aims(problem: Problem, lo: Loads, hi: Loads) -> tuple[Loads, Loads]:
    """Return the bounds that the goal asks for: infinite where it asks for nothing."""
    lo, hi = lo.copy(), hi.copy()
    everyone, named = set(range(len(problem.rack))), problem.named
    lo[sorted(everyone - problem.receivers)], hi[sorted(everyone - problem.receivers)] = -inf, inf
    if problem.goal.kind in {GoalKind.ADD_BROKERS, GoalKind.RELIEVE}:
        before = problem.loads([p.before for p in problem.partitions])
        others = sorted(problem.receivers - named)
        lo[others], hi[others] = -inf, np.maximum(hi, before)[others]
    if problem.goal.kind in {GoalKind.RELIEVE, GoalKind.LEADERS}:
        lo[:] = -inf
    return lo, hi


def _shares_of(problem: Problem, capacity: NDArray[np.float64], measure: int) -> NDArray[np.float64]:
    program = _FairProgram.of(problem, measure)
    free, shares = sorted(problem.receivers), np.zeros(len(capacity))
    while free:
        level, tight = program.level(capacity, free, shares)
        shares[tight] = level * capacity[tight]
        free = [b for b in free if b not in set(tight)]
    return shares


@frozen(eq=False)
class _FairProgram:
    """Parts of partitions on brokers; n of them.

    Attributes:
        loads: (B, n) what each part adds to a broker's load.
        whole: (P, n) which parts make up a partition, and how many replicas it has (P).
        spread: (rows, n) which parts are in one rack, and how many replicas may be there (rows).
        least: (n) the least of each part: all of what stays on brokers that do not receive.
    """

    loads: NDArray[np.float64]
    whole: tuple[NDArray[np.float64], list[int]]
    spread: tuple[NDArray[np.float64], list[int]]
    least: list[float]

    @classmethod
    def of(cls, problem: Problem, measure: int) -> _FairProgram:
        places = [(p, b) for p, partition in enumerate(problem.partitions) for b in partition.brokers]
        racks = sorted({(p, problem.rack[b]) for p, b in places})
        row_of = {key: row for row, key in enumerate(racks)}
        parts = problem.partitions
        return cls(
            loads=_matrix([b for _, b in places], [parts[p].weights[measure] for p, _ in places], len(problem.rack)),
            whole=(_matrix([p for p, _ in places], [1] * len(places), len(parts)), [p.wanted for p in parts]),
            spread=(
                _matrix([row_of[p, problem.rack[b]] for p, b in places], [1] * len(places), len(racks)),
                [parts[p].limit + parts[p].crowd for p, _ in racks],
            ),
            least=[float(b not in problem.receivers) for _, b in places],
        )

    def level(
        self, capacity: NDArray[np.float64], free: list[int], shares: NDArray[np.float64]
    ) -> tuple[float, list[int]]:
        """Return how full the fullest of the free brokers has to be, and which of them cannot be less full."""
        rising = np.zeros((len(capacity), 1))
        rising[free, 0] = -capacity[free]
        settled = [b for b in range(len(capacity)) if shares[b] and b not in free]
        bound = [*free, *settled]
        none = np.zeros((len(self.spread[1]), 1))
        result = linprog(
            [0.0] * len(self.least) + [1.0],
            A_ub=np.vstack([np.hstack([self.loads[bound], rising[bound]]), np.hstack([self.spread[0], none])]),
            b_ub=[*(0.0 if b in free else shares[b] * (1 + 1e-7) + 1e-6 for b in bound), *self.spread[1]],
            A_eq=np.hstack([self.whole[0], np.zeros((len(self.whole[1]), 1))]),
            b_eq=self.whole[1],
            bounds=[*((least, 1.0) for least in self.least), (0.0, None)],
        )
        # What does not receive keeps all it has here, which a lower factor or a rack may forbid.
        if result.x is None:
            raise ValueError(f"no shares keep what rests: {result.message}")
        tight = [b for b, price in zip(free, result.ineqlin.marginals, strict=False) if price < -1e-9]
        return float(result.x[-1]), tight or free


def _matrix(rows: list[int], values: Sequence[int], height: int) -> NDArray[np.float64]:
    """Return a matrix with one value in each column."""
    matrix = np.zeros((height, len(rows)))
    matrix[rows, range(len(rows))] = values
    return matrix
