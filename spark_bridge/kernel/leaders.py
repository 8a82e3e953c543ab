"""The choice of preferred leaders: the first replica of each list.

A single block (up to about `BLOCK_SIZE` partitions) is solved exactly; `leader_view` defines what is cheapest. Several
blocks take rounds (see `leader_rounds`), and come close to that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_bridge.kernel.leader_flow import LeaderFlow
from spark_bridge.kernel.leader_view import LeaderView
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.lists import any_of


def choose_leaders(block: Block, view: LeaderView, in_scope: NDArray[np.bool_], number: int = 0) -> Block:
    """Put other replicas first if that brings brokers within their bounds or closer, changing few leaders.

    A replica list keeps its order except for the replica that is put first. The block itself is returned if there is
    nothing to gain.

    Args:
        block: Partitions whose lists in `after` are not empty.
        view: The leaders of all brokers.
        in_scope: (P) which partitions may get another leader.
        number: The block's number among all blocks.
    """
    if not view.acts(number):
        return block
    top = view.top(number)
    replicas = block.after
    if view.keeps is not None:
        in_scope = in_scope & ~view.keeps[replicas[:, 0]]
    stranded = in_scope & ~view.may_lead[replicas[:, 0]]
    if not (stranded.any() or view.out_of_bounds(top)):
        return block
    may = in_scope[:, None] & (replicas != NOBODY) & view.may_lead[replicas]
    if view.keeps is not None:
        # A broker that keeps what it leads gets only partitions that no other broker may lead.
        others = may & ~view.keeps[replicas]
        may = np.where(others.any(axis=1)[:, None], others, may)
    flow = LeaderFlow(replicas, may, block.tie)
    for grain in view.grains(top):
        flow.settle(view, top, grain)
        if not view.out_of_bounds(flow.height(view, top)):
            break
    return with_leaders(block, flow.leader)


def with_leaders(block: Block, leader: NDArray[np.int64]) -> Block:
    """Return the block with these replicas (P) first and the others in order, or itself if they are all first."""
    changed = np.flatnonzero(leader != block.after[:, 0])
    if not len(changed):
        return block
    after = block.after.copy()
    rows = in_order(block.before[changed], after[changed])
    order = np.argsort(rows != leader[changed, None], axis=1, kind="stable")
    after[changed] = np.take_along_axis(rows, order, axis=1)
    return block.with_after(after)


def in_order(before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return lists in their previous order: replicas that stay keep their places, and new ones fill the others.

    Args:
        before: (P, R) broker indices; NOBODY after the end.
        after: (P, W) the same, in any order.
    """
    width = min(before.shape[1], after.shape[1])
    differ = any_of(before[:, :width] != after[:, :width]) | any_of(after[:, width:] != NOBODY)
    changed = np.flatnonzero(differ)
    ordered = after.copy()
    ordered[changed] = _in_order(before[changed], after[changed])
    return ordered


def _in_order(before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.int32]:
    matches = (after[:, :, None] == before[:, None, :]) & (after != NOBODY)[:, :, None]
    new = (after != NOBODY) & ~matches.any(axis=2)
    taken = matches.any(axis=1)
    free = np.argsort(taken, axis=1, kind="stable")
    nth = np.cumsum(new, axis=1) - new
    width = before.shape[1]
    behind = nth >= np.count_nonzero(~taken, axis=1)[:, None]
    place = np.where(behind, width + nth, np.take_along_axis(free, np.minimum(nth, width - 1), axis=1))
    place = np.where(new, place, matches.argmax(axis=2))
    place[after == NOBODY] = width + after.shape[1]
    return np.take_along_axis(after, np.argsort(place, axis=1, kind="stable"), axis=1)
