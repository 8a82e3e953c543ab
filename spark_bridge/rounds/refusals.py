"""Rejections of goals and clusters that cannot be planned, each in one line that says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine
from spark_bridge.errors import PlanError
from spark_bridge.kernel.sparing import Repairs
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind

_WILD: Final = "*?["
_SHOWN: Final = 3
_ASKED: Final = 1_000
"""The most names that all blocks together may propose."""


class Unplaced(PlanError):
    """Replicas that must move find no broker; `repairs` is the number of partitions that only racks force to move."""

    def __init__(self, text: str, repairs: int) -> None:
        super().__init__(text)
        self.repairs = repairs


def refuse_additions(brokers: Brokers, goal: Goal) -> None:
    """Reject brokers to add that cannot take replicas.

    Raises:
        PlanError: The state of a broker to add is not live.
    """
    added = brokers.indices(goal.brokers).tolist() if goal.kind is GoalKind.ADD_BROKERS else []
    for broker in (brokers.rows[index] for index in added):
        if broker.state is not BrokerState.LIVE or not broker.serves:
            raise PlanError(
                f"broker {broker.id} is {broker.state} and cannot be given its share: leave it out, or give it the "
                "state live in the table of brokers (--brokers-table)"
            )


def refuse_unplaced(engine: Engine, unplaced: NDArray[np.int64], brokers: Brokers, terms: Terms) -> None:
    """Reject a cluster in which replicas that must move find no broker.

    Raises:
        Unplaced: There are such replicas.
        PlanError: There are, and no broker receives any.
    """
    factors = np.flatnonzero(unplaced[:, 0])
    if not len(factors):
        return
    factor, receivers = int(factors.max()), int(terms.receives.sum())
    replicas, size = unplaced.sum(axis=0).tolist()
    if receivers == 0:
        raise PlanError("no broker is left to receive replicas: name fewer brokers, or start others first")
    repairs = int(engine.ask(Repairs(terms))["repairs"][0]) if terms.repairs else 0
    if factor > receivers:
        raise Unplaced(
            f"{replicas} replicas find no broker: a replication factor of {factor} needs {factor} brokers, "
            f"and of {len(brokers)} only {receivers} may receive replicas: start {factor - receivers} more, "
            f"name fewer, or lower the factor to {receivers}",
            repairs,
        )
    raise Unplaced(
        f"{replicas} replicas of {size} bytes together find no broker that has room on its disks for them: add disks "
        f"for {size} bytes where they may go, or start brokers with as much, or name fewer brokers",
        repairs,
    )


@frozen
class _Near:
    """The query for a block's topic name nearest to a given one, and for a few of its names."""

    name: str

    def __call__(self, number: int, block: Block) -> list[str]:
        del number
        return [*get_close_matches(self.name, block.topics, n=1), *sorted(block.topics)[:_SHOWN]]


def refuse_unmatched(engine: Engine, topics: Sequence[str], matched: NDArray[np.int64]) -> None:
    """Reject names and patterns that no topic matches.

    Args:
        engine: The engine that holds the cluster.
        topics: The names and patterns.
        matched: The number of topics in all blocks that each of them matches.

    Raises:
        PlanError: A name or pattern matches no topic.
    """
    for name, count in zip(topics, matched.tolist(), strict=True):
        if count:
            continue
        is_pattern = any(letter in name for letter in _WILD)
        fault = (
            f"no topic in the snapshot matches {name}" if is_pattern else f"there is no topic {name} in the snapshot"
        )
        raise PlanError(f"{fault}: {_meant(name, set(engine.texts(_Near(name), _ASKED)))}")


def _meant(name: str, proposed: set[str]) -> str:
    near = get_close_matches(name, sorted(proposed), n=1)
    if near:
        return f"did you mean {near[0]}?"
    others = " and others" if len(proposed) > _SHOWN else ""
    return f"it has {', '.join(sorted(proposed)[:_SHOWN])}{others}"
