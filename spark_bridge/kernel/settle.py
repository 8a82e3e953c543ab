"""Small clusters, planned until planning again would change nothing.

Annealing recovers what greedy steps miss. Since it is random, planning again could find more evenness that was missed
the first time. So the plan is made again from its own result, until it no longer changes or the limit on work is
reached.
"""

from __future__ import annotations

import numpy as np
from attrs import define, evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.descend import LITTLE, MOST_WORK, Descend
from spark_bridge.kernel.level import TOGETHER_AND_ALONE, Level, levels
from spark_bridge.kernel.polish import cheapen, polish, steps_for, steps_to_cheapen
from spark_bridge.kernel.tally import BlockStep, Tally, cost, loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.kernel.walls import WallsFrom
from spark_bridge.model.block import NOBODY, Block

_ALONE = Turn(0, 1, 1)
_WORTH_IT = 0.98
"""A plan that leaves more than this part of the violation is not worth its moves; so planning again ends soon."""

_MOST_STEPS = 410_000
"""The most annealing steps of one plan, including those of planning again."""


@define
class Work:
    """The remaining work.

    Attributes:
        changes: The number of changes that descents may consider.
        steps: The number of annealing steps.
        is_over: Whether more of either was needed.
    """

    changes: int
    steps: int
    is_over: bool = False

    def take(self, steps: int) -> int:
        """Return how many of the requested steps remain, and subtract them."""
        taken = min(steps, self.steps)
        self.steps -= taken
        self.is_over |= taken < steps
        return taken


@frozen(eq=False)
class Settle:
    """The only step of a small cluster's plan, after the forced moves.

    Attributes:
        terms: The terms.
        bound: A lower bound of the cost of any plan.
        walls_from: Returns the walls for planning again.
    """

    terms: Terms
    bound: int
    walls_from: WallsFrom

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Plan the only block; the tally is the loads, and whether the limit on work ended planning (`max_cut`).

        Lists are sorted first, so that the plan does not depend on their order, which the choice of leaders changes
        later. Plans that only fill brokers are not worth it, because few of them leave anything to do for planning
        again.
        """
        del number
        work, block = Work(MOST_WORK, _MOST_STEPS), self._in_one_order(block)
        planned = self._planned(block, block, self.terms, work) or block
        while True:
            planned = self._in_one_order(planned)
            terms = evolve(self.terms, walls=self.walls_from(loads(planned, len(self.terms.rack))))
            again = self._planned(block, evolve(planned, before=planned.after), terms, work)
            if again is None:
                break
            planned = again
        return planned, {"load": loads(planned, len(self.terms.rack)), "max_cut": np.array([int(work.is_over)])}

    def _in_one_order(self, block: Block) -> Block:
        """Return the block with sorted lists, NOBODY at their ends, if brokers must end below their bounds."""
        if not self.terms.sheds.any():
            return block
        last = np.where(block.after == NOBODY, np.iinfo(np.int32).max, block.after)
        return block.with_after(np.take_along_axis(block.after, np.argsort(last, axis=1, kind="stable"), axis=1))

    def _planned(self, block: Block, base: Block, terms: Terms, work: Work) -> Block | None:
        """Return the block with a plan that starts from `base`, the same partitions; None if it is not worth it."""
        evened = self._evening(base, terms, work).evened(base)
        if evened is None:
            return None
        return self._evening(block, self.terms, work).cheapened(block.with_after(evened.after))

    def _evening(self, block: Block, terms: Terms, work: Work) -> _Evening:
        terms = terms.with_nobody_pushed(loads(block, len(terms.rack), before=True))
        return _Evening(terms, self.bound, work)


@frozen(eq=False)
class _Evening:
    """The planning of a block, under the terms for the loads from which it starts."""

    terms: Terms
    bound: int
    work: Work

    def evened(self, block: Block) -> Block | None:
        """Return the block as even as possible, None if that is not worth the moves."""
        changed = self._improved(block)
        # The free plan makes a measure less even, so it is made again within the walls.
        if self.terms.walls.are_passed(self._load(block), self._load(changed)):
            changed = self._improved(block, within_walls=True)
        out, left = (self._out(self._load(b)) for b in (block, changed))
        return changed if left < out * _WORTH_IT else None

    def cheapened(self, block: Block) -> Block:
        """Return the block with a cheaper plan that is as even."""
        if cost(block, self.terms.price) <= self.bound:
            return block
        cheaper = cheapen(block, self.terms, self.bound, self.work.take(steps_to_cheapen(block)))
        # Annealing treats violations as zero that are too small for its floats, so the result is checked exactly.
        return cheaper if self._out(self._load(cheaper)) <= self._out(self._load(block)) else block

    def _improved(self, block: Block, *, within_walls: bool = False) -> Block:
        if not self._out(self._load(block)):
            return block
        # If little is out of bounds, the single moves of descent cost less than bulk moves, so they come first.
        if self._out(self._load(block)) < LITTLE * len(self.terms.rack):
            block = self._descended(block)
        for measures in TOGETHER_AND_ALONE:
            load = self._load(block)
            level = Level(self.terms, load, _ALONE, levels(self.terms, load, measures), measures)
            block = self._if_better(block, level, within_walls=within_walls)
        block = self._descended(block)
        if self._out(self._load(block)) or cost(block, self.terms.price) > self.bound:
            steps = self.work.take(steps_for(block))
            block = self._descended(polish(block, self.terms, self.bound, steps))
        return block

    def _if_better(self, block: Block, step: BlockStep, *, within_walls: bool) -> Block:
        tried, tally = step(0, block)
        load = self._load(block)
        if within_walls and self.terms.walls.are_passed(load, tally["load"]):
            return block
        return tried if self._out(tally["load"]) < self._out(load) else block

    def _descended(self, block: Block) -> Block:
        done, tally = Descend(self.terms, self._load(block), _ALONE, self.work.changes)(0, block)
        self.work.changes -= min(self.work.changes, int(tally["max_work"][0]))
        self.work.is_over |= bool(tally["max_cut"][0])
        return done

    def _load(self, block: Block) -> NDArray[np.int64]:
        return loads(block, len(self.terms.rack))

    def _out(self, load: NDArray[np.int64]) -> float:
        """Return the sum of how far brokers are out of bounds, in parts of their shares."""
        return float(self.terms.violation(load).sum())
