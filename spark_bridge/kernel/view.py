"""The whole cluster as one block sees it while all blocks plan at once.

Each block works as if the cluster consisted of several copies of itself: each of its moves counts that many times. If
all copies saw the same loads, they would do the same and overshoot. So each starts from a view that is shifted
slightly: the dither, spread evenly over the blocks that take part. Together they do what one planner with all
partitions would do, to within a replica. In a round with few copies, a broker takes part in few blocks; with one copy,
it takes part in a single block, which then knows its load exactly.
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
    """The round with number `round`, in which each broker takes part in `copies` of `blocks` blocks."""

    round: int
    blocks: int
    copies: int

    def ranks(self, block: int, brokers: int) -> NDArray[np.int64]:
        """Return (B) the rank of a block among those of each broker; the broker takes part if it is below `copies`."""
        start = np.array([crc32(b"%d/%d" % (self.round, b)) for b in range(brokers)], np.int64)
        return (start + block) % self.blocks


@define(eq=False)
class View:
    """The loads as a block sees them, and values derived from them, in lists because single numbers are faster there.

    Attributes:
        copies: How many times a change counts.
        active: (B) which brokers take part in this block.
        load: By broker, the loads in each measure.
        full: By broker, its load as a part of its share in the fullest of `measures`.
        room: By broker, the bytes above which it gets no replica, so that all blocks together keep to its disk; empty
            for no limit.
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
        """Return the view of a block.

        Args:
            block: The block.
            number: Its number.
            turn: The round.
            terms: The terms.
            load: (B, 3) the true loads of the whole cluster.
            measures: The measures that determine how full a broker is.
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
        """Return a view in which all blocks together take no broker above its disk.

        A reserve makes up for the dither. A broker above its disk gets nothing while several copies act, because other
        blocks may not know what it gives.

        Args:
            disk: (B) the size of the disk in bytes.
            load: (B, 3) the true loads of the whole cluster.
            block: The block.
        """
        mean = float(block.weights[:, BYTES].mean()) if len(block) else 0.0
        reserve = int(np.ceil(self.copies / 2 * mean)) if self.copies > 1 else 0
        shut = (load[:, BYTES] > disk) & (self.copies > 1)
        return evolve(self, room=np.where(shut, -1, disk - reserve).tolist())

    def by(self, terms: Terms, measures: tuple[int, ...]) -> View:
        """Return a view of the same loads in which other measures determine how full a broker is."""
        return evolve(self, full=terms.fullness(np.array(self.load), measures).tolist(), measures=measures)

    def add(self, broker: int, weight: list[int], times: int) -> None:
        """Count a replica that is added (`times` is 1) or removed (-1)."""
        load, per_share = self.load[broker], self.per_share[broker]
        step = times * self.copies
        load[0] += step * weight[0]
        load[1] += step * weight[1]
        load[2] += step * weight[2]
        self.full[broker] = max([load[m] * per_share[m] for m in self.measures])

    def fits(self, broker: int, weight: list[int], limit: list[int]) -> bool:
        """Return whether another replica keeps a broker within its limit in each measure.

        With several copies, only half of what they add counts: errors in both directions cancel out, and no long search
        for the last replica is needed. On disks, all of it counts.
        """
        if self.room and self.load[broker][BYTES] + self.copies * weight[BYTES] > self.room[broker]:
            return False
        load, c = self.load[broker], self.copies if self.copies == 1 else self.copies / 2
        return (
            load[0] + c * weight[0] <= limit[0]
            and load[1] + c * weight[1] <= limit[1]
            and load[2] + c * weight[2] <= limit[2]
        )
