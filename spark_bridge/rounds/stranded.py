"""Partitions with copies only on brokers that do not serve: no plan can change them until one of these returns.

They leave their blocks before planning, so that no step of it needs a rule for them. The report counts and names them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine, taken
from spark_bridge.kernel.tally import Tally, all_loads
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.lists import any_of

_NAMED: Final = 20
"""The most partitions that are named."""

_PROPOSED: Final = 100_000
"""The most names that all blocks together may propose."""


@frozen(eq=False)
class Stranded:
    """The partitions that were left out.

    Attributes:
        count: Their number.
        first: The first of their names, at most `_NAMED`.
        load: (B, 5) their replicas, leaders, bytes, bytes in and bytes out on each broker.
    """

    count: int
    first: tuple[str, ...]
    load: NDArray[np.int64]

    @classmethod
    def nothing(cls, brokers: Brokers) -> Stranded:
        """Return the value for a cluster without such partitions."""
        return cls(0, (), np.zeros((len(brokers), 5), np.int64))


def leave_out(engine: Engine, brokers: Brokers) -> Stranded:
    """Remove stranded partitions from the blocks of an engine, in which nothing is planned yet."""
    names = [] if brokers.serves.all() else engine.texts(_Names(brokers.serves), _PROPOSED)
    if not names:
        return Stranded.nothing(brokers)
    tally = taken(engine, _LeaveOut(brokers.serves))
    first = sorted(map(_as_key, names))[:_NAMED]
    return Stranded(int(tally["stranded"][0]), tuple(f"{topic}-{number}" for topic, number in first), tally["load"])


def _as_key(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def _are_stranded(block: Block, serves: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return (P) which partitions have no replica on a broker that serves."""
    return ~any_of((block.before != NOBODY) & serves[block.before])


@frozen(eq=False)
class _Names:
    """The query for the names of stranded partitions, at most `_NAMED` of each block."""

    serves: NDArray[np.bool_]

    def __call__(self, number: int, block: Block) -> list[str]:
        del number
        rows = np.flatnonzero(_are_stranded(block, self.serves))[:_NAMED].tolist()
        return [f"{block.topics[block.topic[row]]}-{block.partition[row]}" for row in rows]


@frozen(eq=False)
class _LeaveOut:
    """The step that removes stranded partitions; the tally is their number and loads."""

    serves: NDArray[np.bool_]

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        del number
        stranded = _are_stranded(block, self.serves)
        out, brokers = block.only(stranded), len(self.serves)
        return block.only(~stranded), {"stranded": np.array([len(out)]), "load": all_loads(out, brokers, before=True)}
