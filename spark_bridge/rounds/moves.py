"""The rounds of a plan that move replicas.

The driver decides from broker-sized sums; data that grows with the number of partitions stays in the blocks.

1. Ask for the loads, and draw up the terms.
2. Deal the forced moves.
3. Level: bulk moves in rounds with fewer and fewer copies (see `view`), until every broker is within bounds or a
   round moves nothing.
4. Descend: single moves and swaps where something is still out of bounds.

Then leaders are chosen (see `leaders`).
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Protocol

import numpy as np
from attrs import define, evolve, frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine, taken
from spark_bridge.kernel.descend import LITTLE, MOST_WORK, Descend
from spark_bridge.kernel.level import TOGETHER_AND_ALONE, Level, levels
from spark_bridge.kernel.lower_bound import Costs, lower_bound
from spark_bridge.kernel.oversized import Relocate
from spark_bridge.kernel.rights import racks_of
from spark_bridge.kernel.settle import Settle
from spark_bridge.kernel.sparing import Unrepaired
from spark_bridge.kernel.tally import BlockStep, Tally, cost
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.kernel.walls import WallsFrom
from spark_bridge.model.block import REPLICAS, Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import FORCED_ONLY, Goal, GoalKind
from spark_bridge.progress import OnProgress, Progress
from spark_bridge.rounds.dealing import deal, redeal
from spark_bridge.rounds.drawing_up import AtFirst, DrawnUp, Tighter
from spark_bridge.rounds.evenness import walls_of
from spark_bridge.rounds.refusals import Unplaced, refuse_additions, refuse_unmatched, refuse_unplaced

MOST_SETTLED = 5_000
"""A cluster of up to this number of partitions, in one block, is planned in one step (see `settle`)."""

_HARDLY = 0.001
"""Bulk moves are made only for violations above this part of a share, on average over the brokers."""

_CYCLES = 5
_DESCENTS = 3
_LEVELLED, _DESCENDED = 0.8, 0.98
"""A round of levelling or descent that leaves more than this part of the violation is not worth its moves."""


@frozen(eq=False)
class Bounds:
    """The bounds that a plan was held to, and the loads at its stages.

    Attributes:
        terms: The terms.
        lower_bound: The least cost (see `Terms.price`) of any plan that comes as close to the bounds for every broker.
        before: (B, 3) the loads before the plan.
        dealt: (B, 3) the loads after the forced moves.
        after: (B, 3) the loads as planned.
        leaders: (B) the leaders before the plan.
        heaviest: (3) the weights of the heaviest replica.
        is_cut: Whether the limit on work ended the search.
        unrepaired: The number of partitions left with too many replicas in a rack, because disks have no room.
    """

    terms: Terms
    lower_bound: int
    before: NDArray[np.int64]
    dealt: NDArray[np.int64]
    after: NDArray[np.int64]
    leaders: NDArray[np.int64]
    heaviest: NDArray[np.int64]
    is_cut: bool
    unrepaired: int = 0


class Evening(Enum):
    """The steps that evening out may take.

    A free plan may make a measure less even in an intermediate step. If it ends less even, the plan is made again with
    only the steps that respect the walls, and if that fails too, with none.
    """

    FREE = "free"
    WITHIN_WALLS = "within walls"
    NONE = "none"


class Sparing(Enum):
    """The repairs of racks that a plan may leave out.

    If disks have no room for all forced moves, the plan is made again without the repairs that find no place, and if
    that does not suffice, without any.
    """

    NOTHING = "nothing"
    UNPLACED = "those without a place"
    ALL = "all"


@frozen
class Cost:
    """The query for what the plan moves, in bytes or in another measure (see `Terms.price`)."""

    price: int

    def __call__(self, number: int, block: Block) -> Tally:
        """Return the cost of a block's plan."""
        del number
        return {"cost": np.array([cost(block, self.price)])}


