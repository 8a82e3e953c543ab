"""The state of a block during descent: its replicas, the loads, and the changes that the rules permit."""

from __future__ import annotations

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.held import Held, Places
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import BYTES, BYTES_IN, NOBODY, Block


@frozen(eq=False)
class Changes:
    """Possible changes: n moves of a replica from one broker to another, or exchanges of two replicas.

    Attributes:
        one, other: (n) the brokers.
        row, column: (n) the replica that goes from one to the other.
        row2, column2: (n) the replica that comes back, NOBODY in a move.
        difference: (n, 3) the load that goes from one to the other.
        cost: (n) the additional cost of the plan.
    """

    one: NDArray[np.intp]
    other: NDArray[np.intp]
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    row2: NDArray[np.intp]
    column2: NDArray[np.intp]
    difference: NDArray[np.int64]
    cost: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.one)

    def some(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Changes:
        """Return some of the changes."""
        return Changes(
            self.one[which],
            self.other[which],
            self.row[which],
            self.column[which],
            self.row2[which],
            self.column2[which],
            self.difference[which],
            self.cost[which],
        )

    def apart_from(self, n: int) -> NDArray[np.bool_]:
        """Return (n) which changes concern other partitions than those of change `n`."""
        rows = (self.row[n], self.row2[n]) if self.row2[n] != NOBODY else (self.row[n],)
        return ~(np.isin(self.row, rows) | np.isin(self.row2, rows))


@define(eq=False)
class Layout:
    """The state of a block during descent.

    Attributes:
        block: The block.
        terms: The terms.
        load: (B, 3) the current loads.
        active: (B) the brokers whose loads are known exactly here.
        limit: (P) up to how many replicas of a partition a rack may hold for another one to move there.
        tighter: (P) whether a move within a rack also has to keep to the limit (see `Terms.is_tighter`).
        after: (P, W) the current lists.
        places: The current places of each broker's replicas.
        grain: A small cost of each change besides its price, so that of two free changes the better one is made.
    """

    block: Block
    terms: Terms
    load: NDArray[np.int64]
    active: NDArray[np.bool_]
    limit: NDArray[np.int32]
    tighter: NDArray[np.bool_]
    after: NDArray[np.int32]
    places: Places
    grain: float
    _sorted: dict[tuple[int, int], NDArray[np.intp]] = field(factory=dict, init=False)

    @classmethod
    def of(cls, block: Block, terms: Terms, load: NDArray[np.int64], active: NDArray[np.bool_]) -> Layout:
        """Start from the plan of a block."""
        grain = float(block.weights[:, terms.price].mean()) * 0.01 + 1e-6 if len(block) else 1.0
        places = Places(Held.of(block.after, len(load)))
        limit = terms.rack_limits(block)
        tighter = terms.is_tighter(block, limit)
        return cls(block, terms, load.copy(), active, limit, tighter, block.after.copy(), places, grain)

    def violation_of(self, broker: NDArray[np.intp] | int, load: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far brokers would be out of bounds with a load (..., 3); takers have upper bounds as well."""
        terms = self.terms
        over = np.maximum(load - terms.high[broker], 0) * (terms.sheds | terms.takes)[broker][..., None]
        under = np.maximum(terms.low[broker] - load, 0)
        return np.asarray(((over + under) / terms.share[broker]).sum(axis=-1))

    def gain(self, changes: Changes) -> NDArray[np.float64]:
        """Return (n) by how much each change reduces the violation; 0 if a disk or a wall forbids it."""
        one, other = changes.one, changes.other
        loads = self.load[one], self.load[other]
        then = loads[0] - changes.difference, loads[1] + changes.difference
        now = self.violation_of(one, loads[0]) + self.violation_of(other, loads[1])
        gain = now - self.violation_of(one, then[0]) - self.violation_of(other, then[1])
        fits = (then[1][:, BYTES] <= self.terms.disk[other]) & (
            (changes.row2 == NOBODY) | (then[0][:, BYTES] <= self.terms.disk[one])
        )
        walls = self.terms.walls
        barred = ~fits | walls.bar(one, loads[0], then[0]) | walls.bar(other, loads[1], then[1])
        return np.where(barred, 0.0, gain)

    def value(self, changes: Changes, gain: NDArray[np.float64], least: float) -> NDArray[np.float64]:
        """Return (n) the gain of changes in relation to their cost, 0 for those that gain less than the least."""
        return np.where(gain > least, gain / (np.maximum(changes.cost, 0) + self.grain), 0.0)

    def legal(self, rows: NDArray[np.intp], sources: NDArray[np.intp], targets: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (n, k) whether the replica of each row on its source may move to each target."""
        holders = self.after[rows]
        there = (holders[:, :, None] == targets[None, None, :]).any(axis=1)
        rack = self.terms.rack
        held = np.where(holders == NOBODY, NOBODY, rack[holders])
        same = (held[:, :, None] == rack[targets][None, None, :]).sum(axis=1)
        within = rack[sources][:, None] == rack[targets][None, :]
        # A move within a rack does not change how many replicas the rack has.
        crowded = (rack[targets] >= 0)[None, :] & (same - within >= self.limit[rows][:, None])
        crowded &= ~within | self.tighter[rows][:, None]
        light = ~self.terms.are_oversized(self.block.weights[rows])
        return np.asarray(~there & ~crowded & light[:, None])

    def cost(self, rows: NDArray[np.intp], sources: NDArray[np.intp], targets: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return (n, k) the additional cost of moves, negative if a replica returns to where it was.

        The targets are the same for all rows, (k), or each has its own, (n, k).
        """
        before = self.block.before[rows]
        was_there = (before == sources[:, None]).any(axis=1)
        home = (before[:, :, None] == np.atleast_2d(targets)[:, None, :]).any(axis=1)
        size = self.block.weights[rows, self.terms.price]
        return np.asarray(size[:, None] * (was_there[:, None].astype(np.int64) - home.astype(np.int64)))

    def by(self, broker: int, measure: int) -> NDArray[np.intp]:
        """Return the places of a broker's replicas, the lightest in a measure first."""
        key = (broker, measure)
        if key not in self._sorted:
            places = self.places[broker]
            rows = places // self.after.shape[1]
            weights = self.block.weights[rows]
            other = BYTES_IN if measure == BYTES else BYTES
            self._sorted[key] = places[np.lexsort((self.block.tie[rows], weights[:, other], weights[:, measure]))]
        return self._sorted[key]

    def few(self, broker: int, most: int) -> NDArray[np.intp]:
        """Return the places of at most `most` replicas of a broker, spread evenly over all sizes."""
        places = self.by(broker, BYTES)
        if len(places) <= most:
            return places
        return places[((np.arange(most) + 0.5) * len(places) / most).astype(np.intp)]

    def at(self, places: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and columns of places."""
        rows, columns = np.divmod(places, self.after.shape[1])
        return rows, columns

    def apply(self, changes: Changes, n: int) -> None:
        """Make change `n`."""
        one, other = int(changes.one[n]), int(changes.other[n])
        self._move(int(changes.row[n]), int(changes.column[n]), one, other)
        if changes.row2[n] != NOBODY:
            self._move(int(changes.row2[n]), int(changes.column2[n]), other, one)

    def _move(self, row: int, column: int, source: int, target: int) -> None:
        weight = self.block.weights[row]
        self.load[source] -= weight
        self.load[target] += weight
        self.after[row, column] = target
        place = row * self.after.shape[1] + column
        here, there = self.places[source], self.places[target]
        self.places[source], self.places[target] = here[here != place], np.append(there, place)
        for key in ((broker, measure) for broker in (source, target) for measure in (BYTES, BYTES_IN)):
            self._sorted.pop(key, None)
