"""Walls: loads beyond which evening out takes no broker, so that no measure ends less even than it began."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

_UNBOUNDED = np.iinfo(np.int64).max // 4


@frozen(eq=False)
class Walls:
    """The walls, (B, 3) each: no load falls below `least` or rises above `most`; one outside may only approach."""

    least: NDArray[np.int64]
    most: NDArray[np.int64]

    @classmethod
    def nowhere(cls, brokers: int) -> Self:
        """Return walls that no load reaches."""
        return cls(np.zeros((brokers, 3), np.int64), np.full((brokers, 3), _UNBOUNDED))

    @classmethod
    def around(cls, share: NDArray[np.float64], parts: NDArray[np.float64]) -> Self:
        """Return walls around shares (B, 3), at distances (B, 3) in parts of them; infinite for no wall."""
        least, most = np.ceil(share * (1 - parts)), np.floor(share * (1 + parts))
        return cls(np.maximum(least, 0.0).astype(np.int64), np.minimum(most, float(_UNBOUNDED)).astype(np.int64))

    def bar(self, broker: NDArray[np.intp] | int, now: NDArray[np.int64], then: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (...) whether brokers would go beyond a wall if their loads (..., 3) changed."""
        above = (then > now) & (then > self.most[broker])
        below = (then < now) & (then < self.least[broker])
        return np.asarray((above | below).any(axis=-1))

    def are_passed(self, now: NDArray[np.int64], then: NDArray[np.int64]) -> bool:
        """Return whether any broker would go beyond a wall if all loads (B, 3) changed."""
        return bool(self.bar(np.arange(len(now)), now, then).any())


WallsFrom = Callable[[NDArray[np.int64]], Walls]
"""Returns the walls of a plan that starts from loads, (B, 3)."""