@frozen
class Afresh:
    """The step that discards the plan."""

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Reset a block to the lists before the plan; the tally is empty."""
        del number
        return block.with_after(block.before), {}


def plan_moves(
    engine: Engine,
    brokers: Brokers,
    goal: Goal,
    progress: OnProgress = lambda _: None,
    evening: Evening = Evening.FREE,
) -> Bounds:
    """Move replicas in an engine's blocks, in which nothing is planned yet; leaders are chosen later.

    Where brokers at rest keep replicas that leave racks a smaller limit (see `racks`), forced moves cost the same with
    and without it, unless disks have no room. Evening out may cost more, so it is planned both ways, and the smaller
    limit holds if the plan does not cost more.

    Raises:
        PlanError: The goal cannot be planned for this cluster.
    """
    refuse_additions(brokers, goal)
    for sparing in Sparing:
        try:
            return _beside_rests(
                engine, brokers, goal, partial(_moved, engine, brokers, goal, progress, evening, sparing)
            )
        except Unplaced as refused:
            if sparing is Sparing.ALL or not refused.repairs:
                raise
            engine.step(Afresh())
    raise AssertionError("the last attempt returns or raises")


def _beside_rests(engine: Engine, brokers: Brokers, goal: Goal, attempt: _Attempt) -> Bounds:
    """Plan with the smaller limits of racks, without them, or both ways (see `plan_moves`)."""
    racks = racks_of(brokers, goal)
    if not racks.tightest or not engine.ask(Tighter(racks, goal))["tighter"].any():
        return attempt(counts_rests=True)
    if goal.kind in FORCED_ONLY:
        try:
            return attempt(counts_rests=True)
        except Unplaced:
            # Disks may have room where racks hold more.
            engine.step(Afresh())
            return attempt(counts_rests=False)
    plain = attempt(counts_rests=False)
    least = _cost(engine, plain)
    engine.step(Afresh())
    with suppress(Unplaced):
        counting = attempt(counts_rests=True)
        if _cost(engine, counting) <= least:
            return counting
    engine.step(Afresh())
    return attempt(counts_rests=False)


def _cost(engine: Engine, bounds: Bounds) -> int:
    return int(engine.ask(Cost(bounds.terms.price))["cost"][0])


def _moved(
    engine: Engine,
    brokers: Brokers,
    goal: Goal,
    progress: OnProgress,
    evening: Evening,
    sparing: Sparing,
    *,
    counts_rests: bool,
) -> Bounds:
    """Move replicas; in racks, count what brokers at rest keep, or not (see `racks`)."""
    progress(Progress("summing loads"))
    first = engine.ask(AtFirst.of(brokers, goal, counts_rests=counts_rests))
    refuse_unmatched(engine, goal.topics, first["matched"])
    before = first["load"]
    drawn_up = DrawnUp(engine, brokers, goal, first, counts_rests, repairs=sparing is not Sparing.ALL)
    plain = drawn_up.plain(before)
    if goal.kind is GoalKind.LEADERS:
        return Bounds(plain, 0, before, before, before, first["leaders"], first["max_weight"], is_cut=False)
    asked, moves = drawn_up.terms(before, plain)
    costs = engine.ask(Costs(asked, before))
    terms, load = asked, before
    if changed := int(costs["forced"][1]):
        progress(Progress("dealing forced moves"))
        load, unplaced = deal(engine, plain, before, changed, spares=sparing is Sparing.UNPLACED)
        refuse_unplaced(engine, unplaced, brokers, terms)
        # What excluded brokers keep, and which brokers hold the oversized replicas, is known only after dealing.
        terms, moves = drawn_up.terms(load, drawn_up.plain(load))
    dealt = load
    if len(moves) and evening is not Evening.NONE:
        load = taken(engine, Relocate(moves, len(brokers)))["load"]
    walls_from = partial(walls_of, terms, goal, first["max_weight"])
    terms = evolve(terms, walls=walls_from(before, dealt))
    rounds = _Rounds(engine, terms, load, walls_from, progress, evening is Evening.WITHIN_WALLS, MOST_WORK)
    is_small = engine.blocks == 1 and int(first["by_rest"][:, :, REPLICAS].sum()) <= MOST_SETTLED
    if evening is not Evening.NONE and is_small:
        rounds.settle(lower_bound(asked, before, costs, terms))
    elif evening is not Evening.NONE:
        rounds.run()
    after = rounds.load
    if changed and goal.kind in FORCED_ONLY:
        after = redeal(engine, terms, rounds.load, progress)
        # Dealing again may leave excluded brokers with more than they kept at first.
        terms = drawn_up.plain(after)
    # The bound ignores what this plan did with oversized replicas, because other plans may place them elsewhere.
    least = lower_bound(asked, before, costs, terms.eased_to(after), plain)
    leaders, heaviest = first["leaders"], first["max_weight"]
    bounds = Bounds(terms, least, before, dealt, after, leaders, heaviest, rounds.is_cut)
    return bounds if sparing is Sparing.NOTHING else _with_unrepaired(engine, bounds)


def _with_unrepaired(engine: Engine, bounds: Bounds) -> Bounds:
    """Count the repairs that were left out; what they would have moved does not count as the least of any plan."""
    unrepaired = int(engine.ask(Unrepaired(bounds.terms))["unrepaired"][0])
    return evolve(bounds, unrepaired=unrepaired, lower_bound=min(bounds.lower_bound, _cost(engine, bounds)))


@frozen(eq=False)
class Anew:
    """A step that starts from the planned assignment as if it were the current one."""

    step: BlockStep

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Perform the step in a block."""
        done, tally = self.step(number, evolve(block, before=block.after))
        return block.with_after(done.after), tally


