"""Rounds that continue in cycles until a whole cycle changes nothing."""

from __future__ import annotations

import numpy as np
from attrs import define, field
from numpy.typing import NDArray


@define
class Cycle:
    """Counts rounds, and detects when nothing remains to do.

    A round that starts from the same loads does the same again. So if a whole cycle has changed nothing, a new plan
    changes nothing either, because it starts with a whole cycle.

    Attributes:
        length: The number of rounds in a cycle, one for each kind of round.
        most: The number of rounds after which the result is kept even if more could be gained.
    """

    length: int
    most: int
    _round: int = field(default=0, init=False)
    _quiet: int = field(default=0, init=False)
    _last: NDArray[np.int64] | None = field(default=None, init=False)

    def turn(self, load: NDArray[np.int64]) -> int | None:
        """Return the position in the cycle of the round that starts from a load; None if no round is needed."""
        self._quiet = self._quiet + 1 if self._last is not None and np.array_equal(load, self._last) else 0
        self._last = load
        if self._quiet == self.length or self._round == self.most:
            return None
        self._round += 1
        return (self._round - 1) % self.length
