"""Producers, and their report of acknowledged records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import trio
from attrs import define, field

from broker.client import Consumer, GaveUp, Producer
from simulator.scheduling import generator, wall_clock_ms
from simulator.settings import PORT, host_of
from simulator.world import World
from transport.errors import ApiError
from transport.host import Host
from transport.metadata import TopicPartition

GIVE_UP_AFTER: float = 30.0


@define
class Load:
    """Sends records with acks=all, and reports which of them were acknowledged."""

    world: World
    acknowledged: int = field(default=0, init=False)
    refused: int = field(default=0, init=False)
    """Number of sends without a success; their records may or may not be in the log."""

    _numbers: count[int] = field(factory=count, init=False)
    _scopes: list[trio.CancelScope] = field(factory=list, init=False)

    async def send(self, producer: Producer, tp: TopicPartition, values: Sequence[bytes]) -> int:
        """Send records and return the offset of the first. Raises GaveUp or ApiError."""
        asked = self._topic_id(tp)
        base_offset = await producer.send(*tp, values, give_up_after=GIVE_UP_AFTER)
        self.acknowledged += len(values)
        # A topic created again has new offsets, and the answer does not say to which topic id its offset belongs.
        if asked == self._topic_id(tp):
            self.world.safety.acknowledged(tp, base_offset, values)
        return base_offset

    def _topic_id(self, tp: TopicPartition) -> str | None:
        topic = self.world.safety.durable.topic(tp.topic)
        return None if topic is None else topic.topic_id

    def producer(self, name: str) -> Producer:
        """Return a producer on a host of its own, as an async context manager for one task."""
        world = self.world
        brokers = [(host_of(id_), PORT) for id_ in world.settings.broker_ids]
        host = Host(wall_clock_ms, generator(world.seed, name))
        return Producer(world.network.at(name), brokers, host=host, client_id=name)

    def consumer(self, name: str) -> Consumer:
        """Return a consumer on a host of its own, as an async context manager for one task."""
        world = self.world
        brokers = [(host_of(id_), PORT) for id_ in world.settings.broker_ids]
        host = Host(wall_clock_ms, generator(world.seed, name))
        return Consumer(world.network.at(name), brokers, host=host, client_id=name)

    def start(self, name: str, tps: Sequence[TopicPartition], per_second: float) -> None:
        """Send records to partitions in turn, in the background, until `stop`."""
        scope = trio.CancelScope()
        self._scopes.append(scope)
        self.world.nursery.start_soon(self._produce, name, tuple(tps), 1 / per_second, scope)

    def stop(self) -> None:
        """Stop all producers started by `start`."""
        for scope in self._scopes:
            scope.cancel()
        self._scopes.clear()

    async def _produce(self, name: str, tps: Sequence[TopicPartition], pause: float, scope: trio.CancelScope) -> None:
        with scope:
            async with self.producer(name) as producer:
                for tp in (tps[n % len(tps)] for n in count()):
                    try:
                        await self.send(producer, tp, [f"record {next(self._numbers)}".encode()])
                    except (ApiError, GaveUp) as error:
                        self.refused += 1
                        self.world.trace.add("load", name, f"{tp} {error}")
                    await trio.sleep(pause)
