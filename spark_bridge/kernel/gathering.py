"""Exchanges between blocks: a few partitions of all blocks make room on disks for each other, as one block.

A block makes room only with its own partitions (see `room`). If one or a few replicas still have no place then, those
that must make way may be in other blocks. So the driver gathers a limited number of partitions, and returns to each
block its own.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.deal import without_gaps
from spark_bridge.kernel.ejection import Ejection
from spark_bridge.kernel.loose import Loose
from spark_bridge.kernel.redeal import Standing
from spark_bridge.kernel.room import opened, place, room_tally, unplaced
from spark_bridge.kernel.tally import Tally
from spark_bridge.kernel.terms import Terms, matching
from spark_bridge.model.block import BYTES, MEASURES, NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS
from spark_bridge.model.lists import lengths, widened

_OTHER, _MATCHED = "other", "matched"
"""Names that stand for topics, because it matters only whether a topic gets the new replication factor."""


@frozen(eq=False)
class Gather:
    """The query for partitions that need room or can make some.

    Attributes:
        terms: The terms.
        evens: Whether replicas that evening out may move make way as well.
        most: The most partitions of each block: those without a place first, then the heaviest.
    """

    terms: Terms
    evens: bool
    most: int

    def __call__(self, number: int, block: Block) -> Tally:
        """Return rows of block and row, whether the topic is matched, tie, weights, and the lists (see `Few`)."""
        missing = self.terms.factors(block) > lengths(block.after)
        loose = Loose.of(block, block.after, self.terms)
        if self.evens:
            loose = loose.with_evening(block, self.terms)
        rows, columns = np.nonzero(block.after != NOBODY)
        able = missing.copy()
        able[rows[loose.at(rows, columns, first=True)]] = True
        rows = np.flatnonzero(able & (block.weights[:, BYTES] > 0))
        rows = rows[np.lexsort((block.tie[rows], -block.weights[rows, BYTES], ~missing[rows]))][: self.most]
        matched = matching(block, self.terms.topics)[rows]
        place = np.stack([np.full(len(rows), number), rows, matched, block.tie[rows]], axis=1)
        lists = [widened(some[rows], MOST_REPLICAS) for some in (block.before, block.after)]
        return {"all_few": np.hstack([place, block.weights[rows], *lists]).astype(np.int64)}


def _narrowed(lists: NDArray[np.int64]) -> NDArray[np.int32]:
    narrow = lists.astype(np.int32)
    return narrow[:, : int(lengths(narrow).max(initial=1))]


@frozen(eq=False)
class Few:
    """The n gathered partitions.

    Attributes:
        origin: (n, 2) each partition's block and its row there.
        block: The partitions as one block, without names.
    """

    origin: NDArray[np.int64]
    block: Block

    @classmethod
    def of(cls, rows: NDArray[np.int64]) -> Few:
        """Return the partitions of the rows of `Gather`, given in any order."""
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        widths = (2, 1, 1, len(MEASURES), MOST_REPLICAS)
        origin, topic, tie, weights, before, after = np.split(rows, np.cumsum(widths), axis=1)
        block = Block(
            topics=(_OTHER, _MATCHED),
            topic=topic[:, 0].astype(np.int32),
            partition=np.arange(len(rows), dtype=np.int32),
            before=_narrowed(before),
            after=_narrowed(after),
            weights=weights,
            bytes_out=np.zeros(len(rows), np.int64),
            tie=tie[:, 0].astype(np.uint32),
        )
        return cls(origin, block)

    def settled(self, terms: Terms, standing: Standing, *, evens: bool) -> Few | None:
        """Return the partitions with a place for each replica, None if none is found.

        Args:
            terms: The terms.
            standing: The loads of all brokers, including those of other partitions.
            evens: See `Gather`.
        """
        terms = evolve(terms, topics=(_MATCHED,) if terms.topics else ())
        work, places = opened(0, self.block, terms, standing, evens=evens)
        place(work, places)
        if unplaced(self.block.with_after(work.after), terms).any() or not Ejection.of(work).fits():
            return None
        return evolve(self, block=self.block.with_after(without_gaps(work.after)))


@frozen(eq=False)
class GiveBack:
    """The step that returns gathered partitions to their blocks."""

    terms: Terms
    few: Few

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Put the lists into one block; the tally is that of `Deal`."""
        here = self.few.origin[:, 0] == number
        rows, lists = self.few.origin[here, 1], self.few.block.after[here]
        width = max(block.after.shape[1], lists.shape[1])
        after = widened(block.after, width)
        after[rows] = widened(lists, width)
        done = block.with_after(after)
        return done, room_tally(done, self.terms)
