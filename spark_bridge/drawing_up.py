"""The terms of a plan, drawn up from what all blocks hold together and from their oversized replicas."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine
from spark_bridge.kernel.oversized import oversized, relocate
from spark_bridge.kernel.tally import Tally, loads, sums
from spark_bridge.kernel.terms import Terms, make_terms, matches, wanted_factors
from spark_bridge.model.block import MEASURES, Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import MOST_REPLICAS, Goal


@frozen(eq=False)
class AtFirst:
    """Asks for the loads before the plan, the weights by wanted replication factor, and the topics' matches."""

    brokers: int
    goal: Goal

    def __call__(self, number: int, block: Block) -> Tally:
        """Ask a block."""
        del number
        factor = np.minimum(wanted_factors(block, self.goal.replication_factor, self.goal.topics), MOST_REPLICAS)
        by_factor = [sums(factor, block.weights[:, m], MOST_REPLICAS + 1) for m in range(len(MEASURES))]
        return {
            "load": loads(block, self.brokers, before=True),
            "by_factor": np.stack(by_factor, axis=1),
            "max_weight": block.weights.max(axis=0, initial=0),
            "matched": matches(block, self.goal.topics),
            "leaders": sums(block.before[:, 0], np.ones(len(block), np.int64), self.brokers),
        }


@frozen(eq=False)
class DrawnUp:
    """Draws up terms from what blocks hold before the plan (`first`, see `AtFirst`)."""

    engine: Engine
    brokers: Brokers
    goal: Goal
    first: Tally

    def plain(self, load: NDArray[np.int64]) -> Terms:
        """Return the terms for what brokers have now, as if no replica was oversized."""
        return make_terms(self.brokers, self.goal, load, self.first["by_factor"])

    def terms(self, load: NDArray[np.int64]) -> tuple[Terms, NDArray[np.int64]]:
        """Return the terms for what brokers have now, and what moves before all else (see `relocate`)."""
        plain = self.plain(load)
        found = oversized(self.engine, plain, self.first["max_weight"])
        if not len(found.place):
            return plain, np.zeros((0, 4), np.int64)
        placed, moves = relocate(found, plain, load)
        fixed = placed.fixed(len(load))
        return make_terms(self.brokers, self.goal, load, self.first["by_factor"], fixed), moves
