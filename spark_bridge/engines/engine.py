"""The interface of engines, which run steps over all blocks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from spark_bridge.kernel.flows import FlowsOf
from spark_bridge.kernel.tally import BlockStep, Query, Tally
from spark_bridge.model.block import Block
from spark_bridge.model.summary import Flow

Accept = Callable[[Tally], bool]
Texts = Callable[[int, Block], Sequence[str]]


class Engine(Protocol):
    """Holds the blocks of a cluster and performs steps on them."""

    name: str

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""

    def step(self, step: BlockStep, accept: Accept | None = None) -> Tally | None:
        """Replace each block by the result of a step, if the sum of the tallies is accepted.

        Returns:
            The sum; None if it was not accepted and the blocks are unchanged.
        """

    def texts(self, query: Texts, most: int) -> list[str]:
        """Return the lines of a query about all blocks, at most `most`."""

    def flows(self, query: FlowsOf, most: int) -> tuple[list[Flow], int]:
        """Return the largest flows between brokers, most bytes first, and the number of other flows."""

    def close(self) -> None:
        """Release the blocks."""

    def ask(self, query: Query) -> Tally:
        """Return the sum of a query's tallies over all blocks."""


def taken(engine: Engine, step: BlockStep) -> Tally:
    """Perform a step and accept any result; return the sum of the tallies."""
    tally = engine.step(step)
    assert tally is not None
    return tally
