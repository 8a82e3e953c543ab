"""Descent: single moves and swaps that bring brokers within bounds that bulk moves left outside.

In a round of descent every broker belongs to one block, which therefore knows its load exactly. Each step takes what
cures the most for its price, and what would not lessen the sum of all violations is never done: so it ends, and from
where it ended it moves nothing again.
"""

from __future__ import annotations

import numpy as np
from attrs import define, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.held import Held
from spark_bridge.kernel.tally import Tally, loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.model.block import BYTES, BYTES_IN, NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS

_PARTNERS = 12
"""How many brokers a violator is tried with."""

_MOVED = 128
"""Of how many replicas of a broker moves are tried."""

_SWAPPED = 64
"""Of how many replicas on either side swaps are tried."""

_STEPS = 400
"""How many steps one violator may take in a round."""

_LEAST = 1e-9
"""What counts as an improvement."""


@frozen(eq=False)
class Descend:
    """The step of a round that descends; `load` are the cluster's (B, 3) loads."""

    terms: Terms
    load: NDArray[np.int64]
    turn: Turn

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Descend in one block; as a tally, return the loads."""
        active = self.turn.ranks(number, len(self.load)) < self.turn.copies
        places = Places(Held.of(block.after, len(self.load)))
        work = Descent(block, self.terms, self.load.copy(), active, block.after.copy(), places)
        work.run()
        done = block.with_after(work.after)
        return done, {"load": loads(done, len(self.load))}


@frozen
class Change:
    """What moves: replicas as (row, column, destination), and how good that is."""

    moves: tuple[tuple[int, int, int], ...]
    value: float


@define(eq=False)
class Descent:
    """A block in descent."""

    block: Block
    terms: Terms
    load: NDArray[np.int64]
    active: NDArray[np.bool_]
    after: NDArray[np.int32]
    places: Places

    def run(self) -> None:
        """Take each broker that is out of bounds as near as it gets, the farthest first."""
        violation = np.where(self.active, self.terms.violation(self.load), 0.0)
        for broker in np.argsort(-violation, kind="stable")[: np.count_nonzero(violation > 0)].tolist():
            for _ in range(_STEPS):
                change = self._best_change(broker)
                if change is None:
                    break
                self.apply(change)

    def _best_change(self, broker: int) -> Change | None:
        out = self.violation_of(broker, self.load[broker])
        if out <= 0:
            return None
        return self._best_move(broker) or self._best_swap(broker)

    def violation_of(self, broker: NDArray[np.intp] | int, load: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far brokers would be out of bounds with a load (..., 3), takers beyond their upper bounds too."""
        terms = self.terms
        over = np.maximum(load - terms.high[broker], 0) * (terms.sheds | terms.takes)[broker][..., None]
        under = np.maximum(terms.low[broker] - load, 0)
        return np.asarray(((over + under) / terms.share[broker]).sum(axis=-1))

    def _best_move(self, broker: int) -> Change | None:
        """Return the best single move away from a broker or to it, None without any that helps."""
        found = []
        if self.terms.sheds[broker] and (self.load[broker] > self.terms.high[broker]).any():
            targets = np.array(self._partners(broker, takers=True), np.intp)
            found.append(self._moves(*self._few(broker, _MOVED), targets))
        if (self.load[broker] < self.terms.low[broker]).any():
            parts = [self._few(p, _MOVED) for p in self._partners(broker, takers=False)]
            if parts:
                rows, columns = (np.concatenate(column) for column in zip(*parts, strict=True))
                found.append(self._moves(rows, columns, np.array([broker], np.intp)))
        return max((c for c in found if c is not None), key=lambda c: c.value, default=None)

    def rows(self, broker: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and columns of the replicas that a broker has now."""
        rows, columns = np.divmod(self.places[broker], self.after.shape[1])
        return rows, columns

    def _partners(self, broker: int, *, takers: bool) -> list[int]:
        """Return brokers to move to (the emptiest) or from (the fullest), by fullness and by each measure."""
        able = self.active & (self.terms.takes if takers else self.terms.gives)
        able[broker] = False
        candidates = np.flatnonzero(able)
        if takers and not self.terms.gives[broker]:
            return []
        sign = 1 if takers else -1
        parts = self.load[candidates] / self.terms.share[candidates]
        found: dict[int, None] = {}
        for key in (parts.max(axis=1), *parts.T):
            found.update(dict.fromkeys(candidates[np.argsort(sign * key, kind="stable")[: _PARTNERS // 2]].tolist()))
        return list(found)

    def _moves(self, rows: NDArray[np.intp], columns: NDArray[np.intp], targets: NDArray[np.intp]) -> Change | None:
        """Return the best of moving one of some replicas to one of some brokers."""
        if not len(rows) or not len(targets):
            return None
        sources = self.after[rows, columns].astype(np.intp)
        weights = self.block.weights[rows]
        less = self.violation_of(sources, self.load[sources]) - self.violation_of(sources, self.load[sources] - weights)
        more = self.violation_of(targets[None, :], self.load[targets][None] + weights[:, None]) - self.violation_of(
            targets, self.load[targets]
        )
        gain = less[:, None] - more
        gain[~self.legal(rows, sources, targets)] = 0.0
        cost = self.cost(rows, sources, targets)
        value = np.where(gain > _LEAST, gain / (np.maximum(cost, 0) + self._grain), 0.0)
        best = int(value.argmax())
        i, k = divmod(best, len(targets))
        if value[i, k] <= 0:
            return None
        return Change(((int(rows[i]), int(columns[i]), int(targets[k])),), float(value[i, k]))

    @property
    def _grain(self) -> float:
        """Return what a move costs beside its price, so that of two that cost nothing the better is taken."""
        return float(self.block.weights[:, self.terms.price].mean()) * 0.01 + 1e-6

    def legal(self, rows: NDArray[np.intp], sources: NDArray[np.intp], targets: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (n, k) whether the replica of each row on its source may move to each target."""
        holders = self.after[rows]
        there = (holders[:, :, None] == targets[None, None, :]).any(axis=1)
        rack = self.terms.rack
        held = np.where(holders == NOBODY, NOBODY, rack[holders])
        same = (held[:, :, None] == rack[targets][None, None, :]).sum(axis=1)
        factors = np.minimum(np.count_nonzero(holders != NOBODY, axis=1), MOST_REPLICAS)
        within = rack[sources][:, None] == rack[targets][None, :]
        crowded = (rack[targets] >= 0)[None, :] & ~within & (same >= self.terms.limits[factors][:, None])
        fits = self.load[targets, BYTES][None, :] + self.block.weights[rows, BYTES][:, None] <= self.terms.disk[targets]
        light = ~self.terms.are_oversized(self.block.weights[rows])
        return np.asarray(~there & ~crowded & fits & light[:, None])

    def cost(self, rows: NDArray[np.intp], sources: NDArray[np.intp], targets: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return (n, k) how much more a plan would cost; less than none where a replica returns to where it was."""
        before = self.block.before[rows]
        was_there = (before == sources[:, None]).any(axis=1)
        home = (before[:, :, None] == targets[None, None, :]).any(axis=1)
        size = self.block.weights[rows, self.terms.price]
        return np.asarray(size[:, None] * (was_there[:, None].astype(np.int64) - home.astype(np.int64)))

    def _best_swap(self, broker: int) -> Change | None:
        """Return the best exchange of one replica of a broker for one of another, None without any that helps."""
        if not (self.terms.gives[broker] and self.terms.takes[broker]):
            return None
        partners = dict.fromkeys(self._partners(broker, takers=True) + self._partners(broker, takers=False))
        able = self.terms.gives & self.terms.takes
        found = (self._swaps(broker, p) for p in partners if able[p])
        return max((c for c in found if c is not None), key=lambda c: c.value, default=None)

    def _swaps(self, one: int, other: int) -> Change | None:
        rows, columns = self._few(one, _SWAPPED)
        rows2, columns2 = self._few(other, _SWAPPED)
        if not len(rows) or not len(rows2):
            return None
        difference = self.block.weights[rows][:, None] - self.block.weights[rows2][None, :]
        pair = np.array([one, other], np.intp)
        now = self.violation_of(pair, self.load[pair]).sum()
        then = self.violation_of(one, self.load[one] - difference) + self.violation_of(
            other, self.load[other] + difference
        )
        gain = now - then
        ones, others = np.full(len(rows), one), np.full(len(rows2), other)
        gain[~self.legal(rows, ones, pair[1:])[:, 0]] = 0.0
        gain[:, ~self.legal(rows2, others, pair[:1])[:, 0]] = 0.0
        fits = (self.load[one, BYTES] - difference[..., BYTES] <= self.terms.disk[one]) & (
            self.load[other, BYTES] + difference[..., BYTES] <= self.terms.disk[other]
        )
        gain[~fits | (rows[:, None] == rows2[None, :])] = 0.0
        cost = self.cost(rows, ones, pair[1:]) + self.cost(rows2, others, pair[:1])[:, 0][None, :]
        value = np.where(gain > _LEAST, gain / (np.maximum(cost, 0) + self._grain), 0.0)
        i, j = divmod(int(value.argmax()), len(rows2))
        if value[i, j] <= 0:
            return None
        there = (int(rows[i]), int(columns[i]), other)
        back = (int(rows2[j]), int(columns2[j]), one)
        return Change((there, back), float(value[i, j]))

    def _few(self, broker: int, most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return some replicas of a broker, spread evenly over all sizes."""
        rows, columns = self.rows(broker)
        if len(rows) > most:
            weights = self.block.weights[rows]
            by_size = np.lexsort((self.block.tie[rows], weights[:, BYTES_IN], weights[:, BYTES]))
            some = by_size[((np.arange(most) + 0.5) * len(rows) / most).astype(np.intp)]
            rows, columns = rows[some], columns[some]
        return rows, columns

    def apply(self, change: Change) -> None:
        """Make a change."""
        for row, column, target in change.moves:
            source = int(self.after[row, column])
            weight = self.block.weights[row]
            self.load[source] -= weight
            self.load[target] += weight
            self.after[row, column] = target
            place = row * self.after.shape[1] + column
            self.places[source] = self.places[source][self.places[source] != place]
            self.places[target] = np.append(self.places[target], place)


class Places(dict[int, "NDArray[np.intp]"]):
    """The places of every broker's replicas, looked up when they are first asked for."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self._held = held

    def __missing__(self, broker: int) -> NDArray[np.intp]:
        self[broker] = self._held.places[self._held.starts[broker] : self._held.starts[broker + 1]]
        return self[broker]
