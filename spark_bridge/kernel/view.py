"""The whole cluster as one block sees it while all blocks plan at once.

Every block works as if the cluster were so many copies of itself: what it moves counts that many times. Copies would
all do the same and overshoot, so each starts from a slightly different view of the loads: the dither, spread evenly
over the blocks that take part, so that together they do what one planner with all partitions would do, give or take a
replica. In a round with few copies a broker takes part in few blocks; with one copy in a single block, which then
knows its loads exactly.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.terms import ALL_MEASURES, Terms
from spark_bridge.model.block import BYTES, Block


@frozen
class Turn:
    """Whose turn it is: this is round `round`, of `blocks` blocks, each broker takes part in `copies` of them."""

    round: int
    blocks: int
    copies: int

    def ranks(self, block: int, brokers: int) -> NDArray[np.int64]:
        """Return (B) the place of a block among those in which each broker takes part; `copies` or more where not."""
        start = np.array([crc32(b"%d/%d" % (self.round, b)) for b in range(brokers)], np.int64)
        return (start + block) % self.blocks


@define(eq=False)
class View:
    """The loads as a block sees them, and what follows from them, as lists: single numbers are faster in these.

    Attributes:
        copies: How many times a change counts.
        active: (B) which brokers take part in this block.
        load: The loads, by broker, in each measure.
        full: The fullness by broker: the greatest part of its share that it has of any of the `measures`.
        room: The bytes by broker beyond which no replica takes it, whatever other blocks do; empty without a bound.
    """

    copies: int
    active: NDArray[np.bool_]
    load: list[list[int]]
    per_share: list[list[float]]
    full: list[float]
    measures: tuple[int, ...]
    room: list[int] = field(factory=list)

    @classmethod
    def of(
        cls,
        block: Block,
        number: int,
        turn: Turn,
        terms: Terms,
        load: NDArray[np.int64],
        measures: tuple[int, ...] = ALL_MEASURES,
    ) -> View:
        """Look at the cluster from a block.

        Args:
            block: The block.
            number: Its number.
            turn: The round.
            terms: The terms.
            load: (B, 3) the true loads of the whole cluster.
            measures: The measures by which brokers are fuller or emptier.
        """
        rank = turn.ranks(number, len(load))
        weight = block.weights.mean(axis=0) if len(block) else np.ones(load.shape[1])
        dither = ((rank + 0.5) / turn.copies - 0.5) * turn.copies if turn.copies > 1 else np.zeros(len(load))
        seen = load + np.round(dither[:, None] * weight).astype(np.int64)
        return cls(
            copies=turn.copies,
            active=rank < turn.copies,
            load=seen.tolist(),
            per_share=(1 / terms.share).tolist(),
            full=terms.fullness(seen, measures).tolist(),
            measures=measures,
        )

    def within(self, disk: NDArray[np.int64], load: NDArray[np.int64], block: Block) -> View:
        """Return a view in which no block takes a broker above its disk, all blocks together neither.

        With a reserve for the dither none does so by itself. Who is above its disk gets nothing in rounds with many
        copies, as other blocks may not know what it gives.

        Args:
            disk: (B) bytes that fit.
            load: (B, 3) the true loads of the whole cluster.
            block: The block.
        """
        mean = float(block.weights[:, BYTES].mean()) if len(block) else 0.0
        reserve = int(np.ceil(self.copies / 2 * mean)) if self.copies > 1 else 0
        shut = (load[:, BYTES] > disk) & (self.copies > 1)
        return evolve(self, room=np.where(shut, -1, disk - reserve).tolist())

    def by(self, terms: Terms, measures: tuple[int, ...]) -> View:
        """Return a view of the same loads in which other measures decide how full a broker is."""
        return evolve(self, full=terms.fullness(np.array(self.load), measures).tolist(), measures=measures)

    def add(self, broker: int, weight: list[int], times: int) -> None:
        """Count a replica that comes (`times` 1) or goes (-1)."""
        load, per_share = self.load[broker], self.per_share[broker]
        step = times * self.copies
        load[0] += step * weight[0]
        load[1] += step * weight[1]
        load[2] += step * weight[2]
        self.full[broker] = max([load[m] * per_share[m] for m in self.measures])

    def fits(self, broker: int, weight: list[int], limit: list[int]) -> bool:
        """Return whether a replica more keeps a broker within a limit of each measure.

        With many copies half of what they add counts: errors up and down even out, and the last replica is not sought
        for long. On disks all of it counts.
        """
        if self.room and self.load[broker][BYTES] + self.copies * weight[BYTES] > self.room[broker]:
            return False
        load, c = self.load[broker], self.copies if self.copies == 1 else self.copies / 2
        return (
            load[0] + c * weight[0] <= limit[0]
            and load[1] + c * weight[1] <= limit[1]
            and load[2] + c * weight[2] <= limit[2]
        )
