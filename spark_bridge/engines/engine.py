"""What runs steps over all blocks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from spark_bridge.kernel.flows import FlowsOf
from spark_bridge.kernel.tally import Query, Step, Tally
from spark_bridge.model.block import Block
from spark_bridge.model.summary import Flow

Accept = Callable[[Tally], bool]
Texts = Callable[[int, Block], Sequence[str]]


class Engine(Protocol):
    """Holds the blocks of a cluster and takes them through steps."""

    name: str

    @property
    def blocks(self) -> int:
        """Return how many blocks there are."""

    def step(self, step: Step, accept: Accept | None = None) -> Tally | None:
        """Replace every block by what the step makes of it, if the sum of the tallies is accepted.

        Returns:
            The sum, None when it was not accepted and the blocks are as they were.
        """

    def texts(self, query: Texts, most: int) -> list[str]:
        """Return what a query says of blocks, not more than so many lines."""

    def flows(self, query: FlowsOf, most: int) -> tuple[list[Flow], int]:
        """Return the greatest flows between brokers, most bytes first, and how many there are more."""

    def close(self) -> None:
        """Let go of the blocks."""

    def ask(self, query: Query) -> Tally:
        """Return the sum of a query's tallies over all blocks."""


def taken(engine: Engine, step: Step) -> Tally:
    """Take an engine through a step whatever comes of it; return the sum of the tallies."""
    tally = engine.step(step)
    assert tally is not None
    return tally
