"""Small clusters and terms for tables about parts of the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spark_bridge.engines.in_process import InProcess
from spark_bridge.kernel.tally import loads
from spark_bridge.kernel.terms import Terms, make_terms
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.rounds.drawing_up import AtFirst

REBALANCE = Goal(GoalKind.REBALANCE)


def in_racks(racks: str) -> Brokers:
    """Return brokers 0, 1, ... in racks of one letter each; `_` for a broker without."""
    return Brokers.of(Broker(id_, None if rack == "_" else rack) for id_, rack in enumerate(racks))


def block_of(
    lists: Sequence[Sequence[int]], size: Sequence[int] | None = None, bytes_in: Sequence[int] | None = None
) -> Block:
    """Return a block of partitions `t-0`, `t-1`, ... with these broker indices; without sizes they are empty."""
    none = [0] * len(lists)
    return Block.of([("t", n) for n in range(len(lists))], lists, size or none, bytes_in or none, none)


def load_of(blocks: Sequence[Block], brokers: Brokers) -> NDArray[np.int64]:
    """Return what brokers carry as planned, over all blocks."""
    total: NDArray[np.int64] = np.sum([loads(block, len(brokers)) for block in blocks], axis=0)
    return total


def terms_of(blocks: Sequence[Block], brokers: Brokers, goal: Goal = REBALANCE) -> Terms:
    """Draw up the terms for a goal."""
    first = InProcess([*blocks]).ask(AtFirst.of(brokers, goal))
    return make_terms(brokers, goal, load_of(blocks, brokers), first)


def lists_of(replicas: NDArray[np.int32]) -> list[list[int]]:
    """Return replica lists as lists, without what is unused at their ends."""
    return [[b for b in row if b != NOBODY] for row in replicas.tolist()]
