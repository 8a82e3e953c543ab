"""Levelling: brokers above their level give replicas to the emptiest, in bulk.

The driver sets levels (`levels`), and the blocks move replicas until the levels are reached (`Level`). Replicas are
chosen so that few bytes move. If bytes must leave a broker, the chosen replicas have about that many bytes; if only
replicas or bytes in must leave, those that cost the fewest bytes for it are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.deal import full_racks, light
from spark_bridge.kernel.destinations import Destinations
from spark_bridge.kernel.held import Held
from spark_bridge.kernel.tally import Tally, loads
from spark_bridge.kernel.terms import ALL_MEASURES, UNBOUNDED, Terms
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import BYTES, NOBODY, REPLICAS, Block

TOGETHER_AND_ALONE = (ALL_MEASURES, *((m,) for m in ALL_MEASURES))
"""The measures levelled in each turn: all together, then each alone, with the brokers emptiest in that measure."""

_AT_ONCE = 64
"""The number of replicas that are converted to lists at a time."""


@frozen(eq=False)
class Levels:
    """The levels of a round, (B, 3) each: brokers give down to `keep` and take up to `limit`."""

    keep: NDArray[np.int64]
    limit: NDArray[np.int64]


def levels(terms: Terms, load: NDArray[np.int64], measures: tuple[int, ...] = ALL_MEASURES) -> Levels:
    """Return the levels for a round that levels some measures; in the others only the bounds of takers count.

    In each of these measures, the load above the bounds must leave. If brokers below their bounds need more than that,
    givers go down to a common part of their shares at which they give what is needed. Takers fill up to their shares,
    and beyond them, within their bounds, if what leaves needs the room. Takers that neither give nor have a lower bound
    take as much as their bounds permit, because only a few of them may have room for what leaves a rack.
    """
    keep = np.full(load.shape, UNBOUNDED)
    keep[:, measures] = np.where(terms.sheds[:, None], terms.high, UNBOUNDED)[:, measures]
    limit = np.where(terms.takes[:, None], terms.high, 0)
    evened = terms.takes & (terms.gives | terms.low.any(axis=1))
    for m in measures:
        share = terms.share[:, m]
        needed = int(np.maximum(terms.low[:, m] - load[:, m], 0).sum())
        over = int(np.maximum(load[:, m] - keep[:, m], 0).sum())
        # What is above the bounds does not fill the takers that are below theirs: givers go down further.
        if needed > over and terms.gives.any():
            part = _level(load[terms.gives, m], share[terms.gives], needed, above=True)
            lowered = np.ceil(share * part).astype(np.int64)
            keep[:, m] = np.where(terms.gives, np.minimum(keep[:, m], np.maximum(lowered, terms.low[:, m])), UNBOUNDED)
        part = max(1.0, _level(load[terms.takes, m], share[terms.takes], max(over, needed), above=False))
        raised = np.ceil(share * part).astype(np.int64)
        limit[:, m] = np.where(evened, np.minimum(limit[:, m], raised), limit[:, m])
    return Levels(keep, limit)


def _level(load: NDArray[np.int64], share: NDArray[np.float64], amount: int, *, above: bool) -> float:
    """Return the part of their shares above which brokers have an amount in total (or below which it fits)."""
    if not len(load) or amount <= 0:
        return np.inf if above else 0.0
    sign = 1.0 if above else -1.0
    low, high = 0.0, float((load / share).max()) + amount / float(share.min())
    for _ in range(100):
        part = (low + high) / 2
        enough = np.maximum(sign * (load - share * part), 0).sum() >= amount
        low, high = (part, high) if enough == above else (low, part)
    return low if above else high


@frozen(eq=False)
class Level:
    """The step of a round that levels; `load` is the loads of the cluster, (B, 3)."""

    terms: Terms
    load: NDArray[np.int64]
    turn: Turn
    levels: Levels
    measures: tuple[int, ...] = ALL_MEASURES

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Level one block; the tally is the loads."""
        view = View.of(block, number, self.turn, self.terms, self.load, self.measures)
        view = view.within(self.terms.disk, self.load, block)
        destinations = Destinations.of(view, self.terms.takes, self.terms.rack, self.levels.limit, number)
        racks, limits = self.terms.rack.tolist(), self.terms.rack_limits(block)
        held = Held.of(block.after, len(self.load))
        work = _Work(
            block,
            self.terms,
            view,
            destinations,
            self.levels,
            block.after.copy(),
            held,
            racks,
            limits.tolist(),
            self.terms.is_tighter(block, limits).tolist(),
            self.terms.takes.tolist(),
            self.terms.low.tolist(),
            light(block).astype(np.int64).tolist(),
        )
        seen = np.array(view.load)
        over = np.where(view.active & self.terms.gives, ((seen - self.levels.keep) / self.terms.share).max(axis=1), 0.0)
        for broker in np.argsort(-over, kind="stable")[: np.count_nonzero(over > 0)].tolist():
            work.give(broker)
        done = block.with_after(work.after)
        return done, {"load": loads(done, len(self.load))}


