"""What runs steps over all blocks of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from spark_bridge.kernel.tally import Query, Step, Tally

Accept = Callable[[Tally], bool]


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

    def ask(self, query: Query) -> Tally:
        """Return the sum of a query's tallies over all blocks."""
