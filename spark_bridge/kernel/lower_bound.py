"""A lower bound of the bytes that any plan under the same rules moves, or of the replicas if no sizes are known.

It is the largest of three sums:

- forced moves: each place that needs another broker costs its partition's bytes;
- what leaves: a broker that is emptied loses all its bytes, and one above its upper bounds loses at least the cheapest
  replicas that bring it back, measure by measure; an emptied broker does not count if the replication factor changes,
  because what leaves it may not be needed anywhere;
- what arrives: brokers below their lower bounds get at least the cheapest of all replicas that fill them.

"The cheapest" is a fractional knapsack over classes of replicas with about the same cost for what is needed. Whole
classes are summed exactly; the rest, from the last class, counts at the least cost that its members can have.
"""

from __future__ import annotations

from functools import partial
from math import ceil

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.deal import forced
from spark_bridge.kernel.tally import Tally
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import BYTES, BYTES_IN, NOBODY, REPLICAS, Block
from spark_bridge.model.lists import any_of

_OCTAVES = 48
_CELLS = 100_000
"""About the most numbers in a table by broker and class."""


def classes(brokers: int) -> NDArray[np.float64]:
    """Return the lower ends of the classes of cost: 0, then a geometric sequence that is finer for fewer brokers."""
    per_octave = int(np.clip(_CELLS // (_OCTAVES * brokers), 1, 64))
    return np.concatenate([[0.0], 2.0 ** (np.arange(_OCTAVES * per_octave) / per_octave)])


_RATIO_SCALE = {BYTES: 2.0**20, REPLICAS: 2.0**40}
"""Factors by which prices per byte in per second are multiplied, so that ratios below 1 have distinct classes."""

_ROUNDING = 1e-9
"""The relative error of floats to allow for."""


@frozen(eq=False)
class Costs:
    """The query for the costs and contributions of each broker's replicas, by class, and for forced moves."""

    terms: Terms
    load: NDArray[np.int64]

    def __call__(self, number: int, block: Block) -> Tally:
        """Return the tally of a block.

        Returns:
            `count` and `cost` by (row, class of cost), `in` and `in_cost` by (row, class of ratio). There is a row for
            each broker of `above`, in order, and a last one for all others together. `forced` is the cost of forced
            moves, and the number of partitions that must change.
        """
        del number
        ends = classes(len(self.load))
        brokers = above(self.terms, self.load)
        row_of = np.full(len(self.load), len(brokers))
        row_of[brokers] = np.arange(len(brokers))
        there = block.before != NOBODY
        rows, columns = np.nonzero(there)
        table = partial(_table, row_of[block.before[rows, columns]], ends=ends, rows=len(brokers) + 1)
        size, flow = block.weights[rows, self.terms.price], block.weights[rows, BYTES_IN]
        ratio = _RATIO_SCALE[self.terms.price] * size / np.maximum(flow, 1)
        places, kept = forced(block, self.terms, View.of(block, 0, Turn(0, 1, 1), self.terms, self.load))
        price = block.weights[:, self.terms.price]
        changed = any_of(places) | any_of(kept[:, : block.after.shape[1]] != block.after)
        return {
            "count": table(size.astype(np.float64), np.ones_like(size)),
            "cost": table(size.astype(np.float64), size),
            "in": table(ratio, flow),
            # Replicas without bytes in contribute nothing, so their cost does not count.
            "in_cost": table(ratio, np.where(flow > 0, size, 0)),
            "forced": np.array([(places.sum(axis=1) * price).sum(), np.count_nonzero(changed)]),
        }


def above(terms: Terms, load: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the brokers that lose some of their replicas because they are above their bounds, in order."""
    return np.flatnonzero(terms.sheds & ~terms.leaves & (load > terms.high).any(axis=1))


def _table(
    row: NDArray[np.intp],
    key: NDArray[np.float64],
    value: NDArray[np.int64],
    ends: NDArray[np.float64],
    rows: int,
) -> NDArray[np.int64]:
    table = np.zeros((rows, len(ends)), np.int64)
    np.add.at(table, (row, np.searchsorted(ends, key, side="right") - 1), value)
    return table


def lower_bound(terms: Terms, load: NDArray[np.int64], costs: Tally, *eased: Terms) -> int:
    """Return the bound, in the measure that is the price of the terms.

    Args:
        terms: The terms given to `Costs`.
        load: (B, 3) the loads before the plan.
        costs: The sum of the tallies of `Costs`.
        eased: The terms that the plan met, and others that plans may meet: if they require less, a plan need not do
            more.
    """
    low = np.minimum.reduce([t.low for t in (terms, *eased)])
    high = np.maximum.reduce([t.high for t in (terms, *eased)])
    ends = classes(len(load))
    leaving = int(load[terms.leaves, terms.price].sum()) if terms.factor is None else 0
    for row, b in enumerate(above(terms, load).tolist()):
        leaving += _least(load[b] - high[b], terms.price, ends, *(table[row] for table in _tables(costs)))
    missing = np.maximum(low - load, 0).sum(axis=0)
    arriving = _least(missing, terms.price, ends, *(table.sum(axis=0) for table in _tables(costs)))
    return max(int(costs["forced"][0]), leaving, arriving)


def _tables(costs: Tally) -> tuple[NDArray[np.int64], ...]:
    return tuple(costs[name] for name in ("count", "cost", "in", "in_cost"))


def _least(
    need: NDArray[np.int64],
    price: int,
    ends: NDArray[np.float64],
    count: NDArray[np.int64],
    cost: NDArray[np.int64],
    flow: NDArray[np.int64],
    flow_cost: NDArray[np.int64],
) -> int:
    """Return the least cost of moving what is needed of each measure."""
    return max(
        int(need[BYTES]),
        _cheapest(int(need[REPLICAS]), count, cost, ends),
        _cheapest(int(need[BYTES_IN]), flow, flow_cost, ends / _RATIO_SCALE[price]),
        0,
    )


def _cheapest(need: int, gain: NDArray[np.int64], cost: NDArray[np.int64], unit: NDArray[np.float64]) -> int:
    """Return the least cost of a gain, taking classes in order; `unit` is the least cost of one unit in each class."""
    if need <= 0:
        return 0
    reached = np.cumsum(gain)
    whole = int(np.searchsorted(reached, need, side="right"))
    rest = need - (int(reached[whole - 1]) if whole else 0)
    least = float(unit[whole]) * rest if whole < len(unit) else 0.0
    # Costs are integers, so the rest is rounded up.
    return int(cost[:whole].sum()) + ceil(least * (1 - _ROUNDING) - _ROUNDING)
