"""Polishing of small plans: annealing that looks for fewer bytes at the same evenness, or for more evenness.

Bulk moves and descent are greedy: where a broker holds ten replicas, the choice of each matters, and a few per cent of
bytes are lost. Here replicas move and swap at random, from a fixed seed, and what is best of all that was met is the
plan: first by violation, then by bytes.
"""

from __future__ import annotations

from math import exp
from random import Random

import numpy as np
from attrs import define
from numpy.typing import NDArray

from spark_bridge.kernel.deal import forced
from spark_bridge.kernel.tally import loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import BYTES, MEASURES, NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS

_STEPS_PER_PLACE = 2_000
_MOST_STEPS = 200_000
_MOST_CHAINS = 5
_CHAINED_PLACES = 600
"""A plan is annealed as often as this many places hold its own, each time with other chances: the smaller a plan, the
more a single choice weighs."""

_HOT, _COLD = 1.0, 0.01
"""Temperatures at the start and at the end, in mean replicas moved."""

_HOMING, _REPLACING, _RELOCATING = 0.15, 0.45, 0.75
"""Below which draws a replica goes home, or does while another takes its place, or goes to any broker; else two change
places."""

_SEARCHES = 5
"""How many partitions are looked at for a replica that can go home."""

_OF_VIOLATION = 30.0
_OF_EACH = 0.3
"""What a violation costs in mean replicas moved: for all of a share, and for being there at all."""


