"""The rounds that choose preferred leaders, after the replicas are placed."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine, taken
from spark_bridge.kernel.leader_rounds import MOST_ROUNDS, LeaderRounds
from spark_bridge.kernel.leader_view import LeaderView
from spark_bridge.kernel.leaders import choose_leaders, in_order
from spark_bridge.kernel.shares import proportional, whole_bounds
from spark_bridge.kernel.tally import Tally, moved, sums
from spark_bridge.kernel.terms import Terms, matching
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.model.lists import any_of, lengths
from spark_bridge.progress import OnProgress, Progress


def in_scope(block: Block, goal: Goal) -> NDArray[np.bool_]:
    """Return (P) which partitions of a block may get another leader; touched are those whose replicas change."""
    if goal.kind is GoalKind.LEADERS:
        return matching(block, goal.topics)
    if goal.leader_scope is LeaderScope.TOUCHED:
        return np.asarray(any_of(moved(block)) | (lengths(block.before) != lengths(block.after)))
    return np.full(len(block), goal.leader_scope is LeaderScope.ALL)


_ROUNDS_WHEN_TOUCHED = 6
"""The most rounds if only partitions that change may get another leader.

Bounds are then often out of reach, and more rounds gain little. Planning again is not affected: it moves nothing, so no
leader may change.
"""


@frozen(eq=False)
class ChooseLeaders:
    """The step of a round that chooses leaders."""

    view: LeaderView
    goal: Goal

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Choose leaders in one block; the tally is its leaders by broker."""
        acts = self.view.acts(number) and len(block) > 0
        done = choose_leaders(block, self.view, in_scope(block, self.goal), number) if acts else block
        return done, _Leaders(len(self.view.load))(number, done)


@frozen(eq=False)
class _InOrder:
    """The step that returns replicas that stay to their places in the list, before leaders are chosen."""

    goal: Goal
    retired: NDArray[np.bool_]
    leading: NDArray[np.bool_]

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Put one block's lists in order.

        Returns:
            The block, and a tally of its leaders by broker. `left`, (1), counts the partitions that keep a leader that
            should not lead, because no other replica can or because their leaders may not change.
        """
        ordered = block.with_after(in_order(block.before, block.after))
        able = any_of(self.leading[ordered.after] & (ordered.after != NOBODY)) & in_scope(ordered, self.goal)
        left = np.count_nonzero(self.retired[ordered.after[:, 0]] & ~able)
        return ordered, {**_Leaders(len(self.retired))(number, ordered), "left": np.array([left])}


@frozen(eq=False)
class _Leaders:
    """The query for leaders by broker, as planned so far."""

    brokers: int

    def __call__(self, number: int, block: Block) -> Tally:
        del number
        return {"leaders": sums(block.after[:, 0], np.ones(len(block), np.int64), self.brokers)}


def retired(brokers: Brokers, terms: Terms) -> NDArray[np.bool_]:
    """Return (B) the brokers that may not lead: draining or down, even if the goal leaves their replicas alone."""
    return terms.leaves | brokers.in_state(BrokerState.DRAINING) | ~brokers.serves


def leading(brokers: Brokers, terms: Terms) -> NDArray[np.bool_]:
    """Return (B) the brokers that share leaders: those that receive, or if none does, all that may lead."""
    return terms.receives if terms.receives.any() else ~retired(brokers, terms)


def leading_shares(brokers: Brokers, terms: Terms, total: float) -> NDArray[np.float64]:
    """Return each broker's share of a total that follows leaders.

    Racks do not limit it. A broker that receives nothing has no share, unless no broker receives (see `leading`).
    """
    capacity = np.where(leading(brokers, terms), brokers.capacity, 0.0)
    return proportional(total, capacity)


def resting(brokers: Brokers, terms: Terms) -> NDArray[np.bool_]:
    """Return (B) the brokers that keep what they lead: those excluded, if others receive."""
    return ~(leading(brokers, terms) | retired(brokers, terms))


def leader_view(brokers: Brokers, terms: Terms, goal: Goal, load: NDArray[np.int64], left: int = 0) -> LeaderView:
    """Return the initial view of leader rounds: excluded brokers keep what they lead, and the others share the rest.

    Args:
        brokers: All brokers.
        terms: The terms.
        goal: The goal.
        load: (B) the number of partitions that each broker leads.
        left: The number of those led by brokers that should not lead, but cannot hand them on.
    """
    kept, leave = ~leading(brokers, terms), retired(brokers, terms)
    share = leading_shares(brokers, terms, float(load.sum() - load[kept & ~leave].sum() - left))
    low, high = whole_bounds(share, goal.tolerance)
    return LeaderView(
        load=load,
        lo=np.where(kept, 0, low),
        hi=np.where(kept, load, high),
        share=np.where(kept, np.maximum(load, 1), np.maximum(share, 1e-6)).astype(np.float64),
        may_lead=~leave,
        keeps=resting(brokers, terms),
    )


def plan_leaders(engine: Engine, brokers: Brokers, terms: Terms, goal: Goal, progress: OnProgress) -> LeaderView:
    """Choose leaders in an engine's blocks; return the view with the bounds and the final leaders."""
    first = taken(engine, _InOrder(goal, retired(brokers, terms), leading(brokers, terms)))
    load = first["leaders"]
    start = leader_view(brokers, terms, goal, load, int(first["left"][0]))
    if goal.leader_scope is LeaderScope.NONE:
        return start
    rounds = LeaderRounds(start, engine.blocks)
    number = 0
    most = _ROUNDS_WHEN_TOUCHED if goal.leader_scope is LeaderScope.TOUCHED else MOST_ROUNDS
    while number < most and (view := rounds.view(load)) is not None:
        number += 1
        progress(Progress("choosing leaders", number))
        tally = taken(engine, ChooseLeaders(view, goal))
        load = tally["leaders"]
    return evolve(start, load=load)
