"""The load of the demo: a producer that writes until stopped, and the count of acknowledged records."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from attrs import define, field

from broker.client import Consumer, Producer
from transport.host import Host
from transport.network import Network

RECORD_BYTES = 1000


@define
class DemoLoad:
    """Writes numbered records with acks=all, and remembers which were acknowledged."""

    network: Network
    bootstrap: Sequence[tuple[str, int]]
    topic: str
    acknowledged: int = field(default=0, init=False)
    _stopping: bool = field(default=False, init=False)

    async def produce(self, batch: int) -> None:
        """Write records, `batch` at a time, until `stop` is called."""
        async with Producer(self.network, self.bootstrap, host=Host()) as producer:
            while not self._stopping:
                await self._send(producer, batch)

    async def fill(self, count: int, batch: int) -> None:
        """Write `count` records."""
        async with Producer(self.network, self.bootstrap, host=Host()) as producer:
            for _ in range(0, count, batch):
                await self._send(producer, batch)

    async def _send(self, producer: Producer, batch: int) -> None:
        numbers = range(self.acknowledged, self.acknowledged + batch)
        await producer.send(self.topic, 0, [record(number) for number in numbers])
        self.acknowledged += batch

    def stop(self) -> None:
        """End `produce` after the current batch."""
        self._stopping = True

    async def until(self, count: int) -> None:
        """Wait until `count` records have been acknowledged."""
        while self.acknowledged < count:
            await trio.sleep(0.01)

    async def read_back(self) -> list[bytes]:
        """Read all committed records."""
        async with Consumer(self.network, self.bootstrap, host=Host()) as consumer:
            return await consumer.read_all(self.topic, 0, up_to=self.acknowledged)


def record(number: int) -> bytes:
    """Return the record with a number, padded so that there is data to copy."""
    return f"record {number} ".encode().ljust(RECORD_BYTES, b".")
