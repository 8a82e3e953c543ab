"""The replicas that each broker holds in a block."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

_TWO_BYTES = np.iinfo(np.uint16).max


@frozen(eq=False)
class Held:
    """Places in the replica lists, sorted by broker."""

    width: int
    places: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, lists: NDArray[np.int32], brokers: int) -> Held:
        """Sort the places of (P, W) replica lists."""
        # NOBODY comes first. Two-byte numbers are sorted in a tenth of the time.
        holder = lists.ravel() + 1
        places = np.argsort(holder.astype(np.uint16) if brokers < _TWO_BYTES else holder, kind="stable")
        return cls(lists.shape[1], places, np.cumsum(np.bincount(holder, minlength=brokers + 1)))

    def by(self, broker: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and columns of a broker's replicas."""
        return np.divmod(self.places[self.starts[broker] : self.starts[broker + 1]], self.width)


class Places(dict[int, "NDArray[np.intp]"]):
    """The places of each broker's replicas, looked up on first access."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self._held = held

    def __missing__(self, broker: int) -> NDArray[np.intp]:
        self[broker] = self._held.places[self._held.starts[broker] : self._held.starts[broker + 1]]
        return self[broker]
