"""Polishing of small plans: annealing that searches for a lower cost at the same evenness, or for more evenness.

Bulk moves and descent are greedy. If a broker holds ten replicas, the choice of each matters, and greedy steps lose a
few per cent of bytes. Here replicas move and swap at random, from fixed seeds. The plan is the best one found: first by
violation, then by cost, then by how few partitions lose all their replicas at once.

Several plans are annealed side by side, each at its own temperature, and neighbours change places now and then (replica
exchange). Hot plans overcome what separates one even plan from the next, and cold ones become cheaper.
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
"""The steps of all plans together: for each place of a replica list, and at most."""

_TO_CHEAPEN = 3
"""The steps of the search for a lower cost, as a multiple of those for more evenness."""

_CHEAPENED = 2
"""The number of searches for a lower cost, each from another seed."""

_STEPS_BETWEEN = 100
"""The number of steps of each plan before neighbours may change places."""

_MOST_PLANS = 3
_PLACES = 600
"""The number of plans is limited to this many places in total: the smaller a plan, the more each choice matters."""

_COLDEST, _HOTTEST = 0.4, 8.0
_COOLED = 0.03
"""The initial temperatures, in moves of a mean replica, and the part of them that remains at the end."""


def steps_for(block: Block) -> int:
    """Return the number of steps to polish a block for more evenness."""
    return min(_MOST_STEPS, _STEPS_PER_PLACE * max(1, _places(block)) * _count(block))


def polish(block: Block, terms: Terms, bound: int, steps: int, seed: int = 1) -> Block:
    """Return the block with the best plan found.

    Args:
        block: All partitions of a small cluster, planned.
        terms: The terms.
        bound: A lower bound of the cost; the search ends when a plan reaches it.
        steps: The number of steps of all plans together.
        seed: The seed of the random numbers.
    """
    seeds = Random(seed)
    plans = [Annealing.of(block, terms, Random(seeds.random())) for _ in range(_count(block))]
    _anneal(plans, steps // len(plans), bound, seeds)
    best = min(plans, key=lambda plan: plan.best_value).best
    return block.with_after(np.array(best, np.int32).reshape(block.after.shape))


def _places(block: Block) -> int:
    return int(np.count_nonzero(block.after != NOBODY))


def _count(block: Block) -> int:
    """Return the number of plans of a block to anneal side by side."""
    return max(1, min(_MOST_PLANS, _PLACES // max(1, _places(block))))


def cheapen(block: Block, terms: Terms, bound: int, steps: int) -> Block:
    """Return the block with a plan that costs less and takes no broker farther out of bounds.

    Bounds that were not reached are widened to what was reached, so this search looks for no more evenness.
    """
    for time in range(_CHEAPENED):
        block = polish(block, terms.eased_to(loads(block, len(terms.rack))), bound, steps // _CHEAPENED, seed=2 + time)
    return block


def steps_to_cheapen(block: Block) -> int:
    """Return the number of steps to polish a block for a lower cost."""
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
    """Let every other pair of neighbours change places.

    A pair whose better plan is the hotter one always does; the others do with a probability that falls with the
    difference of their energies and temperatures.
    """
    for colder, hotter in list(pairwise(range(len(plans))))[first::2]:
        energy = plans[colder].energy - plans[hotter].energy
        gain = energy * (1 / temperatures[colder] - 1 / temperatures[hotter])
        if gain >= 0 or rng.random() < exp(gain):
            plans[colder], plans[hotter] = plans[hotter], plans[colder]