class _Attempt(Protocol):
    """Plans all moves; in racks, counts what brokers at rest keep, or not."""

    def __call__(self, *, counts_rests: bool) -> Bounds: ...


@define(eq=False)
class _Rounds:
    """The rounds of evening out."""

    engine: Engine
    terms: Terms
    load: NDArray[np.int64]
    walls_from: WallsFrom
    progress: OnProgress
    within_walls: bool
    work: int
    is_cut: bool = False

    def out(self, load: NDArray[np.int64]) -> float:
        return float(self.terms.violation(load).sum())

    def settle(self, bound: int) -> None:
        """Plan a small cluster in one step."""
        settled = taken(self.engine, Settle(self.terms, bound, self.walls_from))
        self.load, self.is_cut = settled["load"], bool(settled["max_cut"][0])

    def run(self) -> None:
        """Level and descend until planning again from the result would change nothing."""
        for cycle in range(_CYCLES):
            if not self._cycle(cycle):
                break
        while self._again():
            pass

    def _again(self) -> bool:
        """Level and descend as a plan that starts from the planned assignment; return whether that changed anything."""
        self.terms = evolve(self.terms, walls=self.walls_from(self.load))
        return self._cycle(0, anew=True)

    def _cycle(self, cycle: int, *, anew: bool = False) -> bool:
        """Level and descend once; return whether that changed anything.

        In a cluster of one block, descent comes first if little is out of bounds: its single moves cost less than bulk
        moves.
        """
        if self.engine.blocks == 1 and self.out(self.load) < LITTLE * len(self.load):
            changed = self._descend(cycle, anew=anew)
            return self._level(anew=anew) | changed
        changed = self._level(anew=anew)
        return self._descend(cycle, anew=anew) | changed

    def _level(self, *, anew: bool) -> bool:
        changed = False
        turns = [(copies, measures) for copies in schedule(self.engine.blocks) for measures in TOGETHER_AND_ALONE]
        for number, (copies, measures) in enumerate(turns):
            out = self.terms.violations(self.load)[:, measures].sum()
            # Bulk moves would cost more than so small a violation is worth; descent removes it.
            if out < _HARDLY * len(self.load):
                continue
            self._report("again: levelling" if anew else "levelling", number, None if anew else len(turns))
            turn = Turn(1 + number, self.engine.blocks, copies)
            level = Level(self.terms, self.load, turn, levels(self.terms, self.load, measures), measures)
            changed |= self._step(level, _LEVELLED, anew=anew)
        return changed

    def _descend(self, cycle: int, *, anew: bool) -> bool:
        changed = False
        for number in range(_DESCENTS):
            if self.work and self.out(self.load):
                left, nth = None if anew else _CYCLES * _DESCENTS, cycle * _DESCENTS + number
                self._report("again: descending" if anew else "descending", nth, left)
                # A different turn for each descent brings other brokers together in a block.
                descend = Descend(self.terms, self.load, Turn(101 + nth, self.engine.blocks, 1), self.work)
                changed |= self._step(descend, _DESCENDED, anew=anew)
        return changed

    def _report(self, phase: str, number: int, rounds: int | None) -> None:
        out = int(np.count_nonzero(self.terms.violation(self.load)))
        brokers = "broker" if out == 1 else "brokers"
        self.progress(Progress(phase, number + 1, rounds, f"{out} {brokers} out of bounds"))

    def _step(self, step: BlockStep, part: float, *, anew: bool = False) -> bool:
        """Perform a step, and keep it if it leaves less than a part of the violation; return whether it was kept."""
        out, walls = self.out(self.load), self.terms.walls

        def accept(tally: Tally) -> bool:
            # A step that is not kept has also used up work.
            self._count(tally)
            barred = self.within_walls and walls.are_passed(self.load, tally["load"])
            return not barred and self.out(tally["load"]) < part * out

        tally = self.engine.step(Anew(step) if anew else step, accept)
        if tally is not None:
            self.load = tally["load"]
        return tally is not None

    def _count(self, tally: Tally) -> None:
        """Subtract the work of a step that reports it."""
        if "max_work" in tally:
            self.work = max(0, self.work - int(tally["max_work"][0]))
            self.is_cut |= bool(tally["max_cut"][0])


def schedule(blocks: int) -> list[int]:
    """Return the number of copies in each round of levelling (see `view`): first all blocks at once, finally one."""
    copies = [blocks]
    while copies[-1] > 1:
        copies.append(max(1, copies[-1] // 8))
    return copies
