"""The terms of a plan: what a block must know about the cluster and the goal, in broker-sized arrays."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.racks import limits_beside, units
from spark_bridge.kernel.rights import Racks, racks_of, receiving_and_leaving, resting
from spark_bridge.kernel.shares import Rooms, bounds, shares, whole_bounds
from spark_bridge.kernel.tally import Tally, sums
from spark_bridge.kernel.walls import Walls
from spark_bridge.model.block import BYTES, MEASURES, NOBODY, REPLICAS, Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import MOST_REPLICAS, Goal, GoalKind, LeaderScope
from spark_bridge.model.lists import lengths

ALL_MEASURES = tuple(range(len(MEASURES)))
UNBOUNDED = np.iinfo(np.int64).max // 4

_IN_VAIN = 0.1
"""The load that a broker may keep besides its oversized replicas, as a part of their load above its bounds."""

_RELIEVED = 0.5
"""Brokers that are relieved of one measure keep at least this part of their lower bounds of the others."""


@frozen(eq=False)
class Fixed:
    """The oversized replicas, which evening out does not move (see `oversized`).

    Attributes:
        above: (3) a replica heavier than this in any measure is oversized.
        heaviest: (3) the weights of the heaviest other replica.
        load: (B, 3) their weights on the brokers that keep them.
        by_factor: (MOST_REPLICAS + 1, 3) the weights of one replica of each partition, summed by factor.
    """

    above: NDArray[np.int64]
    heaviest: NDArray[np.int64]
    load: NDArray[np.int64]
    by_factor: NDArray[np.int64]

    @classmethod
    def nothing(cls, brokers: int) -> Fixed:
        """Return the value for clusters without oversized replicas."""
        return cls(
            np.full(len(MEASURES), UNBOUNDED),
            np.full(len(MEASURES), UNBOUNDED),
            np.zeros((brokers, len(MEASURES)), np.int64),
            np.zeros((MOST_REPLICAS + 1, len(MEASURES)), np.int64),
        )


@frozen(eq=False)
class Terms:
    """The requirements of a plan; B brokers, measures as in `Block.weights`.

    Attributes:
        rack: (B) rack numbers, negative without a rack, or for all brokers if racks do not count.
        limits: By replication factor, the number of replicas of a partition above which some must leave a rack.
        rests: (B) the brokers that neither receive nor lose replicas; none if what they keep does not count for racks.
        receives: (B) the brokers that may receive a replica that must move.
        leaves: (B) the brokers whose replicas must all move.
        keeps: (B) the brokers that do not serve and lose nothing, except where a list gets shorter.
        gives: (B) the brokers that may lose replicas to even out.
        takes: (B) the brokers that may receive replicas to even out.
        sheds: (B) the brokers that must end below their upper bounds.
        repairs: Whether racks are repaired.
        share: (B, 3) the share of each broker, always above zero.
        low: (B, 3) the lower bounds, 0 for brokers that need not be filled.
        high: (B, 3) the upper bounds.
        disk: (B) the size of the disk in bytes.
        factor: The new replication factor, None to keep that of each partition.
        topics: Patterns of the topics that get it; empty for all.
        walls: The loads beyond which evening out takes no broker.
        price: The measure in which moves are paid: bytes, or replicas if no sizes are known.
        keeps_leaders: Whether no partition may get another preferred leader.
        fixed: The oversized replicas.
    """

    rack: NDArray[np.int32]
    limits: NDArray[np.int32]
    rests: NDArray[np.bool_]
    receives: NDArray[np.bool_]
    leaves: NDArray[np.bool_]
    keeps: NDArray[np.bool_]
    gives: NDArray[np.bool_]
    takes: NDArray[np.bool_]
    sheds: NDArray[np.bool_]
    repairs: bool
    share: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    disk: NDArray[np.int64]
    factor: int | None
    topics: tuple[str, ...]
    walls: Walls
    price: int
    keeps_leaders: bool
    fixed: Fixed

    def factors(self, block: Block) -> NDArray[np.int64]:
        """Return (P) the wanted number of replicas of each partition."""
        return wanted_factors(block, self.factor, self.topics)

    def rack_limits(self, block: Block) -> NDArray[np.int32]:
        """Return (P) up to how many replicas of each partition a rack may hold for another one to move there."""
        factors = np.minimum(self.factors(block), MOST_REPLICAS)
        return limits_beside(block.before, factors, self.rack, self.receives, self.rests, self.limits)

    def is_tighter(self, block: Block, limits: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return (P) of which partitions these rack limits are smaller because of what brokers at rest keep.

        A replica of them that moves within a rack above its limit leaves it instead.
        """
        return np.asarray(limits < self.limits[np.minimum(self.factors(block), MOST_REPLICAS)])

    def with_nobody_pushed(self, load: NDArray[np.int64]) -> Terms:
        """Return terms under which no receiver may end above its upper bound, or above a load that exceeds it."""
        high = np.where(self.sheds[:, None], self.high, np.maximum(self.high, load))
        return evolve(self, high=high, sheds=self.sheds | self.receives)

    def eased_to(self, load: NDArray[np.int64]) -> Terms:
        """Return terms under which no broker need end closer to its bounds than with a load."""
        return evolve(self, low=np.minimum(self.low, load), high=np.maximum(self.high, load))

    def are_oversized(self, weights: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (n) which replicas are oversized and so not moved to even out, given their weights (n, 3)."""
        return np.asarray((weights > self.fixed.above).any(axis=1))

    def fullness(self, load: NDArray[np.int64], measures: tuple[int, ...] = ALL_MEASURES) -> NDArray[np.float64]:
        """Return (B) each broker's fullness: its load as a part of its share, in the fullest of some measures."""
        return np.asarray((load / self.share)[:, measures].max(axis=1))

    def violation(self, load: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (B) how far each broker is out of bounds, in parts of its shares, summed over all measures."""
        return np.asarray(self.violations(load).sum(axis=1))

    def violations(self, load: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (B, 3) how far each broker is out of bounds in each measure, in parts of its share."""
        over = np.maximum(load - self.high, 0) * self.sheds[:, None]
        under = np.maximum(self.low - load, 0)
        return np.asarray((over + under) / self.share)


def wanted_factors(block: Block, factor: int | None, topics: tuple[str, ...]) -> NDArray[np.int64]:
    """Return (P) the wanted number of replicas of each partition."""
    has: NDArray[np.int64] = lengths(block.before)
    return has if factor is None else np.where(matching(block, topics), factor, has)


def matching(block: Block, topics: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return (P) which partitions belong to topics that some pattern matches; all if there are no patterns."""
    # Plain names are looked up: with thousands of them, matching each against each topic in every step is slow.
    names = frozenset(topics)
    patterns = [topic for topic in topics if any(sign in topic for sign in "*?[")]
    matched = [not topics or name in names or any(fnmatchcase(name, p) for p in patterns) for name in block.topics]
    return np.asarray(np.array(matched, np.bool_)[block.topic])


def matches(block: Block, topics: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the number of the block's topics that each pattern of topics matches."""
    return np.array([sum(fnmatchcase(name, pattern) for name in block.topics) for pattern in topics], np.int64)


def make_terms(
    brokers: Brokers,
    goal: Goal,
    load: NDArray[np.int64],
    first: Tally,
    fixed: Fixed | None = None,
    *,
    counts_rests: bool = True,
) -> Terms:
    """Draw up the terms.

    Args:
        brokers: All brokers.
        goal: The goal of the plan.
        load: (B, 3) the loads now.
        first: The totals by replication factor (see `AtFirst`).
        fixed: The oversized replicas, if there are any.
        counts_rests: Whether what brokers at rest keep counts in racks, as in the totals.
    """
    named, nothing = brokers.indices(goal.brokers), Fixed.nothing(len(brokers))
    live, _ = receiving_and_leaving(brokers, goal)
    racks, capacity = racks_of(brokers, goal, counts_rests=counts_rests), np.where(live, brokers.capacity, 0.0)
    shared = _Shared(capacity, racks, load, resting(brokers, goal), *_by_factor(first), goal.tolerance)
    relieves = goal.kind is GoalKind.RELIEVE
    share, low, high = shared.bounds_around(fixed, relieves=relieves) if fixed else shared.bounds(nothing)
    high[:, BYTES] = np.minimum(high[:, BYTES], brokers.disk)
    gives, takes = _scope(goal, live, named)
    gives &= ~racks.keeps
    return Terms(
        rack=racks.rack,
        limits=racks.limits,
        rests=racks.rests,
        receives=live,
        leaves=racks.leaves,
        keeps=racks.keeps,
        gives=gives,
        takes=takes,
        # Old brokers only fill the added ones: nothing requires an old one to end below its upper bound.
        sheds=gives if goal.kind is not GoalKind.ADD_BROKERS else np.zeros_like(gives),
        repairs=racks.repairs,
        share=share,
        low=_to_reach(goal.kind, low, load, gives, takes),
        high=high,
        disk=brokers.disk,
        factor=goal.replication_factor,
        topics=goal.topics,
        walls=Walls.nowhere(len(brokers)),
        # Without any known size, moving a replica costs the same for all.
        price=BYTES if load[:, BYTES].any() else REPLICAS,
        keeps_leaders=goal.leader_scope is LeaderScope.NONE,
        fixed=fixed or nothing,
    )


def _scope(
    goal: Goal, live: NDArray[np.bool_], indices: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return (B) the brokers that give and those that take to even out, given the indices of the goal's brokers."""
    nobody, named = np.zeros_like(live), np.zeros_like(live)
    named[indices] = True
    match goal.kind:
        case GoalKind.REBALANCE:
            return live, live
        case GoalKind.ADD_BROKERS:
            return live & ~named, live & named
        case GoalKind.RELIEVE:
            return named, live & ~named
        case _:
            return nobody, nobody


def _to_reach(
    kind: GoalKind,
    low: NDArray[np.int64],
    load: NDArray[np.int64],
    gives: NDArray[np.bool_],
    takes: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return (B, 3) the lower bounds that a goal holds brokers to, 0 for others."""
    match kind:
        case GoalKind.REBALANCE | GoalKind.ADD_BROKERS:
            return np.where(takes[:, None], low, 0)
        case GoalKind.RELIEVE:
            # A broker that is relieved in one measure must not become empty in another.
            return np.where(gives[:, None], np.minimum((low * _RELIEVED).astype(np.int64), load), 0)
        case _:
            return np.zeros_like(low)


@frozen(eq=False)
class _Shared:
    """The loads of a cluster, and the brokers that share them.

    Attributes:
        capacity: (B) capacities, 0 for brokers that receive nothing.
        racks: The racks.
        load: (B, 3) the loads now.
        rests: (B) the brokers that neither receive nor lose replicas.
        by_factor: (MOST_REPLICAS + 1, 3) the weights of one replica of each partition, summed by wanted factor.
        at_rest: (N, 6) the replicas that brokers at rest had at first: broker, wanted factor, number of resting
            replicas of the partition, weights.
        by_rest: (MOST_REPLICAS + 1, E, 3) the weights of one replica of each partition, by wanted factor, by how
            many of its replicas rested at first, and by what racks may hold of it (see `Racks.offset`).
        tolerance: How far from its share a broker may end, as a part of the share.
    """

    capacity: NDArray[np.float64]
    racks: Racks
    load: NDArray[np.int64]
    rests: NDArray[np.bool_]
    by_factor: NDArray[np.int64]
    at_rest: NDArray[np.int64]
    by_rest: NDArray[np.int64]
    tolerance: float

    def bounds(self, fixed: Fixed) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return shares, each at least what is fixed on its broker, and lower and upper bounds; (B, 3) each."""
        share = self.divided(fixed)
        return share, *_bounds(share, self.tolerance)

    def bounds_around(
        self, fixed: Fixed, *, relieves: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return shares and bounds like `bounds`, for clusters in which some brokers keep oversized replicas.

        A broker whose oversized replicas exceed its bounds is not filled further, and may keep a little besides them.
        Shares do not change if brokers are relieved.
        """
        share, low, most = self.bounds(Fixed.nothing(len(self.load)))
        high, beside = most, (np.maximum(fixed.load - most, 0) * _IN_VAIN).astype(np.int64)
        if not relieves:
            # Besides its oversized replicas, a broker gets at most a share of everything that is not oversized.
            others = evolve(self, by_factor=self.by_factor - fixed.by_factor, load=self.load - fixed.load)
            free = others.divided(Fixed.nothing(len(self.load)))
            expected = fixed.load + (np.minimum(beside, free) / 2).astype(np.int64)
            share, low, high = self.bounds(evolve(fixed, load=expected))
        return share, low, np.where(beside > 0, fixed.load + beside, np.minimum(high, most))

    def divided(self, fixed: Fixed) -> NDArray[np.float64]:
        """Return (B, 3) shares of the load that does not rest on brokers that neither receive nor lose replicas."""
        unit, share = units(self.racks.rack), np.zeros(self.load.shape)
        # If brokers are expected to keep more than what is fixed, the others get less.
        more = fixed.load.sum(axis=0) - np.arange(len(self.by_factor)) @ fixed.by_factor
        for m in range(len(MEASURES)):
            rooms = self._rooms(unit, fixed, m)
            wanted = rooms.wanted * max(0.0, 1.0 - float(more[m]) / max(float(rooms.wanted.sum()), 1.0))
            kept = fixed.load[:, m].astype(np.float64)
            share[:, m] = shares(self.capacity, unit, kept, evolve(rooms, wanted=wanted))
        return np.maximum(share, 1e-6)

    def _rooms(self, unit: NDArray[np.intp], fixed: Fixed, m: int) -> Rooms:
        """Return what brokers can hold of a measure besides what rests and what is fixed.

        Partitions are distinguished by their factor, by how many of their replicas rest, and by what a rack may hold.
        """
        free = (self.by_factor - fixed.by_factor)[:, m] / np.maximum(self.by_rest[:, :, m].sum(axis=1), 1)
        factor, rested = np.nonzero(self.by_rest.any(axis=2))
        single = self.by_rest[factor, rested, m] * free[factor]
        row = np.zeros(self.by_rest.shape[:2], np.intp)
        row[factor, rested] = np.arange(len(factor))
        broker, weight = self.at_rest[:, 0], self.at_rest[:, 3 + m].astype(np.float64)
        # What rests now is less than at first if brokers have lost some of it, and does not include what is fixed.
        at_first = np.bincount(broker, weight, len(self.load))
        rests = weight * ((self.load - fixed.load)[:, m] / np.maximum(at_first, 1))[broker]
        limits = self.racks.limits[factor] + self.racks.tightest + rested % self.racks.offsets
        of_rack = np.repeat((single * limits)[:, None], int(unit.max(initial=NOBODY)) + 1, axis=1)
        of_class = row[self.at_rest[:, 1], self.at_rest[:, 2]]
        np.subtract.at(of_rack, (of_class, unit[broker]), rests)
        wanted = single * factor - np.bincount(of_class, rests, len(factor))
        return Rooms(np.maximum(wanted, 0.0), single, np.maximum(of_rack, 0.0))


def _by_factor(first: Tally) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the weights by wanted factor, those at rest, and all by how many rest, as in `_Shared`."""
    rows, width = first["all_at_rest"], len(MEASURES)
    keys, inverse = np.unique(rows[:, :-width], axis=0, return_inverse=True)
    weights = [sums(inverse.astype(np.int32), rows[:, m - width], len(keys)) for m in range(width)]
    return first["by_rest"].sum(axis=1), np.column_stack([keys, *weights]), first["by_rest"]


def _bounds(share: NDArray[np.float64], tolerance: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    low, high = bounds(share, tolerance)
    low[:, REPLICAS], high[:, REPLICAS] = whole_bounds(share[:, REPLICAS], tolerance)
    # A measure without data has no bounds.
    unknown = share.max(axis=0) <= 1.0
    unknown[REPLICAS] = False
    low[:, unknown], high[:, unknown] = 0, UNBOUNDED
    return low, high
