"""Small clusters, planned until planning again would change nothing.

Here annealing makes up for what greedy steps lose. As it is no descent, a second plan could find still more evenness
where not all of it was found the first time; so the plan is planned again until it stays as it is.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.descend import Descend
from spark_bridge.kernel.level import TOGETHER_AND_ALONE, Level, levels
from spark_bridge.kernel.polish import polish
from spark_bridge.kernel.tally import Step, Tally, loads, moved_bytes
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.model.block import Block

_ALONE = Turn(0, 1, 1)
_WORTH_IT = 0.98
"""A plan that leaves more than this part of the violation is not worth what it moves; so planning again ends soon."""


@frozen(eq=False)
class Settle:
    """The only step of a small cluster's plan, after the forced moves."""

    terms: Terms
    bound: int

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Plan the one block there is; as a tally, return the loads."""
        del number
        planned = self._if_worth_it(block, self._improved(block))
        while True:
            base = evolve(planned, before=planned.after)
            again = self._if_worth_it(base, self._improved(base))
            if again is base:
                break
            planned = again
        return block.with_after(planned.after), {"load": self._load(planned)}

    def _improved(self, block: Block) -> Block:
        load = self._load(block)
        if not self.out(load):
            return block
        for measures in TOGETHER_AND_ALONE:
            load = self._load(block)
            at = levels(self.terms, load, measures)
            block = self._if_better(block, Level(self.terms, load, _ALONE, at, measures))
        block = self._descended(block)
        load = self._load(block)
        if self.out(load) or moved_bytes(block) > self.bound:
            block = self._descended(polish(block, self.terms, load, self.bound))
        return block

    def _if_worth_it(self, block: Block, changed: Block) -> Block:
        out, left = (self.out(self._load(b)) for b in (block, changed))
        return changed if left < out * _WORTH_IT else block

    def _if_better(self, block: Block, step: Step) -> Block:
        tried, tally = step(0, block)
        return tried if self.out(tally["load"]) < self.out(self._load(block)) else block

    def _descended(self, block: Block) -> Block:
        return Descend(self.terms, self._load(block), _ALONE)(0, block)[0]

    def _load(self, block: Block) -> NDArray[np.int64]:
        return loads(block, len(self.terms.rack))

    def out(self, load: NDArray[np.int64]) -> float:
        """Return how far all brokers are out of bounds together."""
        return float(self.terms.violation(load).sum())
