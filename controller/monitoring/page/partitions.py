"""The partitions at risk on the page: all of them counted, and the rows of some, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from attrs import frozen

from controller.model.context import ControllerContext
from controller.model.notable import Notable
from controller.monitoring.partition_counts import PartitionCounts
from transport.metadata import NEVER_LED, TopicPartition

MAX_PARTITIONS: Final = 50

_RISKS: Final = {
    Notable.OFFLINE: "offline",
    Notable.UNDER_MIN_ISR: "under min ISR",
    Notable.UNDER_REPLICATED: "under-replicated",
}
"""The conditions of a partition at risk, the worst first."""


@frozen
class PartitionRow:
    """A partition at risk as the page shows it, with its worst condition."""

    topic: str
    partition: int
    risk: str
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    dead: tuple[int, ...]
    min_isr: int


@frozen
class PartitionsView:
    """Counts of partitions; one may be both under-replicated and under min ISR."""

    offline: int
    under_min_isr: int
    under_replicated: int
    imbalanced: int
    rows: tuple[PartitionRow, ...]


def view_of_partitions(counts: PartitionCounts) -> PartitionsView:
    """Return the partitions at risk."""
    return PartitionsView(
        counts.count(Notable.OFFLINE),
        counts.count(Notable.UNDER_MIN_ISR),
        counts.count(Notable.UNDER_REPLICATED),
        counts.count(Notable.IMBALANCED),
        tuple(_rows(counts)),
    )


def _rows(counts: PartitionCounts) -> Iterator[PartitionRow]:
    """Yield the rows: of each condition the first partitions, as long as there is room, in the order of their names."""
    shown: dict[TopicPartition, str] = {}
    for kind, words in _RISKS.items():
        wanted = min(counts.count(kind), MAX_PARTITIONS)
        if not wanted or len(shown) >= MAX_PARTITIONS:
            continue
        for tp in sorted(islice(counts.having(kind), wanted)):
            if len(shown) < MAX_PARTITIONS:
                shown.setdefault(tp, words)
    yield from (_row(counts.context, tp, words) for tp, words in shown.items())


def _row(context: ControllerContext, tp: TopicPartition, risk: str) -> PartitionRow:
    led, replicas = context.leadership.get(tp, NEVER_LED), context.assignment(tp).replicas
    dead = tuple(r for r in replicas if r not in context.brokers)
    return PartitionRow(*tp, risk, led.leader, led.isr, replicas, dead, context.min_isr(tp.topic))
