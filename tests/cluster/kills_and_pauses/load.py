"""Producers that write numbered records with acks=all throughout, and the acknowledged records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import trio
from attrs import define, field, frozen

from broker.client import Consumer, GaveUp, Producer
from transport.errors import ApiError
from transport.host import Host
from transport.metadata import TopicPartition
from transport.network import TcpNetwork

BATCH: Final = 5
SECONDS_BETWEEN: Final = 0.2
RECORD_BYTES: Final = 200
GIVE_UP_SECONDS: Final = 120.0
WAITS_KEPT: Final = 5


@frozen
class Batch:
    """Records that were acknowledged: the numbers from `first` on, from the offset `base_offset` on."""

    base_offset: int
    first: int
    count: int


@frozen(order=True)
class Wait:
    """The time that a batch waited for its acknowledgement, in seconds, and when it came."""

    seconds: float
    tp: TopicPartition
    ended_ms: int

    def __str__(self) -> str:
        ended = datetime.fromtimestamp(self.ended_ms / 1000, UTC).astimezone()
        return f"{self.seconds:.1f} s for {self.tp} until {ended:%H:%M:%S}"


def record(tp: TopicPartition, number: int) -> bytes:
    """Return the record of a number, padded."""
    return f"{tp} {number} ".encode().ljust(RECORD_BYTES, b".")


@define
class Load:
    """A producer for each partition that it was told of."""

    nursery: trio.Nursery
    bootstrap: Sequence[tuple[str, int]]
    acknowledged: dict[TopicPartition, list[Batch]] = field(factory=lambda: defaultdict(list))
    faults: list[str] = field(factory=list)
    given_up: int = 0
    waits: list[Wait] = field(factory=list)
    """The longest, with the longest first."""

    _stopping: bool = False
    _writing: set[TopicPartition] = field(factory=set)

    def write_to(self, tp: TopicPartition) -> None:
        """Let a producer write to a partition, unless one does."""
        if tp not in self._writing and not self._stopping:
            self._writing.add(tp)
            self.nursery.start_soon(self._produce, tp)

    async def stop(self) -> None:
        """Let the producers end after the batch under way, and wait until they have."""
        self._stopping = True
        while self._writing:
            await trio.sleep(0.05)

    def total(self) -> int:
        """Return how many records were acknowledged."""
        return sum(batch.count for batches in self.acknowledged.values() for batch in batches)

    async def read_back(self) -> dict[TopicPartition, list[bytes]]:
        """Read all partitions, to the end of what was acknowledged, or what there is. Raises GaveUp or ApiError."""
        async with Consumer(TcpNetwork(), self.bootstrap, host=Host()) as consumer:
            return {tp: await self._read(consumer, tp) for tp in self.acknowledged}

    async def _read(self, consumer: Consumer, tp: TopicPartition) -> list[bytes]:
        end = max(batch.base_offset + batch.count for batch in self.acknowledged[tp])
        try:
            return await consumer.read_all(*tp, up_to=end)
        except GaveUp:
            return await consumer.read_all(*tp)

    async def _produce(self, tp: TopicPartition) -> None:
        number = 0
        try:
            async with Producer(TcpNetwork(), self.bootstrap, host=Host()) as producer:
                while not self._stopping:
                    await self._send(producer, tp, number)
                    number += BATCH
                    await trio.sleep(SECONDS_BETWEEN)
        except ApiError as error:
            self.faults.append(f"writing to {tp} failed for good: {error}")
        finally:
            self._writing.remove(tp)

    async def _send(self, producer: Producer, tp: TopicPartition, first: int) -> None:
        values = [record(tp, number) for number in range(first, first + BATCH)]
        began = trio.current_time()
        try:
            base_offset = await producer.send(*tp, values, give_up_after=GIVE_UP_SECONDS)
        except GaveUp:
            self.given_up += 1
        else:
            self.acknowledged[tp].append(Batch(base_offset, first, BATCH))
        wait = Wait(trio.current_time() - began, tp, Host().now_ms())
        self.waits = sorted([*self.waits, wait], reverse=True)[:WAITS_KEPT]
