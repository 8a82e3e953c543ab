"""Plans of blocks in memory, without files around them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from spark_bridge.engines.in_process import InProcess
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import Goal
from spark_bridge.rounds.moves import Bounds, plan_moves


@frozen(eq=False)
class Planned:
    """A plan in memory: the blocks with their new lists, and what it was planned to."""

    blocks: tuple[Block, ...]
    bounds: Bounds


def plan_blocks(blocks: Sequence[Block], brokers: Brokers, goal: Goal) -> Planned:
    """Plan blocks in this process.

    Args:
        blocks: All partitions of the cluster, dealt into blocks by name.
        brokers: All brokers.
        goal: What to plan for.

    Raises:
        PlanError: There is no plan; the line says why and the smallest change after which there is.
    """
    engine = InProcess(list(blocks))
    bounds = plan_moves(engine, brokers, goal)
    return Planned(tuple(engine.held), bounds)
