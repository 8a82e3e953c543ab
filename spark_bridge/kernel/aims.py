"""The bound to bring brokers below when forced moves are dealt again: that of a measure, or their disks."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.deal import LIGHT
from spark_bridge.kernel.terms import UNBOUNDED, Terms
from spark_bridge.model.block import BYTES, BYTES_IN, REPLICAS

_IN_ORDER = (BYTES, BYTES_IN, REPLICAS)
"""The measures in order of priority: evening out one keeps the evenness of those before it."""

_STEP = 1e-4
"""The least improvement that counts, as a part of a share."""


@frozen(eq=False)
class Aim:
    """A bound of a measure, and the limits of the other measures.

    Attributes:
        measure: The measure that is bounded.
        high: (B) the bound.
        base: (B) the load at which a broker counts as empty.
        unit: (B) the load above `base` at which a broker counts as full.
        bounds: (B, 3) the loads that brokers may always have; beyond them, a broker may be as full as it or the source
            was.
        share: (B, 3) shares.
        light: Replicas up to this weight are ignored.
        step: The least reduction of the fullest broker's fullness for which a change is made.
    """

    measure: int
    high: NDArray[np.int64]
    base: NDArray[np.int64]
    unit: NDArray[np.float64]
    bounds: NDArray[np.int64]
    share: NDArray[np.float64]
    light: float
    step: float

    @property
    def is_room(self) -> bool:
        """Return whether disks are the bound."""
        return bool(self.base.any())

    def is_over(self, load: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (B) which brokers are above their bounds with a load (B, 3)."""
        return np.asarray(load[:, self.measure] > self.high)

    def part(self, brokers: NDArray[np.intp] | int, load: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how full brokers are with a load of the measure."""
        return np.asarray((load - self.base[brokers]) / self.unit[brokers])

    def most(self, load: NDArray[np.int64], brokers: NDArray[np.intp] | int, source: int) -> NDArray[np.float64]:
        """Return (..., 3) the loads that brokers may have: their bounds, or as full as they or the source are now."""
        part = np.maximum(load[brokers] / self.share[brokers], load[source] / self.share[source])
        return np.asarray(np.maximum(self.bounds[brokers], part * self.share[brokers] * (1 + 1e-12)))


def aim_at(measure: int, terms: Terms, fullest: NDArray[np.float64], mean: NDArray[np.float64]) -> Aim:
    """Return the aim at the upper bounds of a measure.

    Measures whose turn is later may become as uneven as the fullest broker was at first, plus a mean replica. Brokers
    that only keep what they have never count as full.

    Args:
        measure: The measure.
        terms: The terms.
        fullest: (3) the initial load of the fullest broker, as a part of its share.
        mean: (3) the mean weight of a replica.
    """
    bounds = terms.high.copy()
    for m in _IN_ORDER[_IN_ORDER.index(measure) + 1 :]:
        bounds[:, m] = np.maximum(bounds[:, m], np.floor(terms.share[:, m] * fullest[m] + mean[m]))
    bounds[:, measure] = UNBOUNDED
    bounds[~terms.receives] = UNBOUNDED
    unit = np.where(terms.receives, terms.share[:, measure], np.inf)
    base, light = np.zeros(len(bounds), np.int64), LIGHT * float(mean[measure])
    return Aim(measure, terms.high[:, measure], base, unit, bounds, terms.share, light, _STEP)


def aim_at_disks(terms: Terms) -> Aim:
    """Return the aim at disks, which leaves the other measures without limits."""
    bounds = np.full(terms.high.shape, UNBOUNDED)
    return Aim(BYTES, terms.disk, terms.disk, np.ones(len(bounds)), bounds, terms.share, light=0, step=1)
