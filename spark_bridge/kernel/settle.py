"""Small clusters, planned until planning again would change nothing.

Here annealing makes up for what greedy steps lose. As it is no descent, a second plan could find still more evenness
where not all of it was found the first time; so the plan is planned again until it stays as it is, or until the work
that one plan may take is done.
"""

from __future__ import annotations

import numpy as np
from attrs import define, evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.descend import LITTLE, MOST_WORK, Descend
from spark_bridge.kernel.level import TOGETHER_AND_ALONE, Level, levels
from spark_bridge.kernel.polish import cheapen, polish, steps_for, steps_to_cheapen
from spark_bridge.kernel.tally import Step, Tally, cost, loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.kernel.walls import WallsFrom
from spark_bridge.model.block import NOBODY, Block

_ALONE = Turn(0, 1, 1)
_WORTH_IT = 0.98
"""A plan that leaves more than this part of the violation is not worth what it moves; so planning again ends soon."""

_MOST_STEPS = 410_000
"""The steps of annealing in one plan, those of planning it again included."""


@define
class Work:
    """The work that is left: changes that descents may weigh up, and steps of annealing.

    Attributes:
        changes: The changes.
        steps: The steps.
        is_over: Whether more was wanted of one of them.
    """

    changes: int
    steps: int
    is_over: bool = False

    def take(self, steps: int) -> int:
        """Return how many of some steps may be done, and count them."""
        taken = min(steps, self.steps)
        self.steps -= taken
        self.is_over |= taken < steps
        return taken


@frozen(eq=False)
class Settle:
    """The only step of a small cluster's plan, after the forced moves.

    Attributes:
        terms: The terms.
        bound: No plan costs less.
        walls_from: Returns the walls for planning again.
    """

    terms: Terms
    bound: int
    walls_from: WallsFrom

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Plan the one block there is; as a tally, return the loads, and whether work ended it (`max_cut`).

        Lists are sorted, so that the plan does not depend on their order, which the choice of leaders changes later. It
        is not worth it where brokers are only filled: few of these plans leave anything for planning again to look at.
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
        """Return the block with sorted lists, NOBODY at their ends, if brokers have to end below their bounds."""
        if not self.terms.sheds.any():
            return block
        last = np.where(block.after == NOBODY, np.iinfo(np.int32).max, block.after)
        return block.with_after(np.take_along_axis(block.after, np.argsort(last, axis=1, kind="stable"), axis=1))

    def _planned(self, block: Block, base: Block, terms: Terms, work: Work) -> Block | None:
        """Return the block with the plan for a base of the same partitions, None where that is not worth it."""
        evened = self._evening(base, terms, work).evened(base)
        if evened is None:
            return None
        return self._evening(block, self.terms, work).cheapened(block.with_after(evened.after))

    def _evening(self, block: Block, terms: Terms, work: Work) -> _Evening:
        terms = terms.with_nobody_pushed(loads(block, len(terms.rack), before=True))
        return _Evening(terms, self.bound, work)


@frozen(eq=False)
class _Evening:
    """A plan in the making, under the terms for the loads that it began with."""

    terms: Terms
    bound: int
    work: Work

    def evened(self, block: Block) -> Block | None:
        """Return the block as even as it gets, None where that is not worth it."""
        changed = self._improved(block)
        if self.terms.walls.are_passed(self._load(block), self._load(changed)):
            changed = self._improved(block, within_walls=True)
        out, left = (self._out(self._load(b)) for b in (block, changed))
        return changed if left < out * _WORTH_IT else None

    def cheapened(self, block: Block) -> Block:
        """Return the block with a plan that costs less, and is as even."""
        if cost(block, self.terms.price) <= self.bound:
            return block
        cheaper = cheapen(block, self.terms, self.bound, self.work.take(steps_to_cheapen(block)))
        # Annealing takes what floats cannot tell from nothing for nothing.
        return cheaper if self._out(self._load(cheaper)) <= self._out(self._load(block)) else block

    def _improved(self, block: Block, *, within_walls: bool = False) -> Block:
        if not self._out(self._load(block)):
            return block
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

    def _if_better(self, block: Block, step: Step, *, within_walls: bool) -> Block:
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
        """Return how far all brokers are out of bounds together."""
        return float(self.terms.violation(load).sum())
