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
from spark_bridge.kernel.polish import cheapen, polish
from spark_bridge.kernel.tally import Step, Tally, cost, loads
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
        planned = self._planned(block, block) or block
        while (again := self._planned(block, evolve(planned, before=planned.after))) is not None:
            planned = again
        return planned, {"load": loads(planned, len(self.terms.rack))}

    def _planned(self, block: Block, base: Block) -> Block | None:
        """Return the block with the plan for a base of the same partitions, None where that is not worth it."""
        evened = self._evening(base).evened(base)
        return None if evened is None else self._evening(block).cheapened(block.with_after(evened.after))

    def _evening(self, block: Block) -> _Evening:
        return _Evening(self.terms.with_nobody_pushed(loads(block, len(self.terms.rack), before=True)), self.bound)


@frozen(eq=False)
class _Evening:
    """A plan in the making, under terms that tell of everyone's bounds."""

    terms: Terms
    bound: int

    def evened(self, block: Block) -> Block | None:
        """Return the block as even as it gets, None where that is not worth it."""
        changed = self._improved(block)
        out, left = (self._out(self._load(b)) for b in (block, changed))
        return changed if left < out * _WORTH_IT else None

    def cheapened(self, block: Block) -> Block:
        """Return the block with a plan that costs less, and is as even."""
        if cost(block, self.terms.price) <= self.bound:
            return block
        cheaper = cheapen(block, self.terms, self.bound)
        # Annealing takes what floats cannot tell from nothing for nothing.
        return cheaper if self._out(self._load(cheaper)) <= self._out(self._load(block)) else block

    def _improved(self, block: Block) -> Block:
        if not self._out(self._load(block)):
            return block
        for measures in TOGETHER_AND_ALONE:
            load = self._load(block)
            at = levels(self.terms, load, measures)
            block = self._if_better(block, Level(self.terms, load, _ALONE, at, measures))
        block = self._descended(block)
        if self._out(self._load(block)) or cost(block, self.terms.price) > self.bound:
            block = self._descended(polish(block, self.terms, self.bound))
        return block

    def _if_better(self, block: Block, step: Step) -> Block:
        tried, tally = step(0, block)
        return tried if self._out(tally["load"]) < self._out(self._load(block)) else block

    def _descended(self, block: Block) -> Block:
        return Descend(self.terms, self._load(block), _ALONE)(0, block)[0]

    def _load(self, block: Block) -> NDArray[np.int64]:
        return loads(block, len(self.terms.rack))

    def _out(self, load: NDArray[np.int64]) -> float:
        """Return how far all brokers are out of bounds together."""
        return float(self.terms.violation(load).sum())
