"""The reasons why partitions change: one for each partition, the most pressing."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.lists import any_of, counts, nth, shared


class Reason(IntEnum):
    """Reasons for a change, the most pressing first; a partition that does not change has none."""

    NONE = 0
    LEAVES = 1  # a replica leaves a broker that is draining or dead
    REPLICATION_FACTOR = 2
    RACKS = 3
    RELIEVES = 4  # a replica leaves a broker that the goal relieves
    BALANCE = 5
    PREFERRED_LEADER = 6  # the same brokers in another order


TEXTS: Final = {
    Reason.NONE: "",
    Reason.LEAVES: "leaves broker {}",
    Reason.REPLICATION_FACTOR: "replication factor",
    Reason.RACKS: "racks",
    Reason.RELIEVES: "relieves broker {}",
    Reason.BALANCE: "balance",
    Reason.PREFERRED_LEADER: "preferred leader",
}


@frozen(eq=False)
class Marks:
    """The marks of brokers under a goal, for B brokers.

    Attributes:
        must_leave: (B) the brokers that lose everything they have.
        relieved: (B) the brokers that the goal relieves.
        rack: (B) rack numbers, 0 or more; a broker without a rack has its own number.
        rack_limit: (largest factor + 1) how many replicas a rack may have, by replication factor.
    """

    must_leave: NDArray[np.bool_]
    relieved: NDArray[np.bool_]
    rack: NDArray[np.int32]
    rack_limit: NDArray[np.int32]


@frozen(eq=False)
class Reasons:
    """The reasons of P partitions.

    Attributes:
        kind: (P) a `Reason`.
        broker: (P) the index of the broker that the reason names, else NOBODY. If a partition leaves several, it is the
            first in its list.
    """

    kind: NDArray[np.int8]
    broker: NDArray[np.int32]

    def texts(self, ids: NDArray[np.int32]) -> pa.StringArray:
        """Return each reason in words, with broker ids; empty for partitions that do not change."""
        _, rows, which = np.unique(
            (self.kind.astype(np.int64) << 32) + self.broker, return_index=True, return_inverse=True
        )
        pairs = zip(self.kind[rows].tolist(), self.broker[rows].tolist(), strict=True)
        words = [TEXTS[Reason(kind)].format(ids[broker]) for kind, broker in pairs]
        return pa.array(words, pa.string()).take(pa.array(which))


def reasons_of(block: Block, marks: Marks) -> Reasons:
    """Return the reason why each partition of a block changes.

    Racks are the reason if a partition exceeds its rack limit by less than before. A change of order alone always
    counts as a change of the preferred leader, because planning never reorders for another reason.
    """
    held_before, held_after = block.before != NOBODY, block.after != NOBODY
    left = held_before & ~shared(block.before, block.after)
    leaving, relieved = left & marks.must_leave[block.before], left & marks.relieved[block.before]
    factor = counts(held_after)
    limit = marks.rack_limit[factor]
    kind = np.select(
        [
            any_of(leaving),
            factor != counts(held_before),
            _repaired(block, any_of(left), marks, limit),
            any_of(relieved),
            any_of(left),
            _reordered(block),
        ],
        [reason for reason in Reason if reason is not Reason.NONE],
        Reason.NONE,
    ).astype(np.int8)
    return Reasons(kind, _first(block.before, kind, {Reason.LEAVES: leaving, Reason.RELIEVES: relieved}))


def _repaired(block: Block, left: NDArray[np.bool_], marks: Marks, limit: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which of the partitions that a replica left exceed their rack limit by less than before."""
    repaired, rows = np.zeros(len(block), np.bool_), np.flatnonzero(left)
    before, after = (_violation(lists[rows], marks, limit[rows]) for lists in (block.before, block.after))
    repaired[rows] = before > after
    return repaired


def _violation(replicas: NDArray[np.int32], marks: Marks, limit: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the number of replicas of each partition above the limit of their racks."""
    held = replicas != NOBODY
    rack = np.where(held, marks.rack[replicas], NOBODY).astype(np.int32)
    return counts(held & (nth(rack) > limit[:, None]))


def _reordered(block: Block) -> NDArray[np.bool_]:
    width = min(block.before.shape[1], block.after.shape[1])
    differs: NDArray[np.bool_] = any_of(block.before[:, :width] != block.after[:, :width])
    return differs


def _first(
    before: NDArray[np.int32], kind: NDArray[np.int8], masks: dict[Reason, NDArray[np.bool_]]
) -> NDArray[np.int32]:
    broker = np.full(len(kind), NOBODY, np.int32)
    for reason, mask in masks.items():
        rows = np.flatnonzero(kind == reason)
        broker[rows] = before[rows, mask[rows].argmax(axis=1)]
    return broker
