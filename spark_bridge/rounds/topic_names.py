"""The topics that a goal names: those missing from the snapshot are rejected, with the nearest names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine
from spark_bridge.errors import PlanError
from spark_bridge.model.block import Block

_WILD: Final = "*?["
_SHOWN: Final = 3
_ASKED: Final = 1_000
"""The most names that all blocks together may propose."""


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
        matched: The number of partitions that each of them matches.

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
