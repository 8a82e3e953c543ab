"""The rights of brokers under a goal: which receive, lose or keep replicas, and how many of a partition racks hold.

A broker that does not serve may return with all that it has, and its rack may be where the other replicas are not. So
it keeps its replicas, even those that its rack has too many of, unless the goal removes it or says that dead is gone.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.racks import limits_beside, rack_limits, surplus
from spark_bridge.model.block import NOBODY
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.model.lists import counts

_CROWDS, _TIGHTER = 8, 3
"""How far from the limit of its factor a rack may be filled at most and at least, where partitions are told apart."""


def receiving_and_leaving(brokers: Brokers, goal: Goal) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return (B) the brokers that may receive, and those that are draining, removed, or dead and gone."""
    leaves = brokers.in_state(BrokerState.DRAINING)
    leaves[brokers.indices(goal.brokers)] |= goal.kind is GoalKind.REMOVE_BROKERS
    if goal.dead_is_gone:
        leaves |= ~brokers.serves
    live = brokers.in_state(BrokerState.LIVE) & brokers.serves & ~leaves
    live[brokers.indices(goal.exclude)] = False
    return live, leaves


def keeping(brokers: Brokers, goal: Goal) -> NDArray[np.bool_]:
    """Return (B) the brokers that do not serve and keep their replicas, also those above the limit of their rack."""
    _, leaves = receiving_and_leaving(brokers, goal)
    moves = leaves & goal.mends
    if goal.kind is GoalKind.RELIEVE and goal.dead_is_gone:
        moves[brokers.indices(goal.brokers)] = True
    return ~brokers.serves & ~moves


def resting(brokers: Brokers, goal: Goal) -> NDArray[np.bool_]:
    """Return (B) the brokers that neither receive nor lose replicas."""
    live, leaves = receiving_and_leaving(brokers, goal)
    if goal.mends:
        return ~(live | leaves)
    # Draining brokers keep what they have under these goals. What relieved brokers have may leave, so it is shared out.
    rests = ~live
    rests[brokers.indices(goal.brokers)] = False
    return rests | keeping(brokers, goal)


@frozen(eq=False)
class Racks:
    """The racks of brokers, and what each may hold.

    The limit of a partition depends on what brokers at rest keep of it (see `limits_beside`). A partition's crowd, the
    number of its replicas that are above this limit and need not move, adds to what each rack may hold of it: those
    between both limits, and with a goal that repairs no racks, all above it.

    Attributes:
        rack: (B) rack numbers, negative without a rack.
        limits: Rack limits (see `rack_limits`).
        receives: (B) the brokers that may receive.
        rests: (B) the brokers that neither receive nor lose replicas; none if what they keep does not count.
        leaves: (B) the brokers that lose all replicas under the goal.
        keeps: (B) the brokers that lose none, even if their rack has too many (see `keeping`).
        repairs: Whether racks are repaired.
        tightest, offsets: Partitions are told apart by how much more a rack may hold of them than the limit of their
            factor: the least such number, 0 or less, and how many numbers there are; 1 where all are 0.
    """

    rack: NDArray[np.int32]
    limits: NDArray[np.int32]
    receives: NDArray[np.bool_]
    rests: NDArray[np.bool_]
    leaves: NDArray[np.bool_]
    keeps: NDArray[np.bool_]
    repairs: bool
    tightest: int
    offsets: int

    def beside(self, before: NDArray[np.int32], factors: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return (P) the limits of partitions, given the lists (P, R) before the plan and the wanted factors."""
        return limits_beside(before, factors, self.rack, self.receives, self.rests, self.limits)

    def offset(self, before: NDArray[np.int32], factors: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (P) how much more than the least number a rack may hold, given the lists (P, R) before the plan."""
        if self.offsets == 1:
            return np.zeros(len(before), np.int64)
        limits = self.limits[factors]
        limit = self.beside(before, factors)
        stays = np.where((before != NOBODY) & self.leaves[before], NOBODY, before)
        alike = np.zeros(len(self.rack))
        crowd = counts(surplus(stays, self.rack, limit, alike, self.keeps))
        if self.repairs:
            crowd -= counts(surplus(stays, self.rack, limits, alike, self.keeps))
        return np.asarray(np.clip(limit + crowd - limits - self.tightest, 0, self.offsets - 1))


def racks_of(brokers: Brokers, goal: Goal, *, counts_rests: bool = True) -> Racks:
    """Return the racks that a goal knows, and whether what brokers at rest keep counts in them."""
    rack = brokers.rack if goal.racks else np.full(len(brokers), NOBODY, np.int32)
    live, leaves = receiving_and_leaving(brokers, goal)
    rests = resting(brokers, goal) if counts_rests else np.zeros_like(live)
    has_racks = bool((rack >= 0).any())
    tightest = -_TIGHTER if has_racks and rests.any() else 0
    counts_crowds = has_racks and bool(goal.kind is GoalKind.RELIEVE or rests.any())
    return Racks(
        rack=rack,
        limits=rack_limits(rack, live),
        receives=live,
        rests=rests,
        leaves=leaves & goal.mends,
        keeps=keeping(brokers, goal),
        repairs=goal.racks and goal.mends,
        tightest=tightest,
        offsets=_CROWDS - tightest if counts_crowds else 1,
    )
