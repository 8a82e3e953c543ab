"""Replica lists to choose leaders from, and the results of other methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from attrs import define, field
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from spark_bridge.kernel.leader_rounds import LeaderRounds
from spark_bridge.kernel.leader_view import LeaderView
from spark_bridge.kernel.leaders import choose_leaders
from spark_bridge.model.block import Block

Choice = tuple[int, ...]


@define
class LeaderCase:
    """Replica lists by broker index, what each broker is to lead, and what may change."""

    lists: Sequence[Sequence[int]]
    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    share: NDArray[np.float64]
    may_lead: NDArray[np.bool_] = field()
    in_scope: NDArray[np.bool_] = field()

    @may_lead.default
    def _(self) -> NDArray[np.bool_]:
        return np.ones(len(self.lo), np.bool_)

    @in_scope.default
    def _(self) -> NDArray[np.bool_]:
        return np.ones(len(self.lists), np.bool_)

    def block(self, rows: Sequence[int] | None = None) -> Block:
        """Return a block of all partitions, or of some."""
        rows = range(len(self.lists)) if rows is None else rows
        none = [0] * len(rows)
        return Block.of([("t", n) for n in rows], [self.lists[n] for n in rows], none, none, none)

    def view(self, block: Block) -> LeaderView:
        """Return what one block that holds all is to see."""
        return LeaderView(self.count(block), self.lo, self.hi, self.share, self.may_lead)

    def count(self, *blocks: Block) -> NDArray[np.int64]:
        """Return how many partitions each broker leads."""
        return sum((np.bincount(b.after[:, 0], minlength=len(self.lo)) for b in blocks), np.zeros_like(self.lo))

    def solved(self, block: Block | None = None) -> Block:
        """Choose leaders in one block."""
        block = block or self.block()
        return choose_leaders(block, self.view(block), self.in_scope)

    def in_rounds(self, blocks: Sequence[Block], scopes: Sequence[NDArray[np.bool_]]) -> tuple[list[Block], int]:
        """Choose leaders in blocks side by side; return them, and how many rounds there were."""
        now, turns = list(blocks), 0
        load = self.count(*now)
        rounds = LeaderRounds(LeaderView(load, self.lo, self.hi, self.share, self.may_lead), len(now))
        while (view := rounds.view(load)) is not None:
            now = [choose_leaders(b, view, scope, n) for n, (b, scope) in enumerate(zip(now, scopes, strict=True))]
            load, turns = self.count(*now), turns + 1
        return now, turns

    def choices(self) -> Iterator[Choice]:
        """Return every choice of leaders there is."""
        free = zip(self.lists, self.in_scope.tolist(), strict=True)
        options = [[r for r in row if self.may_lead[r]] if free else [] for row, free in free]
        return product(*(found or [row[0]] for found, row in zip(options, self.lists, strict=True)))

    def changes(self, choice: Choice) -> int:
        """Return how many partitions get another leader."""
        return sum(leader != row[0] for leader, row in zip(choice, self.lists, strict=True))


def even(lists: Sequence[Sequence[int]], brokers: int, tolerance: float) -> LeaderCase:
    """Return a case in which all brokers have the same share."""
    share = np.full(brokers, len(lists) / brokers)
    lo = np.minimum(np.ceil(share * (1 - tolerance)), np.floor(share)).astype(np.int64)
    hi = np.maximum(np.floor(share * (1 + tolerance)), np.ceil(share)).astype(np.int64)
    return LeaderCase(lists, lo, hi, share)


@st.composite
def cases(draw: st.DrawFn, most_partitions: int = 7, most_brokers: int = 5) -> LeaderCase:
    """Draw a case: any bounds, shares and freedom."""
    brokers = draw(st.integers(1, most_brokers))
    row = st.lists(st.integers(0, brokers - 1), min_size=1, max_size=min(3, brokers), unique=True)
    lists = draw(st.lists(row, min_size=1, max_size=most_partitions))

    def each(values: st.SearchStrategy[int], count: int = brokers) -> list[int]:
        return draw(st.lists(values, min_size=count, max_size=count))

    # Low bounds leave brokers with too many, high ones with too few.
    lo = np.array(each(st.integers(0, draw(st.sampled_from([0, 1, 3])))), np.int64)
    mostly = st.sampled_from([True, True, True, False])
    return LeaderCase(
        lists,
        lo,
        lo + np.array(each(st.integers(0, 1)), np.int64),
        np.array(each(st.sampled_from([1, 2, 3, 4])), np.float64) / 2,
        np.array(each(mostly), np.bool_),
        np.array(each(mostly, len(lists)), np.bool_),
    )


def price(case: LeaderCase, choice: Choice, over: int, under: int) -> tuple[int, Fraction]:
    """Return what leaders cost: those that had to go first, then powers of how far units lie beyond the bounds."""
    count = np.bincount(np.array(choice), minlength=len(case.lo)).tolist()
    stranded, total = 0, Fraction(0)
    for broker, led in enumerate(count):
        if not case.may_lead[broker]:
            stranded += led
            continue
        share = Fraction(case.share[broker])
        total += sum((1 + n / share) ** over for n in range(int(case.hi[broker]) + 1, led + 1))
        total += sum((20 - (n - 1) / share) ** under for n in range(led + 1, int(case.lo[broker]) + 1))
    return stranded, total


def fewest_changes(case: LeaderCase) -> int | None:
    """Return how many partitions must get another leader for bounds to hold, by integer programming; None if never."""
    arcs = [(p, b) for p, row in enumerate(case.lists) for b in row]
    partition, broker = np.array(arcs).T
    ones, columns = np.ones(len(arcs)), np.arange(len(arcs))

    def sums(of: NDArray[np.int64], count: int) -> csr_array:
        return csr_array(coo_array((ones, (of, columns)), shape=(count, len(arcs))))

    solution = milp(
        np.array([float(case.lists[p][0] != b) for p, b in arcs]),
        integrality=np.ones(len(arcs), np.int64),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(sums(partition, len(case.lists)), 1, 1),
            LinearConstraint(sums(broker, len(case.lo)), case.lo, case.hi),
        ],
    )
    return round(solution.fun) if solution.success else None


def feasible(lists: Sequence[Sequence[int]], lo: int, hi: int, brokers: int) -> bool:
    """Return whether every broker can lead from `lo` to `hi` partitions, by one maximum flow."""
    partitions = len(lists)
    source, sink, spare = partitions + brokers, partitions + brokers + 1, partitions + brokers + 2
    edges = [(source, p, 1) for p in range(partitions)]
    edges += [(p, partitions + b, 1) for p, row in enumerate(lists) for b in row]
    # The first `lo` leaders of each broker go straight to the sink, the others through a gate just as wide as needed.
    edges += [(partitions + b, sink, lo) for b in range(brokers)]
    edges += [(partitions + b, spare, hi - lo) for b in range(brokers)] + [(spare, sink, partitions - brokers * lo)]
    if partitions < brokers * lo:
        return False
    starts, ends, capacities = (np.array(column, np.int32) for column in zip(*edges, strict=True))
    graph = csr_array(coo_array((capacities, (starts, ends)), shape=(spare + 1, spare + 1)))
    return bool(maximum_flow(graph, source, sink).flow_value == partitions)
