"""Rounds that go on in cycles until one has changed nothing."""

from __future__ import annotations

import numpy as np
from attrs import define, field
from numpy.typing import NDArray


@define
class Cycle:
    """Counts rounds, and sees when there is no more to do.

    A round that starts from the same loads does the same again. So what a whole cycle has not changed is not changed
    by a new plan either, which starts with a whole cycle.

    Attributes:
        length: How many rounds a cycle has; one for each kind of round.
        most: After so many rounds what is reached is kept, whatever else might be gained.
    """

    length: int
    most: int
    _round: int = field(default=0, init=False)
    _quiet: int = field(default=0, init=False)
    _last: NDArray[np.int64] | None = field(default=None, init=False)

    def turn(self, load: NDArray[np.int64]) -> int | None:
        """Return the place in the cycle of the round that starts from this load; None when it is not needed."""
        self._quiet = self._quiet + 1 if self._last is not None and np.array_equal(load, self._last) else 0
        self._last = load
        if self._quiet == self.length or self._round == self.most:
            return None
        self._round += 1
        return (self._round - 1) % self.length
