"""Exact answers for small clusters, by mixed-integer programming: the nearest feasible plan, and the cheapest.

Nothing here shares code with the planner or the checker: what a partition may become is found by listing all sets of
brokers it could be on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from math import inf
from typing import Final

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind

MEASURES: Final = 3
BYTES: Final = 1
"""The measure of bytes, among a replica's weights."""

_INFEASIBLE: Final = 2
"""The status of a program without a solution in `milp`."""

MOST_NODES: Final = 20_000
"""The number of nodes that the solver visits before it returns its best: unlike seconds, independent of the machine."""

FORCED_ONLY: Final = {GoalKind.REMOVE_BROKERS, GoalKind.REPAIR_RACKS, GoalKind.SET_REPLICATION_FACTOR}

Loads = NDArray[np.float64]
"""(B, 3): what every broker has in each measure, or bounds of that; infinite where there is none."""


@frozen
class Partition:
    """A partition's list of replicas, and the lists it may get.

    Attributes:
        before: Broker indices.
        weights: What a replica weighs in each measure.
        wanted: Replication factor.
        brokers: Where replicas may be.
        limit: How many of them may be in one rack.
        crowd: How many may be above that, over all racks.
        forced: How many have to be new.
    """

    before: frozenset[int]
    weights: tuple[int, ...]
    wanted: int
    brokers: tuple[int, ...]
    limit: int
    crowd: int
    forced: int


@frozen
class Problem:
    """A cluster and a goal. `rack` has a number for every broker; a broker without a rack has one of its own."""

    partitions: tuple[Partition, ...]
    rack: tuple[int, ...]
    disk: tuple[float, ...]
    goal: Goal
    named: frozenset[int]
    receivers: frozenset[int]

    @classmethod
    def of(cls, block: Block, brokers: Brokers, goal: Goal) -> Problem:
        """Put what is planned into sets.

        Raises:
            ValueError: There are too few brokers for a partition.
        """
        rows = brokers.rows
        named = frozenset(i for i, b in enumerate(rows) if b.id in goal.brokers)
        leaving = named if goal.kind is GoalKind.REMOVE_BROKERS else frozenset[int]()
        drained = leaving | {i for i, b in enumerate(rows) if b.state is BrokerState.DRAINING}
        drained |= {i for i, b in enumerate(rows) if not b.serves and goal.dead_is_gone}
        if goal.kind in {GoalKind.RELIEVE, GoalKind.LEADERS}:
            drained = frozenset()
        live = {i for i, b in enumerate(rows) if b.state is BrokerState.LIVE and b.id not in goal.exclude}
        receivers = frozenset(live - leaving)
        rack = tuple(-1 - i if b.rack is None or not goal.racks else int(brokers.rack[i]) for i, b in enumerate(rows))
        rules = _Rules(goal, rack, named, drained, receivers)
        partitions = tuple(
            rules.partition(block.topics[topic], [int(b) for b in before if b != NOBODY], tuple(map(int, weights)))
            for topic, before, weights in zip(block.topic, block.before, block.weights, strict=True)
        )
        disk = tuple(inf if b.disk is None else float(b.disk) for b in rows)
        return cls(partitions, rack, disk, goal, named, receivers)

    def loads(self, lists: Sequence[frozenset[int]]) -> Loads:
        """Return what brokers have when the partitions are on these."""
        loads = np.zeros((len(self.rack), MEASURES))
        for partition, brokers in zip(self.partitions, lists, strict=True):
            loads[sorted(brokers)] += partition.weights
        return loads

    def bytes_moved(self, lists: Sequence[frozenset[int]]) -> int:
        """Return the bytes that get a new broker; where no partition has a size, the replicas that do."""
        return sum(
            self.cost(partition) * len(brokers - partition.before)
            for partition, brokers in zip(self.partitions, lists, strict=True)
        )

    def cost(self, partition: Partition) -> int:
        """Return what it costs to move a replica."""
        return partition.weights[1] if any(p.weights[1] for p in self.partitions) else 1


