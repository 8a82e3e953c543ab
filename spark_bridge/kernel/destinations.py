"""The brokers that can take replicas, the emptiest of each rack at hand."""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from spark_bridge.kernel.view import View

_TRIES = 32
"""How many of a rack's brokers are looked at before the rack is given up for one replica."""


@define(eq=False)
class Destinations:
    """A heap of brokers for each rack, emptiest first; those without a rack share one.

    An entry whose fullness is no longer the broker's is stale, and is dropped when it is met.
    """

    view: View
    limit: list[list[int]]
    heaps: dict[int, list[tuple[float, int, int]]] = field(factory=dict)

    @classmethod
    def of(
        cls, view: View, takes: NDArray[np.bool_], rack: NDArray[np.int32], limit: NDArray[np.int64], tie: int
    ) -> Destinations:
        """Gather the brokers that take replicas.

        Args:
            view: The loads.
            takes: (B) which brokers take.
            rack: (B) rack numbers, negative without a rack.
            limit: (B, 3) how much each may have in each measure.
            tie: Turns the order of equally full brokers, so that not every block begins with the same.
        """
        heaps: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        count = len(takes)
        for broker in np.flatnonzero(takes & view.active).tolist():
            heaps[int(rack[broker])].append((view.full[broker], (broker + tie) % count, broker))
        for heap in heaps.values():
            heapify(heap)
        return cls(view, limit.tolist(), dict(sorted(heaps.items())))

    def choose(self, holders: list[int], barred: set[int], weight: list[int]) -> int | None:
        """Return the emptiest broker that may take a replica, None when there is none.

        Args:
            holders: Brokers that have the partition.
            barred: Racks that have their limit of it.
            weight: The replica's weights.
        """
        best: tuple[float, int, int] | None = None
        for rack, heap in self.heaps.items():
            if rack not in barred and heap and (best is None or heap[0] < best):
                found = self._first(heap, holders, weight)
                if found is not None and (best is None or found < best):
                    best = found
        return None if best is None else best[2]

    def take(self, broker: int, rack: int, weight: list[int]) -> None:
        """Count the replica that a broker was chosen for."""
        self.view.add(broker, weight, 1)
        self.refresh(broker, rack)

    def refresh(self, broker: int, rack: int) -> None:
        """Put a broker where it belongs after its load changed."""
        if rack in self.heaps and self.view.active[broker]:
            heappush(self.heaps[rack], (self.view.full[broker], broker, broker))

    def is_empty(self) -> bool:
        """Return whether nobody takes anything any more."""
        return not any(self.heaps.values())

    def _is_full(self, broker: int) -> bool:
        load, limit = self.view.load[broker], self.limit[broker]
        return load[0] + self.view.copies > limit[0] or load[1] > limit[1] or load[2] > limit[2]

    def _first(
        self, heap: list[tuple[float, int, int]], holders: list[int], weight: list[int]
    ) -> tuple[float, int, int] | None:
        aside: list[tuple[float, int, int]] = []
        found = None
        while heap and len(aside) < _TRIES:
            entry = heap[0]
            broker = entry[2]
            if entry[0] != self.view.full[broker] or self._is_full(broker):
                heappop(heap)
            elif broker in holders or not self.view.fits(broker, weight, self.limit[broker]):
                aside.append(heappop(heap))
            else:
                found = entry
                break
        for entry in aside:
            heappush(heap, entry)
        return found