def polish(block: Block, terms: Terms, load: NDArray[np.int64], bound: int) -> Block:
    """Return the block with the best plan met.

    Args:
        block: All partitions of a small cluster, planned.
        terms: The terms.
        load: (B, 3) the loads as planned.
        bound: No plan moves fewer bytes: who reaches it is done.
    """
    places = int(np.count_nonzero(block.after != NOBODY))
    steps = min(_MOST_STEPS, _STEPS_PER_PLACE * places)
    best: _Annealing | None = None
    for chain in range(max(1, min(_MOST_CHAINS, _CHAINED_PLACES // places))):
        work = _Annealing.of(block, terms, load, Random(len(block) + chain))
        work.run(steps, bound)
        if best is None or work.best_value < best.best_value:
            best = work
    assert best is not None
    return block.with_after(np.array(best.best, np.int32).reshape(block.after.shape))


@define(eq=False)
class _Annealing:
    """A plan in motion, as lists: Python's own numbers are faster than arrays, one at a time."""

    takes: list[bool]
    gives: list[bool]
    receives: list[bool]
    leaves: list[bool]
    forced: list[int]
    weights: list[list[int]]
    home: list[frozenset[int]]
    lists: list[list[int]]
    load: list[list[int]]
    low: list[list[int]]
    high: list[list[int]]
    per_share: list[list[float]]
    rack: list[int]
    limit: list[int]
    disk: list[int]
    rng: Random
    violations: list[float]
    energies: list[float]
    best: list[list[int]]
    best_value: tuple[float, int]

    @classmethod
    def of(cls, block: Block, terms: Terms, load: NDArray[np.int64], rng: Random) -> _Annealing:
        unplanned, had = block.with_after(block.before), loads(block, len(load), before=True)
        counted = (terms.sheds | terms.takes)[:, None]
        # Others that receive what is forced are not to be pushed above their bounds by it.
        most = np.where(terms.receives[:, None], np.maximum(terms.high, had), np.iinfo(np.int64).max)
        high = np.where(counted, terms.high, most)
        lists = block.after.tolist()
        places, _ = forced(unplanned, terms, View.of(unplanned, 0, Turn(0, 1, 1), terms, had))
        factors = np.minimum(np.count_nonzero(block.after != NOBODY, axis=1), MOST_REPLICAS)
        made = cls(
            takes=terms.takes.tolist(),
            gives=terms.gives.tolist(),
            receives=terms.receives.tolist(),
            leaves=terms.leaves.tolist(),
            forced=places.sum(axis=1).tolist(),
            weights=block.weights.tolist(),
            home=[frozenset(b for b in row if b != NOBODY) for row in block.before.tolist()],
            lists=lists,
            load=load.tolist(),
            low=terms.low.tolist(),
            high=high.tolist(),
            per_share=(1 / terms.share).tolist(),
            rack=terms.rack.tolist(),
            limit=terms.limits[factors].tolist(),
            disk=terms.disk.tolist(),
            rng=rng,
            violations=[],
            energies=[],
            best=[list(row) for row in lists],
            best_value=(0.0, 0),
        )
        outs = [made.out(row, b) for b, row in enumerate(made.load)]
        made.violations, made.energies = [out for out, _ in outs], [energy for _, energy in outs]
        return made

    def out(self, load: list[int], broker: int) -> tuple[float, float]:
        """Return how far a broker with a load is out of bounds, and what that costs."""
        low, high, per_share = self.low[broker], self.high[broker], self.per_share[broker]
        total, count = 0.0, 0
        for m in range(len(MEASURES)):
            have = load[m]
            if have > high[m]:
                total += (have - high[m]) * per_share[m]
                count += 1
            elif have < low[m]:
                total += (low[m] - have) * per_share[m]
                count += 1
        return total, total * _OF_VIOLATION + count * _OF_EACH

    def run(self, steps: int, bound: int) -> None:
        """Anneal; leave the best plan met in `best`."""
        mean = sum(w[BYTES] for w in self.weights) / len(self.weights) or 1.0
        violation = sum(self.violations)
        cost = sum(self.weights[r][BYTES] for r, row in enumerate(self.lists) for b in row if self.is_new(r, b))
        self.best_value = (round(violation, 9), cost)
        for step in range(steps):
            if self.best_value[0] <= 0 and self.best_value[1] <= bound:
                return
            moves = self.propose()
            if not moves:
                continue
            loads = self.loads_after(moves)
            outs = {b: self.out(load, b) for b, load in loads.items()}
            dearer = sum(self.dearer(*move) for move in moves)
            change = sum(outs[b][1] - self.energies[b] for b in outs) + dearer / mean
            if change <= 0 or self.rng.random() < exp(-change / (_HOT * (_COLD / _HOT) ** (step / steps))):
                violation += sum(outs[b][0] - self.violations[b] for b in outs)
                cost += dearer
                self.apply(moves, loads, outs)
                if (round(violation, 9), cost) < self.best_value:
                    self.best_value = (round(violation, 9), cost)
                    self.best = [list(row) for row in self.lists]

    def is_new(self, row: int, broker: int) -> bool:
        """Return whether a broker gets this partition anew."""
        return broker != NOBODY and broker not in self.home[row]

    def dearer(self, row: int, column: int, target: int) -> int:
        """Return how many bytes more move when a replica goes to another broker."""
        new, was = self.is_new(row, target), self.is_new(row, self.lists[row][column])
        return self.weights[row][BYTES] * (int(new) - int(was))

    def propose(self) -> tuple[tuple[int, int, int], ...]:
        """Draw a change: a replica goes home, to another broker, or changes places with another."""
        rng, row = self.rng, int(self.rng.random() * len(self.lists))
        kind = rng.random()
        if kind < _REPLACING:
            home = self._homing(row)
            return home if kind < _HOMING or not home else self._replacing(home[0])
        column = int(rng.random() * len(self.lists[row]))
        if self.lists[row][column] == NOBODY:
            return ()
        if kind < _RELOCATING:
            target = int(rng.random() * len(self.load))
            return ((row, column, target),) if self.may(row, column, target) else ()
        other = int(rng.random() * len(self.lists))
        other_column = int(rng.random() * len(self.lists[other]))
        one, two = self.lists[row][column], self.lists[other][other_column]
        if two == NOBODY or row == other or not (self.may(row, column, two) and self.may(other, other_column, one)):
            return ()
        return ((row, column, two), (other, other_column, one))

    def _homing(self, row: int) -> tuple[tuple[int, int, int], ...]:
        for _ in range(_SEARCHES):
            away = [c for c, b in enumerate(self.lists[row]) if self.is_new(row, b)]
            if away:
                column = self.rng.choice(away)
                empty = sorted(self.home[row].difference(self.lists[row]))
                target = self.rng.choice(empty) if empty else NOBODY
                return ((row, column, target),) if target != NOBODY and self.may(row, column, target) else ()
            row = int(self.rng.random() * len(self.lists))
        return ()

    def _replacing(self, home: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
        left = self.lists[home[0]][home[1]]
        row = int(self.rng.random() * len(self.lists))
        column = int(self.rng.random() * len(self.lists[row]))
        if row == home[0] or self.lists[row][column] == NOBODY or not self.may(row, column, left):
            return ()
        return (home, (row, column, left))

    def may(self, row: int, column: int, target: int) -> bool:
        """Return whether the rules let a replica go to another broker."""
        holders, source = self.lists[row], self.lists[row][column]
        if target in holders:
            return False
        if target in self.home[row]:
            if self.leaves[target]:
                return False
        elif not (self.takes[target] or (self.receives[target] and self._is_forced(row, column))):
            return False
        if source in self.home[row] and not self.gives[source]:
            return False
        rack = self.rack[target]
        if rack >= 0 and rack != self.rack[source]:
            there = sum(1 for b in holders if b != NOBODY and self.rack[b] == rack)
            if there >= self.limit[row]:
                return False
        return self.load[target][BYTES] + self.weights[row][BYTES] <= self.disk[target]

    def _is_forced(self, row: int, column: int) -> bool:
        """Return whether a replica has to be where it was not, and not on brokers that are to be filled."""
        others = (b for c, b in enumerate(self.lists[row]) if c != column and not self.takes[b] and self.is_new(row, b))
        return sum(1 for _ in others) < self.forced[row]

    def loads_after(self, moves: tuple[tuple[int, int, int], ...]) -> dict[int, list[int]]:
        """Return the loads of the brokers that moves concern, as they would be then."""
        loads: dict[int, list[int]] = {}
        for row, column, target in moves:
            for broker, sign in ((self.lists[row][column], -1), (target, 1)):
                load = loads.get(broker) or self.load[broker]
                loads[broker] = [have + sign * w for have, w in zip(load, self.weights[row], strict=True)]
        return loads

    def apply(
        self,
        moves: tuple[tuple[int, int, int], ...],
        loads: dict[int, list[int]],
        outs: dict[int, tuple[float, float]],
    ) -> None:
        """Make a change."""
        for row, column, target in moves:
            self.lists[row][column] = target
        for broker, load in loads.items():
            self.load[broker] = load
            self.violations[broker], self.energies[broker] = outs[broker]