@frozen
class _Rules:
    goal: Goal
    rack: tuple[int, ...]
    named: frozenset[int]
    drained: frozenset[int]
    receivers: frozenset[int]

    def partition(self, topic: str, before: Sequence[int], weights: tuple[int, ...]) -> Partition:
        had = frozenset(before)
        meant = not self.goal.topics or any(fnmatchcase(topic, pattern) for pattern in self.goal.topics)
        wanted = (meant and self.goal.replication_factor) or len(before)
        limit = self._limit(wanted)
        sets = [frozenset(s) for s in combinations(sorted(self._brokers(had)), wanted) if self._holds_still(had, s)]
        if not sets:
            raise ValueError(f"a partition on {before} has nowhere to go")
        crowds = [self._crowd(s, limit) for s in sets]
        rests = self.goal.kind in {GoalKind.RELIEVE, GoalKind.LEADERS}
        crowd = self._crowd(had, limit) if rests else min(crowds)
        forced = min(len(s - had) for s, c in zip(sets, crowds, strict=True) if c <= crowd)
        return Partition(had, weights, wanted, tuple(sorted(self._brokers(had))), limit, crowd, forced)

    def _limit(self, wanted: int) -> int:
        """Return how many replicas the fullest rack needs at least, or all of them where receivers are too few."""
        sets = combinations(sorted(self.receivers), wanted)
        return min((max(Counter(self.rack[b] for b in s).values()) for s in sets), default=wanted)

    def _brokers(self, had: frozenset[int]) -> frozenset[int]:
        return had if self.goal.kind is GoalKind.LEADERS else self.receivers | (had - self.drained)

    def _holds_still(self, had: frozenset[int], brokers: Sequence[int]) -> bool:
        """Return whether relieving leaves what is not on a named broker."""
        return self.goal.kind is not GoalKind.RELIEVE or had - self.named <= set(brokers)

    def _crowd(self, brokers: frozenset[int], limit: int) -> int:
        racks = [self.rack[b] for b in brokers]
        return sum(max(0, racks.count(rack) - limit) for rack in set(racks))


@frozen
class Solution:
    """The result of the solver.

    Attributes:
        value: Of the best plan it found: bytes, or the worst excess. Infinite when it found none.
        bound: No plan has a lower value; equal to `value` when the solver came to its end.
        lists: The brokers of every partition, in the problem's order.
    """

    value: float
    bound: float
    lists: tuple[frozenset[int], ...]


def least_bytes(problem: Problem, lo: Loads, hi: Loads, *, nodes: int = MOST_NODES) -> Solution | None:
    """Return the cheapest plan whose loads are within bounds: (B, 3) each, infinite where there is none.

    Returns:
        None where there is no such plan.
    """
    model = _Model.of(problem)
    for (broker, measure), least in np.ndenumerate(lo):
        model.require(model.load(broker, measure), float(least), float(hi[broker, measure]))
    answer = model.solve(model.cost(), nodes)
    if answer is None or answer.value < inf:
        return answer
    return evolve(answer, bound=eased_bound(problem, lo, hi, nodes=nodes))


def eased_bound(problem: Problem, lo: Loads, hi: Loads, *, nodes: int = MOST_NODES) -> float:
    """Return what no plan undercuts whose loads are within bounds.

    Where the solver meets no such plan it says nothing of what it has shown. So plans outside of the bounds are let in,
    the dearer the farther out the farthest load is: none of those within costs less than the cheapest of all.
    """
    model = _Model.of(problem)
    excess = model.variable(inf, whole=False)
    means = problem.loads([partition.before for partition in problem.partitions]).mean(axis=0)
    model.bound_loads(lo, hi, np.broadcast_to(means, lo.shape), excess)
    cost = model.cost()
    answer = model.solve({**cost, excess: sum(cost.values())}, nodes)
    return 0.0 if answer is None else answer.bound


def least_excess(problem: Problem, lo: Loads, hi: Loads, scale: Loads, *, nodes: int = MOST_NODES) -> Solution | None:
    """Return the plan whose farthest load outside its bounds is nearest to them, as a part of `scale`.

    Returns:
        None where there is no plan at all: the disks are too small.
    """
    model = _Model.of(problem)
    excess = model.variable(inf, whole=False)
    model.bound_loads(lo, hi, scale, excess)
    return model.solve({excess: 1.0}, nodes)


def least_fullest(problem: Problem, shares: Loads, *, nodes: int = MOST_NODES) -> Solution | None:
    """Return the plan whose fullest receiver has the least part of its share in bytes: the minimax.

    Returns:
        None where there is no plan at all: the disks are too small.
    """
    hi = np.full(shares.shape, inf)
    counted = _counted(problem, shares)
    hi[counted, BYTES] = 0.0
    return least_excess(problem, np.full(shares.shape, -inf), hi, shares, nodes=nodes)


def fullest(problem: Problem, shares: Loads, loads: Loads) -> float:
    """Return the greatest part of its share in bytes that a receiver has."""
    counted = _counted(problem, shares)
    return float((loads[counted, BYTES] / shares[counted, BYTES]).max(initial=0.0))


def _counted(problem: Problem, shares: Loads) -> list[int]:
    return [b for b in sorted(problem.receivers) if shares[b, BYTES] > 0]


