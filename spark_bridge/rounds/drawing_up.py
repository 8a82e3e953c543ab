"""The terms of a plan, drawn up from the totals of all blocks and from their oversized replicas."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine
from spark_bridge.kernel.oversized import oversized, relocate
from spark_bridge.kernel.rights import Racks, racks_of, resting
from spark_bridge.kernel.tally import Tally, loads, sums
from spark_bridge.kernel.terms import Fixed, Terms, make_terms, matches, wanted_factors
from spark_bridge.model.block import MEASURES, NOBODY, Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import MOST_REPLICAS, Goal
from spark_bridge.model.lists import counts


@frozen(eq=False)
class AtFirst:
    """The query for the loads before the plan, the weights by wanted replication factor, and the topics' matches.

    A replica rests if its broker neither receives nor loses replicas. Weights are reported twice: in `by_rest` by how
    many replicas of a partition rest, and in `all_at_rest` by broker for those that rest. Both also tell partitions
    apart by what racks may hold of them (see `Racks.offset`).

    Attributes:
        rests: (B) the brokers that neither receive nor lose replicas.
        racks: The racks, and what they may hold.
        goal: The goal.
    """

    rests: NDArray[np.bool_]
    racks: Racks
    goal: Goal

    @classmethod
    def of(cls, brokers: Brokers, goal: Goal, *, counts_rests: bool = True) -> AtFirst:
        """Return the query for a cluster and a goal (see `racks_of`)."""
        return cls(resting(brokers, goal), racks_of(brokers, goal, counts_rests=counts_rests), goal)

    def __call__(self, number: int, block: Block) -> Tally:
        """Return the tally of a block."""
        del number
        factor = np.minimum(wanted_factors(block, self.goal.replication_factor, self.goal.topics), MOST_REPLICAS)
        # Usually no broker rests, and the lookup can be skipped.
        before = block.before if self.rests.any() else block.before[:, :0]
        rests = (before != NOBODY) & self.rests[before]
        rested = counts(rests) * self.racks.offsets + self.racks.offset(block.before, factor)
        return {
            "load": loads(block, len(self.rests), before=True),
            "by_rest": self._by_rest(block, factor, rested),
            "all_at_rest": self._at_rest(block, rests, factor, rested),
            "max_weight": block.weights.max(axis=0, initial=0),
            "matched": matches(block, self.goal.topics),
            "leaders": sums(block.before[:, 0], np.ones(len(block), np.int64), len(self.rests)),
        }

    def _by_rest(self, block: Block, factor: NDArray[np.int64], rested: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (MOST_REPLICAS + 1, E, 3) the weights of one replica of each, by factor and resting replicas."""
        _, factors, most = self._shape
        cell = factor * most + rested
        cells = [sums(cell, block.weights[:, m], factors * most) for m in range(len(MEASURES))]
        return np.stack(cells, axis=1).reshape(factors, most, len(MEASURES))

    def _at_rest(
        self, block: Block, rests: NDArray[np.bool_], factor: NDArray[np.int64], rested: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return (N, 6) broker, wanted factor, number of resting replicas, and the weights of all such replicas."""
        rows, columns = np.nonzero(rests)
        key = np.ravel_multi_index((block.before[rows, columns], factor[rows], rested[rows]), self._shape)
        keys, inverse = np.unique(key, return_inverse=True)
        place = inverse.astype(np.int32)
        weights = [sums(place, block.weights[rows, m], len(keys)) for m in range(len(MEASURES))]
        return np.column_stack([*np.unravel_index(keys, self._shape), *weights]).astype(np.int64)

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Return the number of brokers, of factors, and of possible counts of resting replicas and offsets."""
        most = min(int(np.count_nonzero(self.rests)), MOST_REPLICAS)
        return len(self.rests), MOST_REPLICAS + 1, (most + 1) * self.racks.offsets


@frozen(eq=False)
class Tighter:
    """The query for the number of partitions of which racks may hold less because brokers at rest keep some."""

    racks: Racks
    goal: Goal

    def __call__(self, number: int, block: Block) -> Tally:
        """Count the partitions of a block."""
        del number
        factor = np.minimum(wanted_factors(block, self.goal.replication_factor, self.goal.topics), MOST_REPLICAS)
        return {
            "tighter": np.array([np.count_nonzero(self.racks.beside(block.before, factor) < self.racks.limits[factor])])
        }


@frozen(eq=False)
class DrawnUp:
    """Draws up terms from the totals of blocks before the plan (`first`, see `AtFirst`)."""

    engine: Engine
    brokers: Brokers
    goal: Goal
    first: Tally
    counts_rests: bool = True
    repairs: bool = True

    def plain(self, load: NDArray[np.int64]) -> Terms:
        """Return the terms for the loads of brokers now, as if no replica were oversized."""
        return self._made(load)

    def terms(self, load: NDArray[np.int64], plain: Terms) -> tuple[Terms, NDArray[np.int64]]:
        """Return the terms for the loads of brokers now, and the moves of oversized replicas (see `relocate`).

        Args:
            load: (B, 3) the loads.
            plain: The terms for them as if no replica were oversized.
        """
        found = oversized(self.engine.ask, plain, self.first["max_weight"])
        if not len(found.place):
            return plain, np.zeros((0, 4), np.int64)
        placed, moves = relocate(found, plain, load)
        fixed = placed.fixed(len(load))
        return self._made(load, fixed), moves

    def _made(self, load: NDArray[np.int64], fixed: Fixed | None = None) -> Terms:
        terms = make_terms(self.brokers, self.goal, load, self.first, fixed, counts_rests=self.counts_rests)
        return evolve(terms, repairs=terms.repairs and self.repairs)
