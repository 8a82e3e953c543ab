"""Exchanges of two replicas that bring a broker closer to its bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spark_bridge.kernel.layout import Changes, Layout
from spark_bridge.model.block import BYTES, BYTES_IN

_SWAPPED = 64
"""The most replicas of a broker for which exchanges are tried."""

_NEAR = np.arange(-2, 2)
"""The partner's replicas to try in exchange, as offsets from the position of the best fit in order of weight."""


def swaps(layout: Layout, broker: int, partners: Sequence[int]) -> Changes | None:
    """Return exchanges of a broker's replicas for those of partners, None if none is promising.

    A replica is tried with those of a partner that differ from it by about the broker's excess or shortfall, or by the
    partner's room if that is less. They are found by binary search in the order of weights.
    """
    mine = layout.few(broker, _SWAPPED)
    rows, columns = layout.at(mine)
    found = [
        (np.full(theirs.size, n), np.repeat(np.arange(len(rows)), theirs.shape[1]), theirs.ravel())
        for n, partner in enumerate(partners)
        for theirs in _fitting(layout, rows, broker, partner)
    ]
    if not found:
        return None
    number, which, theirs = (np.concatenate(part) for part in zip(*found, strict=True))
    rows2, columns2 = layout.at(theirs)
    brokers, targets = np.array([broker], np.intp), np.array(partners, np.intp)
    source, sources2 = np.full(len(rows), broker), targets[number]
    may = layout.legal(rows, source, targets)[which, number] & (rows[which] != rows2)
    may[may] = layout.legal(rows2[may], sources2[may], brokers)[:, 0]
    which, number, rows2, columns2 = which[may], number[may], rows2[may], columns2[may]
    weights = layout.block.weights
    cost = layout.cost(rows, source, targets)[which, number] + layout.cost(rows2, targets[number], brokers)[:, 0]
    return Changes(
        one=source[which],
        other=targets[number],
        row=rows[which],
        column=columns[which],
        row2=rows2,
        column2=columns2,
        difference=weights[rows[which]] - weights[rows2],
        cost=cost,
    )


def _fitting(layout: Layout, rows: NDArray[np.intp], broker: int, partner: int) -> list[NDArray[np.intp]]:
    """Return, for each measure out of bounds, the places (n, 4) of a partner's replicas that fit some rows (n)."""
    found = []
    for measure in (BYTES, BYTES_IN):
        places = layout.by(partner, measure)
        wanted = _wanted(layout, broker, partner, measure)
        if wanted and len(places):
            weights = layout.block.weights[:, measure]
            fitting = np.searchsorted(weights[places // layout.after.shape[1]], weights[rows] - wanted)
            found.append(places[np.clip(fitting[:, None] + _NEAR, 0, len(places) - 1)])
    return found


def _wanted(layout: Layout, broker: int, partner: int, measure: int) -> int:
    """Return the load to move from a broker to a partner within its bounds; negative in the other direction."""
    terms, load = layout.terms, layout.load[:, measure]
    low, high = terms.low[:, measure], terms.high[:, measure]
    if load[broker] > high[broker]:
        return int(max(0, min(load[broker] - high[broker], high[partner] - load[partner])))
    if load[broker] < low[broker]:
        return -int(max(0, min(low[broker] - load[broker], load[partner] - low[partner])))
    return 0