@define
class _Model:
    """Variables and rows of a program, as they come.

    Attributes:
        place: The variable that says whether a partition is on a broker.
        upper: The upper bound of every variable; the lower is 0.
        whole: Whether a variable is a whole number.
        rows: Coefficients by variable, lower bound, upper bound.
    """

    problem: Problem
    place: dict[tuple[int, int], int] = field(factory=dict)
    upper: list[float] = field(factory=list)
    whole: list[bool] = field(factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(factory=list)

    @classmethod
    def of(cls, problem: Problem) -> _Model:
        """Return the hard rules."""
        model = cls(problem)
        for p, partition in enumerate(problem.partitions):
            model.place.update({(p, b): model.variable(1) for b in partition.brokers})
            model.require(model.sum_of(p, partition.brokers), partition.wanted, partition.wanted)
            model.spread(p, partition)
            model.keep_to_goal(p, partition)
        for broker in sorted(problem.receivers):
            model.fit_disk(broker)
        return model

    def variable(self, upper: float, *, whole: bool = True) -> int:
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.upper) - 1

    def require(self, row: dict[int, float], lower: float, upper: float) -> None:
        if lower > -inf or upper < inf:
            self.rows.append((row, lower, upper))

    def sum_of(self, p: int, brokers: Sequence[int]) -> dict[int, float]:
        return {self.place[p, b]: 1.0 for b in brokers}

    def is_new(self, p: int, broker: int) -> bool:
        return broker not in self.problem.partitions[p].before

    def load(self, broker: int, measure: int) -> dict[int, float]:
        weights = ((i, self.problem.partitions[p].weights[measure]) for (p, b), i in self.place.items() if b == broker)
        return {i: float(weight) for i, weight in weights if weight}

    def cost(self) -> dict[int, float]:
        """Return the bytes of every place that would be new."""
        partitions = self.problem.partitions
        return {i: float(self.problem.cost(partitions[p])) for (p, b), i in self.place.items() if self.is_new(p, b)}

    def bound_loads(self, lo: Loads, hi: Loads, scale: Loads, excess: int) -> None:
        """Hold loads within bounds, or not farther outside than a variable says, as a part of `scale`."""
        for (broker, measure), least in np.ndenumerate(lo):
            unit = max(float(scale[broker, measure]), 1e-9)
            load = self.load(broker, measure)
            self.require({**load, excess: unit}, float(least), inf)
            self.require({**load, excess: -unit}, -inf, float(hi[broker, measure]))

    def spread(self, p: int, partition: Partition) -> None:
        above = {self.variable(partition.wanted): rack for rack in {self.problem.rack[b] for b in partition.brokers}}
        self.require(dict.fromkeys(above, 1.0), -inf, partition.crowd)
        for variable, rack in above.items():
            here = [b for b in partition.brokers if self.problem.rack[b] == rack]
            self.require({**self.sum_of(p, here), variable: -1.0}, -inf, partition.limit)

    def keep_to_goal(self, p: int, partition: Partition) -> None:
        """Let only the added gain what no rule forces, only the relieved lose, and others move what they must."""
        kind, named = self.problem.goal.kind, self.problem.named
        new = [b for b in partition.brokers if self.is_new(p, b)]
        if kind is GoalKind.ADD_BROKERS:
            new = [b for b in new if b not in named]
        if kind in FORCED_ONLY | {GoalKind.ADD_BROKERS}:
            self.require(self.sum_of(p, new), -inf, partition.forced)
        if kind is GoalKind.RELIEVE:
            for b in sorted((partition.before - named) & set(partition.brokers)):
                self.require({self.place[p, b]: 1.0}, 1, 1)

    def fit_disk(self, broker: int) -> None:
        """Hold a broker's bytes under its disk, or leave it without new bytes where what stays is too much."""
        disk, load = self.problem.disk[broker], self.load(broker, 1)
        new = {i for (p, b), i in self.place.items() if b == broker and self.is_new(p, b)} & load.keys()
        if disk == inf or not load:
            return
        most = sum(load.values())
        frozen_out = self.variable(1)
        self.require({**load, frozen_out: disk - most}, -inf, disk)
        self.require({**dict.fromkeys(new, 1.0), frozen_out: float(len(new))}, -inf, len(new))

    def solve(self, cost: dict[int, float], nodes: int) -> Solution | None:
        objective = np.zeros(len(self.upper))
        objective[list(cost)] = list(cost.values())
        result = milp(
            objective,
            integrality=np.array(self.whole, np.int64),
            bounds=Bounds(0, np.array(self.upper)),
            constraints=LinearConstraint(self._matrix(), [row[1] for row in self.rows], [row[2] for row in self.rows]),
            options={"node_limit": nodes, "mip_rel_gap": 0},
        )
        if result.status == _INFEASIBLE:
            return None
        bound = 0.0 if result.mip_dual_bound is None else max(0.0, float(result.mip_dual_bound))
        if result.x is None:
            return Solution(inf, bound, ())
        return Solution(float(result.fun), bound, tuple(self._lists(result.x)))

    def _matrix(self) -> csr_array:
        entries = [(r, i, value) for r, (row, _, _) in enumerate(self.rows) for i, value in row.items()]
        rows, columns, values = zip(*entries, strict=True)
        return csr_array((values, (rows, columns)), shape=(len(self.rows), len(self.upper)))

    def _lists(self, x: NDArray[np.float64]) -> Iterator[frozenset[int]]:
        for p, partition in enumerate(self.problem.partitions):
            yield frozenset(b for b in partition.brokers if x[self.place[p, b]] > 0.5)
