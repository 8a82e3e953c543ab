"""The rounds that even bytes out, after leaders are chosen."""

from __future__ import annotations

from functools import partial

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine
from spark_bridge.kernel.bytes_out import OutRounds, OutView, even_bytes_out
from spark_bridge.kernel.shares import bounds
from spark_bridge.kernel.tally import Tally, sums
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import Goal, LeaderScope
from spark_bridge.progress import OnProgress, Progress
from spark_bridge.rounds.leaders import in_scope, leading, leading_shares, resting, retired

_WORTH_IT = 0.8
"""A round that leaves more than this part of the violation is not worth the leaders it changes."""


@frozen(eq=False)
class EvenBytesOut:
    """The step of a round that swaps leaderships."""

    view: OutView
    goal: Goal

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Swap leaderships in one block; the tally is the bytes out of each broker."""
        done = even_bytes_out(block, self.view, in_scope(block, self.goal), number)
        return done, _BytesOut(len(self.view.load))(number, done)


@frozen(eq=False)
class _BytesOut:
    """The query for bytes out by broker, as planned so far."""

    brokers: int

    def __call__(self, number: int, block: Block) -> Tally:
        del number
        return {"bytes out": sums(block.after[:, 0], block.bytes_out, self.brokers)}


def out_view(brokers: Brokers, terms: Terms, goal: Goal, load: NDArray[np.int64]) -> OutView:
    """Return the initial view of the rounds: excluded brokers keep what they lead, and the others share the rest."""
    shared = leading(brokers, terms)
    low, high = bounds(leading_shares(brokers, terms, float(load[shared].sum())), goal.tolerance)
    may_lead = ~retired(brokers, terms) & ~resting(brokers, terms)
    return OutView(load, np.where(shared, low, 0), np.where(shared, high, load), may_lead)


def plan_bytes_out(engine: Engine, brokers: Brokers, terms: Terms, goal: Goal, progress: OnProgress) -> None:
    """Swap leaderships in an engine's blocks until bytes out are within the tolerance or no swap helps."""
    if goal.leader_scope is LeaderScope.NONE:
        return
    load = engine.ask(_BytesOut(len(brokers)))["bytes out"]
    rounds = OutRounds(out_view(brokers, terms, goal, load), engine.blocks)
    number = 0
    while (view := rounds.view(load)) is not None:
        number += 1
        progress(Progress("evening bytes out", number))
        tally = engine.step(EvenBytesOut(view, goal), partial(_is_worth_it, view))
        if tally is not None:
            load = tally["bytes out"]


def _is_worth_it(view: OutView, tally: Tally) -> bool:
    """Return whether a round reduces the violation enough to be worth it."""
    before, after = (
        (np.maximum(load - view.hi, 0) + np.maximum(view.lo - load, 0)).sum()
        for load in (view.load, tally["bytes out"])
    )
    return bool(after < _WORTH_IT * before)
