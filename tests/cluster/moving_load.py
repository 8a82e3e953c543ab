"""Records that are written while partitions move, and what must be left of them on the disks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen

from broker.client import Producer
from broker.reference.log_dir import records_on_disk
from klamm.cli.demo.clusters import log_dir
from tests.cluster.waiting import until
from transport.host import Host
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import paths
from transport.store.protocol import MetadataStore

STRIDE: Final = 7
"""Partitions are written to in strides, so that those that move at one time are not written to at one time."""


@frozen
class Writing:
    """The load: the partitions of each topic to write to, the size of a record, and the records of a batch."""

    topics: Sequence[str]
    partitions: int
    batch: int
    record_bytes: int
    batches_per_second: int
    """To all topics together."""


@define
class MovingLoad:
    """Producers that fill partitions, then write to them in turn with acks=all; and what was acknowledged to them."""

    bootstrap: Sequence[tuple[str, int]]
    writing: Writing
    acknowledged: dict[TopicPartition, list[bytes]] = field(factory=lambda: defaultdict(list))
    _is_stopping: bool = False

    async def fill(self, records: int, size: int) -> None:
        """Write the records to be moved into every partition."""
        async with trio.open_nursery() as nursery:
            for topic in self.writing.topics:
                nursery.start_soon(self._fill, topic, records, size)

    async def _fill(self, topic: str, records: int, size: int) -> None:
        async with Producer(TcpNetwork(), self.bootstrap, host=Host()) as producer:
            for number in range(self.writing.partitions):
                await self._send(producer, TopicPartition(topic, number), records, size)

    def begin(self, nursery: trio.Nursery) -> None:
        """Write until told to stop."""
        for topic in self.writing.topics:
            nursery.start_soon(self._produce, topic)

    async def _produce(self, topic: str) -> None:
        """Write batches, as many in a second as there are to be; what was missed is caught up on."""
        began, writing = trio.current_time(), self.writing
        seconds = len(writing.topics) / writing.batches_per_second
        async with Producer(TcpNetwork(), self.bootstrap, host=Host()) as producer:
            for sent in count():
                if self._is_stopping:
                    return
                tp = TopicPartition(topic, sent * STRIDE % writing.partitions)
                await self._send(producer, tp, writing.batch, writing.record_bytes)
                await trio.sleep_until(began + (sent + 1) * seconds)

    async def _send(self, producer: Producer, tp: TopicPartition, number: int, size: int) -> None:
        first = len(self.acknowledged[tp])
        values = [f"{tp} {each} ".encode().ljust(size, b".") for each in range(first, first + number)]
        await producer.send(*tp, values, give_up_after=90)
        self.acknowledged[tp] += values

    def stop(self) -> None:
        """Let the producers end after the batch under way."""
        self._is_stopping = True

    def total(self) -> int:
        """Return how many records were acknowledged."""
        return sum(map(len, self.acknowledged.values()))


async def until_deleted(store: MetadataStore) -> None:
    """Wait until brokers have deleted all that moves have left."""

    async def is_clean() -> bool:
        return not any(await store.children([paths.STRAYS]))

    await until(is_clean)


def log_faults(
    data_dir: Path,
    brokers: Collection[int],
    targets: Mapping[TopicPartition, Sequence[int]],
    acknowledged: Mapping[TopicPartition, Sequence[bytes]],
) -> list[str]:
    """Compare the logs on disk: equal on the target's brokers with all that was acknowledged, gone from the others."""
    faults = []
    for tp, target in targets.items():
        there = [id_ for id_ in brokers if (log_dir(data_dir, id_) / str(tp)).exists()]
        if sorted(target) != there:
            faults.append(f"{tp} has logs on {there} instead of {sorted(target)}")
            continue
        logs = [records_on_disk(log_dir(data_dir, id_), tp) for id_ in there]
        if any(log != logs[0] for log in logs):
            faults.append(f"the logs of {tp} differ")
        lost = set(acknowledged[tp]) - {record.value for record in logs[0]}
        if lost:
            faults.append(f"{tp} lost {len(lost)} acknowledged records")
    return faults