@define(eq=False)
class _Work:
    """The state of a block during levelling; a replica up to the weight `light` (3) counts as nothing in a measure."""

    block: Block
    terms: Terms
    view: View
    destinations: Destinations
    levels: Levels
    after: NDArray[np.int32]
    held: Held
    racks: list[int]
    limits: list[int]
    tighter: list[bool]
    takes: list[bool]
    low: list[list[int]]
    light: list[int]

    def give(self, broker: int) -> None:
        """Move replicas away from a broker until it is at its level or no replica that fits remains."""
        keep = self.levels.keep[broker].tolist()
        rows, columns = self.held.by(broker)
        light = ~self.terms.are_oversized(self.block.weights[rows])
        rows, columns = rows[light], columns[light]
        while len(rows):
            need = self._need(broker, keep)
            needed = tuple(m for m, n in enumerate(need) if n > 0)
            if not needed:
                return
            # Every copy sees the same need, so each meets its part of it.
            own = [n / self.view.copies for n in need]
            order = _order(self.block.weights[rows], self.block.tie[rows], own, needed, self.terms.price)
            if self.destinations.is_empty():
                return
            rows, columns = rows[order], columns[order]
            stays = np.ones(len(rows), np.bool_)
            if not self._give_in_order(broker, keep, needed, rows, columns, stays):
                return
            rows, columns = rows[stays], columns[stays]

    def _need(self, broker: int, keep: list[int]) -> list[int]:
        return [have - level for have, level in zip(self.view.load[broker], keep, strict=True)]

    def _give_in_order(
        self,
        broker: int,
        keep: list[int],
        needed: tuple[int, ...],
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        stays: NDArray[np.bool_],
    ) -> bool:
        """Give replicas in order until one of the watched measures is at its level.

        Bytes alone are watched if they are needed. Replicas that were given are cleared in `stays`.

        Returns:
            Whether a measure is at its level.
        """
        watched = (BYTES,) if BYTES in needed else needed
        most, least = self._most(broker, keep, watched), self._least(needed)
        for i, (row, column), weight, replicas in self._each(rows, columns):
            # Too heavy a replica would take the broker below its level; too light a one would be moved for nothing.
            fits = weight[0] <= most[0] and weight[1] <= most[1] and weight[2] <= most[2]
            helps = weight[0] > least[0] or weight[1] > least[1] or weight[2] > least[2]
            target = self._target(row, broker, replicas, weight) if fits and helps else None
            if target is None:
                continue
            self.after[row, column] = target
            stays[i] = False
            need = self._need(broker, keep)
            if any(need[m] <= 0 for m in watched):
                return True
            # Replicas given for one measure may have met the need of another.
            most, least = self._most(broker, keep, watched), self._least([m for m in needed if need[m] > 0])
        return False

    def _each(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> Iterator[tuple[int, tuple[int, int], list[int], list[int]]]:
        """Yield number, place, weights and list of each replica.

        They are converted in pieces, because rarely all are needed.
        """
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            places = zip(some.tolist(), columns[start : start + _AT_ONCE].tolist(), strict=True)
            weights, lists = self.block.weights[some].tolist(), self.after[some].tolist()
            yield from zip(range(start, start + len(some)), places, weights, lists, strict=True)

    def _most(self, broker: int, keep: list[int], watched: tuple[int, ...]) -> list[int]:
        """Return (3) the largest weights of a replica that may leave a broker.

        With several copies, errors in both directions cancel out, so a replica may weigh twice what remains to give. A
        broker that does not take keeps its lower bounds; one that takes is filled again.
        """
        load, copies = self.view.load[broker], self.view.copies
        most = [UNBOUNDED] * len(load)
        if not self.takes[broker]:
            most = [(have - least) // copies for have, least in zip(load, self.low[broker], strict=True)]
        slack = 2 if copies > 1 else 1
        for m in watched:
            most[m] = min(most[m], slack * (load[m] - keep[m]) // copies)
        return most

    def _least(self, needed: Sequence[int]) -> list[int]:
        """Return (3) the weights that a replica must exceed in at least one needed measure to help."""
        return [self.light[m] if m in needed else UNBOUNDED for m in range(len(self.light))]

    def _target(self, row: int, source: int, replicas: list[int], weight: list[int]) -> int | None:
        """Choose a target for a row's replica and count the move; return None if the replica stays."""
        holders = [b for b in replicas if b != NOBODY]
        others = [b for b in holders if b != source]
        barred = full_racks(others, self.racks, self.limits[row])
        if not self.tighter[row]:
            barred.discard(self.racks[source])
        target = self.destinations.choose(holders, barred, weight)
        # A move to a broker that is no emptier than the source gains nothing.
        if target is None or self.view.full[target] >= self.view.full[source]:
            return None
        self.view.add(source, weight, -1)
        self.destinations.take(target, self.racks[target], weight)
        return target


def _order(
    weights: NDArray[np.int64], tie: NDArray[np.uint32], need: list[float], needed: tuple[int, ...], price: int
) -> NDArray[np.intp]:
    """Return the order in which to give replicas, given their weights (n, 3).

    If bytes must leave, each replica costs as many bytes as it contributes. If replicas must leave as well, a selection
    with about the needed number and bytes comes first, and the others follow, largest first. If bytes need not leave,
    replicas are ordered by their cost in relation to what is needed.
    """
    size = weights[:, price].astype(np.float64)
    if BYTES not in needed:
        gain = sum((weights[:, m] / max(float(weights[:, m].mean()), 1e-9) for m in needed), np.zeros(len(size)))
        return np.lexsort((tie, size / np.maximum(gain, 1e-9)))
    by_size = np.lexsort((tie, -size))
    if REPLICAS not in needed:
        return by_size
    picked = np.zeros(len(size), np.bool_)
    picked[_sample(size[by_size], need[REPLICAS], need[BYTES])] = True
    return by_size[np.argsort(~picked, kind="stable")]


def _sample(size: NDArray[np.float64], count: float, total: float) -> NDArray[np.intp]:
    """Pick a number of sizes, sorted in descending order, that add up to about a total.

    They are spread evenly over the sizes that remain when enough of the largest or smallest are excluded for the mean
    of the rest to be the needed one.
    """
    wanted = max(1, round(count))
    mean = total / wanted
    sums = np.cumsum(size)
    # The mean size is too small, so the smallest are excluded; otherwise the largest are.
    if sums[-1] / len(size) < mean:
        means = sums / np.arange(1, len(size) + 1)
        first, last = 0, int(np.count_nonzero(means >= mean))
    else:
        means = (sums[-1] - sums + size) / np.arange(len(size), 0, -1)
        first, last = int(np.count_nonzero(means > mean)), len(size)
    pool = np.arange(first, max(last, first + 1)) if first < len(size) else np.arange(len(size))
    if wanted >= len(pool):
        return pool
    return pool[((np.arange(wanted) + 0.5) * len(pool) / wanted).astype(np.intp)]
