"""The rows RS / AR / RR / leader / ISR of a move, taken from the controllers' commit traces.

A partition that moves from ORS to TRS passes through six stages, which its state identifies. A row is the first commit
of its stage (of the first stage, the last before the move). Growth of the ISR in between makes no row, and neither does
a new controller that finds the state that the previous one left: a stage is entered once.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from controller.admin.move_rows import Stage, stage_of
from transport.messages import PartitionState, TracedCommit


@frozen
class Seen:
    """A commit as a subscriber saw it, and the number of records acknowledged by then."""

    commit: TracedCommit
    acknowledged: int


@frozen
class TraceRow:
    """One row of the table."""

    stage: Stage
    state: PartitionState
    zxid: int
    topic_version: int
    controller_id: int
    acknowledged: int


def rows(seen: Sequence[Seen], topic: str, partition: int, target: frozenset[int]) -> list[TraceRow]:
    """Return the rows of a partition's move to `target`, in the order of their zxids."""
    found: dict[Stage, TraceRow] = {}
    for item in sorted(seen, key=_order):
        for state in item.commit.partitions:
            if state.tp != (topic, partition):
                continue
            stage = stage_of(state, target)
            if stage is Stage.INITIAL or stage not in found:
                found[stage] = _row(stage, state, item)
    return list(found.values())


def _order(item: Seen) -> tuple[int, bool]:
    # A state that a new controller loads has the zxid of the commit that wrote it, and comes after it.
    return item.commit.zxid, item.commit.round == "loaded"


def _row(stage: Stage, state: PartitionState, item: Seen) -> TraceRow:
    versions = dict(item.commit.topic_versions)
    commit = item.commit
    return TraceRow(stage, state, commit.zxid, versions.get(state.topic, -1), commit.controller_id, item.acknowledged)
