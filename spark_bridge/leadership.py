"""The rounds that choose preferred leaders, once replicas are where they shall be."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine
from spark_bridge.kernel.leader_rounds import MOST_ROUNDS, LeaderRounds
from spark_bridge.kernel.leader_view import LeaderView
from spark_bridge.kernel.leaders import choose_leaders
from spark_bridge.kernel.shares import shares, whole_bounds
from spark_bridge.kernel.tally import Tally, moved, sums
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import NO_RACK, Brokers, BrokerState
from spark_bridge.model.goal import Goal, LeaderScope
from spark_bridge.progress import OnProgress, Progress


def in_scope(block: Block, scope: LeaderScope) -> NDArray[np.bool_]:
    """Return (P) which partitions of a block may get another leader: touched are those whose replicas change."""
    if scope is LeaderScope.TOUCHED:
        held, holds = (np.count_nonzero(lists != NOBODY, axis=1) for lists in (block.before, block.after))
        return np.asarray(moved(block).any(axis=1) | (held != holds))
    return np.full(len(block), scope is LeaderScope.ALL)


_ROUNDS_WHEN_TOUCHED = 6
"""Where only partitions that change may get another leader, bounds are often out of reach, and more rounds gain little; a
second plan moves nothing, and so has none to choose for."""


@frozen(eq=False)
class ChooseLeaders:
    """The step of a round that chooses leaders."""

    view: LeaderView
    scope: LeaderScope

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Choose in one block; as a tally, return its leaders by broker."""
        done = choose_leaders(block, self.view, in_scope(block, self.scope), number) if len(block) else block
        return done, _Leaders(len(self.view.load))(number, done)


@frozen(eq=False)
class _Leaders:
    """Asks for the leaders as planned so far."""

    brokers: int

    def __call__(self, number: int, block: Block) -> Tally:
        del number
        return {"leaders": sums(block.after[:, 0], np.ones(len(block), np.int64), self.brokers)}


def retired(brokers: Brokers, terms: Terms) -> NDArray[np.bool_]:
    """Return (B) who may not lead: what drains or is dead, even where the goal leaves its replicas alone."""
    return terms.leaves | brokers.in_state(BrokerState.DRAINING, BrokerState.DEAD)


def leading(brokers: Brokers, terms: Terms) -> NDArray[np.bool_]:
    """Return (B) who shares what follows leaders: those that receive, or, where nobody does, all that may lead."""
    return terms.receives if terms.receives.any() else ~retired(brokers, terms)


def leading_shares(brokers: Brokers, terms: Terms, total: float) -> NDArray[np.float64]:
    """Return every broker's share of what follows leaders: no rack bounds it, and who gets nothing new has none."""
    capacity = np.where(leading(brokers, terms), brokers.capacity, 0.0)
    return shares(total, capacity, np.full(len(brokers), NO_RACK, np.int32), total, np.zeros(0))


def leader_view(brokers: Brokers, terms: Terms, goal: Goal, load: NDArray[np.int64]) -> LeaderView:
    """Return what leader rounds start from: who gets nothing new keeps what it leads, the others share the rest."""
    kept, leave = ~leading(brokers, terms), retired(brokers, terms)
    share = leading_shares(brokers, terms, float(load.sum() - load[kept & ~leave].sum()))
    low, high = whole_bounds(share, goal.tolerance)
    return LeaderView(
        load=load,
        lo=np.where(kept, 0, low),
        hi=np.where(kept, load, high),
        share=np.where(kept, np.maximum(load, 1), np.maximum(share, 1e-6)).astype(np.float64),
        may_lead=~leave,
    )


def plan_leaders(engine: Engine, brokers: Brokers, terms: Terms, goal: Goal, progress: OnProgress) -> LeaderView:
    """Choose leaders in an engine's blocks; return the view with the bounds and the final leaders."""
    load = engine.ask(_Leaders(len(brokers)))["leaders"]
    start = leader_view(brokers, terms, goal, load)
    if goal.leader_scope is LeaderScope.NONE:
        return start
    rounds = LeaderRounds(start, engine.blocks)
    number = 0
    most = _ROUNDS_WHEN_TOUCHED if goal.leader_scope is LeaderScope.TOUCHED else MOST_ROUNDS
    while number < most and (view := rounds.view(load)) is not None:
        number += 1
        progress(Progress("choosing leaders", number))
        tally = engine.step(ChooseLeaders(view, goal.leader_scope))
        assert tally is not None
        load = tally["leaders"]
    return evolve(start, load=load)
