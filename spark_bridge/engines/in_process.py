"""The engine in one process: blocks in memory, one after another. Needs no Java."""

from __future__ import annotations

from itertools import chain, islice

import pyarrow as pa
from attrs import define

from spark_bridge.engines.engine import Accept, Texts
from spark_bridge.kernel.flows import FLOWS, FlowsOf
from spark_bridge.kernel.tally import BlockStep, Query, Tally, add
from spark_bridge.model.block import Block
from spark_bridge.model.summary import Flow


@define(eq=False)
class InProcess:
    """Blocks in this process's memory, by number."""

    held: list[Block]
    name: str = "kernel"

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return len(self.held)

    def step(self, step: BlockStep, accept: Accept | None = None) -> Tally | None:
        """Replace each block by the result of a step, if the sum of the tallies is accepted."""
        total: Tally = {}
        stepped = []
        for number, block in enumerate(self.held):
            done, tally = step(number, block)
            stepped.append(done)
            total = add(total, tally)
        if accept is not None and not accept(total):
            return None
        self.held = stepped
        return total

    def ask(self, query: Query) -> Tally:
        """Return the sum of a query's tallies over all blocks."""
        total: Tally = {}
        for number, block in enumerate(self.held):
            total = add(total, query(number, block))
        return total

    def texts(self, query: Texts, most: int) -> list[str]:
        """Return the lines of a query about all blocks, at most `most`."""
        return list(islice(chain.from_iterable(query(n, block) for n, block in enumerate(self.held)), most))

    def flows(self, query: FlowsOf, most: int) -> tuple[list[Flow], int]:
        """Return the largest flows between brokers, most bytes first, and the number of other flows."""
        pairs = pa.Table.from_batches([query(block) for block in self.held])
        summed = pairs.group_by(["source", "destination"]).aggregate([("replicas", "sum"), ("bytes", "sum")])
        summed = summed.rename_columns(FLOWS.names)
        order = [("bytes", "descending"), ("replicas", "descending"), ("source", "ascending")]
        rows = summed.sort_by([*order, ("destination", "ascending")]).slice(0, most).to_pylist()
        return [Flow(**row) for row in rows], len(summed) - len(rows)

    def close(self) -> None:
        """Release the blocks."""
        self.held = []
