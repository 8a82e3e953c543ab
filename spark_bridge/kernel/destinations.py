"""The brokers that can take replicas, with the emptiest of each rack at hand."""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush
from typing import TypeAlias

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from spark_bridge.kernel.view import View

_TRIES = 32
"""The number of a rack's brokers without room that are tried before the rack is given up for a replica."""

Entry: TypeAlias = tuple[float, int, int]
"""A fullness, a tie-breaker, and the broker."""


@define(eq=False)
class Destinations:
    """A heap of brokers for each rack, emptiest first; those without a rack share one.

    A broker has one valid entry at a time. Its other entries, and those with an old fullness, are stale and are dropped
    when they are met.
    """

    view: View
    limit: list[list[int]]
    heaps: dict[int, list[Entry]] = field(factory=dict)
    entries: dict[int, Entry] = field(factory=dict)

    @classmethod
    def of(
        cls, view: View, takes: NDArray[np.bool_], rack: NDArray[np.int32], limit: NDArray[np.int64], tie: int
    ) -> Destinations:
        """Gather the brokers that take replicas.

        Args:
            view: The loads.
            takes: (B) which brokers take.
            rack: (B) rack numbers, negative without a rack.
            limit: (B, 3) the most that each may have in each measure.
            tie: A rotation of the order of equally full brokers, so that not all blocks start with the same one.
        """
        heaps: dict[int, list[Entry]] = defaultdict(list)
        entries: dict[int, Entry] = {}
        count = len(takes)
        for broker in np.flatnonzero(takes & view.active).tolist():
            entries[broker] = (view.full[broker], (broker + tie) % count, broker)
            heaps[int(rack[broker])].append(entries[broker])
        for heap in heaps.values():
            heapify(heap)
        return cls(view, limit.tolist(), dict(sorted(heaps.items())), entries)

    def choose(self, holders: list[int], barred: set[int], weight: list[int]) -> int | None:
        """Return the emptiest broker that may take a replica, None if there is none.

        Args:
            holders: Brokers that have the partition.
            barred: Racks that are at their limit for it.
            weight: The replica's weights.
        """
        best: Entry | None = None
        for rack, heap in self.heaps.items():
            if rack not in barred and heap and (best is None or heap[0] < best):
                found = self._first(heap, holders, weight)
                if found is not None and (best is None or found < best):
                    best = found
        return None if best is None else best[2]

    def search(self, holders: list[int], barred: set[int], weight: list[int]) -> int | None:
        """Return the same as `choose`, but after trying all brokers, which is slow: None only if none has room."""
        racks = [heap for rack, heap in self.heaps.items() if rack not in barred]
        entries = [entry for heap in racks for entry in heap if entry[2] not in holders and not self._is_stale(entry)]
        room = [entry for entry in entries if self.view.fits(entry[2], weight, self.limit[entry[2]])]
        return min(room)[2] if room else None

    def take(self, broker: int, rack: int, weight: list[int]) -> None:
        """Count the replica that a broker was chosen for."""
        self.view.add(broker, weight, 1)
        self.refresh(broker, rack)

    def refresh(self, broker: int, rack: int) -> None:
        """Update a broker's position in its heap after its load changed."""
        if rack not in self.heaps or not self.view.active[broker]:
            return
        full, entry = self.view.full[broker], self.entries.get(broker)
        # If a replica makes a broker no fuller (an empty replica, for example), the broker's entry stays.
        if entry is None or entry[0] != full:
            self.entries[broker] = (full, broker, broker)
            heappush(self.heaps[rack], self.entries[broker])

    def is_empty(self) -> bool:
        """Return whether no broker takes replicas any more."""
        return not any(self.heaps.values())

    def _first(self, heap: list[Entry], holders: list[int], weight: list[int]) -> Entry | None:
        aside: list[Entry] = []
        found, tries = None, 0
        while heap and tries < _TRIES:
            entry = heap[0]
            broker = entry[2]
            if self._is_stale(entry):
                heappop(heap)
            elif broker in holders:
                aside.append(heappop(heap))
            elif not self.view.fits(broker, weight, self.limit[broker]):
                aside.append(heappop(heap))
                tries += 1
            else:
                found = entry
                break
        for entry in aside:
            heappush(heap, entry)
        return found

    def _is_stale(self, entry: Entry) -> bool:
        """Return whether an entry is stale because its broker's fullness has changed or the broker is at its limit.

        If it was the broker's current entry, the broker has none afterwards.
        """
        broker = entry[2]
        if entry is not self.entries.get(broker):
            return True
        if entry[0] == self.view.full[broker]:
            load, limit = self.view.load[broker], self.limit[broker]
            if load[0] + self.view.copies <= limit[0] and load[1] <= limit[1] and load[2] <= limit[2]:
                return False
        del self.entries[broker]
        return True
