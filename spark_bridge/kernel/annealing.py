"""Simulated annealing of a small plan: replicas move and swap at random.

A change that makes the plan worse is accepted with a probability that falls with the temperature. The state is in
lists of Python numbers, because they are faster than arrays when one element is read at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from random import Random
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from spark_bridge.kernel.annealed_lists import AnnealedLists, Moves
from spark_bridge.kernel.tally import loads
from spark_bridge.kernel.terms import UNBOUNDED, Terms
from spark_bridge.model.block import BYTES, Block

_OF_VIOLATION = 30.0
"""Cost of a violation as large as a whole share, in moves of a mean replica."""

_OF_EACH = 0.01
"""Fixed cost of each violation, whatever its size, as a part of a share."""

_ALIKE = 1e-8
"""Smaller differences between violations are rounding errors."""

Load = tuple[int, int, int]

Bounds = tuple[int, int, int, int, int, int, float, float, float]

Value = tuple[float, int, int]
"""The violation of a plan, its cost, and the number of partitions that keep none of their replicas."""


@define(eq=False)
class Annealing:
    """The state of an annealing run.

    Attributes:
        lists: The plan.
        weights: The weights of each row.
        prices: What it costs to move a replica of each row.
        load: The loads of the brokers.
        bounds: Their lower and upper bounds, and 1 / share, of each measure.
        walls: Their walls: the least and the most of each measure.
        disk: The sizes of their disks in bytes.
        outs: How far each is out of bounds (see `out`).
        mean: The mean price.
        cost: The cost of the plan.
        violation: How far all brokers are out of bounds.
        best: The lists of the best plan found so far.
        best_value: The value of that plan; less is better.
        since_best: The rows that changed since then.
    """

    lists: AnnealedLists
    weights: list[Load]
    prices: list[int]
    load: list[Load]
    bounds: list[Bounds]
    walls: list[tuple[int, int, int, int, int, int]]
    disk: list[int]
    mean: float
    rng: Random
    best: list[list[int]]
    outs: list[tuple[float, float]] = field(factory=list)
    violation: float = 0.0
    cost: int = 0
    best_value: Value = (0.0, 0, 0)
    since_best: set[int] = field(factory=set)

    @classmethod
    def of(cls, block: Block, terms: Terms, rng: Random) -> Annealing:
        """Start from the plan of a block that contains all partitions."""
        # A broker that need not shed may stay above its upper bounds.
        high = np.where(terms.sheds[:, None], terms.high, UNBOUNDED)
        prices = block.weights[:, terms.price]
        started = cls(
            lists=AnnealedLists.of(block, terms, rng),
            weights=_tuples(block.weights),
            prices=prices.tolist(),
            load=_tuples(loads(block, len(terms.rack))),
            bounds=[(*low, *most, *per) for low, most, per in _rows(terms.low, high, 1 / terms.share)],
            walls=[(*least, *most) for least, most in _rows(terms.walls.least, terms.walls.most)],
            disk=terms.disk.tolist(),
            mean=float(prices.mean()) or 1.0,
            rng=rng,
            best=block.after.tolist(),
        )
        started.count()
        return started

    def count(self) -> None:
        """Compute the totals of the initial plan."""
        self.outs = [self.out(broker, load) for broker, load in enumerate(self.load)]
        self.violation = sum(violation for violation, _ in self.outs)
        for row, away in enumerate(self.lists.away):
            self.cost += len(away) * self.prices[row]
        self.keep()

    def keep(self) -> None:
        """Record the current plan as the best."""
        self.best_value = self.value
        for row in self.since_best:  # the order does not matter: rows are independent
            self.best[row] = list(self.lists.brokers[row])
        self.since_best.clear()

    @property
    def value(self) -> Value:
        """Return the value by which plans are compared."""
        return max(0.0, round(self.violation, 9)), self.cost, self.lists.replaced

    @property
    def energy(self) -> float:
        """Return the cost of the plan including violations, in moves of a mean replica."""
        return _OF_VIOLATION * sum(penalty for _, penalty in self.outs) + self.cost / self.mean

    def out(self, broker: int, load: Load) -> tuple[float, float]:
        """Return how far a broker with a load is out of bounds, without and with the fixed cost of each violation."""
        low, low_size, low_flow, high, high_size, high_flow, per, per_size, per_flow = self.bounds[broker]
        replicas, size, flow = load
        total = each = 0.0
        # The measures are written out: this runs for most proposed changes, and a loop over them takes longer.
        if replicas > high:
            total += (replicas - high) * per
            each += _OF_EACH
        elif replicas < low:
            total += (low - replicas) * per
            each += _OF_EACH
        if size > high_size:
            total += (size - high_size) * per_size
            each += _OF_EACH
        elif size < low_size:
            total += (low_size - size) * per_size
            each += _OF_EACH
        if flow > high_flow:
            total += (flow - high_flow) * per_flow
            each += _OF_EACH
        elif flow < low_flow:
            total += (low_flow - flow) * per_flow
            each += _OF_EACH
        return total, total + each

    def run(self, steps: int, temperature: float) -> None:
        """Anneal at a temperature, in moves of a mean replica."""
        propose, consider = self.lists.propose, self._consider
        for _ in range(steps):
            if moves := propose():
                consider(moves, temperature)

    def _consider(self, moves: Moves, temperature: float) -> None:
        """Make a change if it is good enough for the temperature.

        Most changes are not, so each is rejected as early as possible.
        """
        room, dearer = self._weighed(moves)
        # Metropolis' rule accepts a change with probability exp(-increase / temperature). The random number is drawn
        # first, so that the largest acceptable increase is known before the loads are computed.
        heat = -temperature * log(1.0 - self.rng.random())
        room += (heat - dearer / self.mean) / _OF_VIOLATION
        # Even if no violation were left, the change would cost too much.
        if room < 0:
            return
        changed = []
        for broker, load in self.loads_after(moves):
            out = self.out(broker, load)
            room -= out[1]
            if room < 0 or (load[BYTES] > self.disk[broker] and self._is_given(broker, moves)):
                return
            changed.append((broker, load, out))
        # A change that is good enough may still pass a wall.
        for broker, load, _ in changed:
            if self._is_barred(broker, load):
                return
        self._apply(moves, changed)
        self.cost += dearer
        if self.violation < self.best_value[0] + _ALIKE and self._is_best():
            self.keep()

    def _weighed(self, moves: Moves) -> tuple[float, int]:
        """Return how far the brokers concerned are out of bounds, and how much dearer moves make the plan."""
        brokers, homes, outs = self.lists.brokers, self.lists.home, self.outs
        row, column, target = moves[0]
        source, home = brokers[row][column], homes[row]
        # Leaving home costs the price of a replica and a return refunds it; between strange brokers a move is free.
        dearer = self.prices[row] * ((source in home) - (target in home))
        if len(moves) == 1:
            return outs[source][1] + outs[target][1], dearer
        row, column, _ = moves[1]
        last, home = brokers[row][column], homes[row]
        dearer += self.prices[row] * ((last in home) - (source in home))
        if last == target:
            return outs[source][1] + outs[target][1], dearer
        out = 0.0
        for broker in {source, target, last}:  # sets of small integers have the same order everywhere
            out += outs[broker][1]
        return out, dearer

    def _is_best(self) -> bool:
        """Return whether the plan is better than the best so far."""
        violation, cost, replaced = self.best_value
        if self.violation >= violation and (self.cost, self.lists.replaced) >= (cost, replaced):
            return False
        return self.value < self.best_value

    def _is_barred(self, broker: int, load: Load) -> bool:
        """Return whether a broker would go beyond a wall (see `Walls`), or farther beyond it."""
        least, least_size, least_flow, most, most_size, most_flow = self.walls[broker]
        now, now_size, now_flow = self.load[broker]
        replicas, size, flow = load
        return (
            now < replicas > most
            or now > replicas < least
            or now_size < size > most_size
            or now_size > size < least_size
            or now_flow < flow > most_flow
            or now_flow > flow < least_flow
        )

    def _is_given(self, broker: int, moves: Moves) -> bool:
        """Return whether a broker would have a new replica after moves; only then the limit of its disk applies."""
        new = self.lists.news[broker]
        for row, column, target in moves:
            if broker not in self.lists.home[row]:
                new += (target == broker) - (self.lists.brokers[row][column] == broker)
        return new > 0

    def loads_after(self, moves: Moves) -> tuple[tuple[int, Load], ...]:
        """Return the brokers concerned, with the loads that they would have after moves."""
        row, column, target = moves[0]
        source = self.lists.brokers[row][column]
        replicas, size, flow = self.weights[row]
        had, had_size, had_flow = self.load[source]
        has, has_size, has_flow = self.load[target]
        if len(moves) == 1:
            return (
                (source, (had - replicas, had_size - size, had_flow - flow)),
                (target, (has + replicas, has_size + size, has_flow + flow)),
            )
        row, column, _ = moves[1]
        last = self.lists.brokers[row][column]
        count, other_size, other_flow = self.weights[row]
        if last == target:
            replicas, size, flow = replicas - count, size - other_size, flow - other_flow
            return (
                (source, (had - replicas, had_size - size, had_flow - flow)),
                (target, (has + replicas, has_size + size, has_flow + flow)),
            )
        left, left_size, left_flow = self.load[last]
        return (
            (source, (had - replicas + count, had_size - size + other_size, had_flow - flow + other_flow)),
            (target, (has + replicas, has_size + size, has_flow + flow)),
            (last, (left - count, left_size - other_size, left_flow - other_flow)),
        )

    def _apply(self, moves: Moves, changed: Sequence[tuple[int, Load, tuple[float, float]]]) -> None:
        for row, column, target in moves:
            self.lists.move(row, column, target)
            self.since_best.add(row)
        for broker, load, out in changed:
            self.load[broker] = load
            self.violation += out[0] - self.outs[broker][0]
            self.outs[broker] = out


def _tuples(array: NDArray[np.int64]) -> list[Load]:
    return [(replicas, size, flow) for replicas, size, flow in array.tolist()]


def _rows(*arrays: NDArray[np.int64] | NDArray[np.float64]) -> Iterator[tuple[list[Any], ...]]:
    return zip(*(array.tolist() for array in arrays), strict=True)
