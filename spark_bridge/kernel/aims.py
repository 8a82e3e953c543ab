"""The bound that brokers shall not be above when forced moves are dealt again: of a measure, or of their disks."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.deal import LIGHT
from spark_bridge.kernel.terms import UNBOUNDED, Terms
from spark_bridge.model.block import BYTES, BYTES_IN, REPLICAS

_IN_ORDER = (BYTES, BYTES_IN, REPLICAS)
"""The measures as they matter: evening out one leaves those before it as they are."""

_STEP = 1e-4
"""The part of a share that counts as less."""


@frozen(eq=False)
class Aim:
    """A bound of a measure, and what the other measures have to keep to.

    Attributes:
        measure: The measure that is bound.
        high: (B) the greatest load.
        base: (B) the load that counts as nothing, of `unit`, which counts as one.
        bounds: (B, 3) what brokers may have in any case; beyond it nobody may be fuller than the fuller of two was.
        share: (B, 3) shares.
        light: A replica that weighs no more than this makes no broker less full.
        step: How much less full the fullest broker has to become for a change.
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
        """Return (B) which brokers are above their bounds with a (B, 3) load."""
        return np.asarray(load[:, self.measure] > self.high)

    def part(self, brokers: NDArray[np.intp] | int, load: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how full brokers are with so much of the measure."""
        return np.asarray((load - self.base[brokers]) / self.unit[brokers])

    def most(self, load: NDArray[np.int64], brokers: NDArray[np.intp] | int, source: int) -> NDArray[np.float64]:
        """Return (..., 3) what brokers may have: their bounds, or as full as they are or the source is now."""
        part = np.maximum(load[brokers] / self.share[brokers], load[source] / self.share[source])
        return np.asarray(np.maximum(self.bounds[brokers], part * self.share[brokers] * (1 + 1e-12)))


def aim_at(measure: int, terms: Terms, fullest: NDArray[np.float64], mean: NDArray[np.float64]) -> Aim:
    """Return the aim at the upper bounds of a measure.

    Measures whose turn is later may become as uneven as they were, and by a replica more: the fullest counts there.
    Brokers that only keep what they have are never full.

    Args:
        measure: The measure.
        terms: The terms.
        fullest: (3) the part of its share that the fullest broker had at first.
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
    """Return the aim at disks, whatever other measures come to."""
    bounds = np.full(terms.high.shape, UNBOUNDED)
    return Aim(BYTES, terms.disk, terms.disk, np.ones(len(bounds)), bounds, terms.share, light=0, step=1)
