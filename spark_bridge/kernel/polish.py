"""Polishing of small plans: annealing that looks for a lower price at the same evenness, or for more evenness.

Bulk moves and descent are greedy: where a broker holds ten replicas, the choice of each matters, and a few per cent of
bytes are lost. Here replicas move and swap at random, from fixed seeds, and what is best of all that was met is the
plan: first by violation, then by price, then by how few partitions lose all of their replicas at once.

Several plans are annealed side by side, each at its own temperature, and neighbours change places now and then: hot
ones get over what separates one even plan from the next, cold ones make them cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp
from random import Random

import numpy as np

from spark_bridge.kernel.annealing import Annealing
from spark_bridge.kernel.tally import loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import NOBODY, Block

_STEPS_PER_PLACE = 3_333
_MOST_STEPS = 80_000
"""The steps of all plans together: for each place, and at most."""

_TO_CHEAPEN = 3
"""The search for a lower price takes so many times as many steps."""

_CHEAPENED = 2
"""The number of searches for a lower price, each from another seed."""

_STEPS_BETWEEN = 100
"""How many steps each plan takes before neighbours may change places."""

_MOST_PLANS = 3
_PLACES = 600
"""As many plans are annealed as this many places hold: the smaller a plan, the more a single choice weighs."""

_COLDEST, _HOTTEST = 0.4, 8.0
_COOLED = 0.03
"""Temperatures at the start, in mean replicas moved, and which part of them is left at the end."""


def steps_for(block: Block) -> int:
    """Return how many steps it takes to polish a block for more evenness."""
    return min(_MOST_STEPS, _STEPS_PER_PLACE * max(1, _places(block)) * _count(block))


def polish(block: Block, terms: Terms, bound: int, steps: int, seed: int = 1) -> Block:
    """Return the block with the best plan met.

    Args:
        block: All partitions of a small cluster, planned.
        terms: The terms.
        bound: No plan costs less: who reaches it is done.
        steps: How many steps all plans together take.
        seed: Where chance begins.
    """
    seeds = Random(seed)
    plans = [Annealing.of(block, terms, Random(seeds.random())) for _ in range(_count(block))]
    _anneal(plans, steps // len(plans), bound, seeds)
    best = min(plans, key=lambda plan: plan.best_value).best
    return block.with_after(np.array(best, np.int32).reshape(block.after.shape))


def _places(block: Block) -> int:
    return int(np.count_nonzero(block.after != NOBODY))


def _count(block: Block) -> int:
    """Return how many plans of a block are annealed side by side."""
    return max(1, min(_MOST_PLANS, _PLACES // max(1, _places(block))))


def cheapen(block: Block, terms: Terms, bound: int, steps: int) -> Block:
    """Return the block with a plan that costs less and takes no broker farther out of bounds.

    Where not every broker can be within its bounds, this gives up what was not reached: it looks for no more evenness.
    """
    for time in range(_CHEAPENED):
        block = polish(block, terms.eased_to(loads(block, len(terms.rack))), bound, steps // _CHEAPENED, seed=2 + time)
    return block


def steps_to_cheapen(block: Block) -> int:
    """Return how many steps it takes to polish a block for a lower price."""
    return _TO_CHEAPEN * steps_for(block)


def _anneal(plans: list[Annealing], steps: int, bound: int, rng: Random) -> None:
    ladder = [_COLDEST * (_HOTTEST / _COLDEST) ** (n / max(1, len(plans) - 1)) for n in range(len(plans))]
    turns = steps // _STEPS_BETWEEN
    for turn in range(turns):
        temperatures = [warm * _COOLED ** (turn / turns) for warm in ladder]
        for plan, temperature in zip(plans, temperatures, strict=True):
            plan.run(_STEPS_BETWEEN, temperature)
        if min(plan.best_value for plan in plans) <= (0.0, bound, 0):
            break
        _change_places(plans, temperatures, turn % 2, rng)


def _change_places(plans: list[Annealing], temperatures: Sequence[float], first: int, rng: Random) -> None:
    """Let every other pair of neighbours change places, the surer the more it cools the better of the two."""
    for colder, hotter in list(pairwise(range(len(plans))))[first::2]:
        energy = plans[colder].energy - plans[hotter].energy
        gain = energy * (1 / temperatures[colder] - 1 / temperatures[hotter])
        if gain >= 0 or rng.random() < exp(gain):
            plans[colder], plans[hotter] = plans[hotter], plans[colder]
