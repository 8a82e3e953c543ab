"""Large events of the controller, compared with the floor: the same data read or written in bulk, then packed once.

There are 2,000 topics of 50 partitions with 3 replicas on 10 brokers, and a separate ZooKeeper server. The floor is
measured in the same run, next to the event, through the same store. An event ends when everything meant for brokers
has reached their channels; until then brokers do not answer.
"""

from __future__ import annotations

import gc
import logging
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit.cluster import Shape, commit_all, create_cluster, creation, register, state_znodes
from benchmarks.kit.controllership import Stopwatch, controllership
from benchmarks.kit.floor import CHUNKS, read_floor, write_floor
from benchmarks.kit.sink import Sinks
from benchmarks.kit.times import Times
from controller.events import ReplicasDeleted
from controller.node.service import ControllerService
from transport.messages import (
    ControlledShutdownRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
)
from transport.metadata import EPOCH_DURING_DELETE, Stray
from transport.store import formats, paths
from transport.store.protocol import ANY_VERSION, Create, Delete, MetadataStore, Op, Set, Znode
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import DevelopmentServerError, development_zookeeper

PARTITIONS: Final = 100_000
ROUNDS: Final = 2
BROKER: Final = 0
"""The broker that is lost or shut down."""

ANSWERED_AT_ONCE: Final = 10_000
"""The number of replicas that a broker reports as deleted in one answer."""


@define
class Row:
    """The measured rounds of one event and of its floor."""

    title: str
    floors: list[Times] = field(factory=list)
    events: list[Times] = field(factory=list)

    def show(self) -> None:
        """Print the medians of the times, and of the ratios of all rounds."""
        floor, event = (median(times.wall for times in taken) for taken in (self.floors, self.events))
        pairs = list(zip(self.floors, self.events, strict=True))
        wall = median(ours.wall / theirs.wall for theirs, ours in pairs)
        processor = median(ours.processor / theirs.processor for theirs, ours in pairs)
        print(f"| {self.title} | {floor:.2f} | {event:.2f} | {wall:.1f}x | {processor:.1f}x |", flush=True)


@define
class Bench:
    """The cluster, the controllers' session with its store, and a session for the benchmark."""

    shape: Shape
    controllers: MetadataStore
    store: MetadataStore
    failover: Row
    loss: Row
    shutdown: Row
    creation: Row
    deletion: Row

    # --- failover, loss and shutdown --------------------------------------------------------------------------------

    @asynccontextmanager
    async def in_office(self) -> AsyncIterator[tuple[ControllerService, Stopwatch]]:
        """Fail over to a new controller; its brokers accept everything up to then, and do not answer afterwards."""
        self.failover.floors.append(await read_floor(self.controllers, self.shape))
        brokers = Sinks()
        brokers.answering.close()
        async with controllership(self.controllers, brokers) as (service, stopwatch):
            self.failover.events.append(await stopwatch.take("Elect"))
            brokers.answering.open()
            await stopwatch.all_told()
            brokers.answering.close()
            gc.collect()
            yield service, stopwatch

    async def lose(self) -> None:
        """Lose a broker."""
        async with self.in_office() as (_, stopwatch):
            await self.store.multi([Delete(paths.broker(BROKER))])
            self.loss.events.append(await stopwatch.take("BrokerChange"))
        self.loss.floors.append(await self._rewrite())
        await self._restore()
        await register(self.store, BROKER)

    async def shut_down(self) -> None:
        """Relieve a broker that is about to stop."""
        async with self.in_office() as (service, stopwatch):
            [znode] = await self.store.read([paths.broker(BROKER)])
            assert znode is not None
            await service.answer(ControlledShutdownRequest(BROKER, znode.stat.czxid))
            self.shutdown.events.append(await stopwatch.take("ControlledShutdown"))
        self.shutdown.floors.append(await self._rewrite())
        await self._restore()

    async def _rewrite(self) -> Times:
        """Write again everything that the controller has written: the floor."""
        written = await self._changed()
        ops: list[Op] = [Set(path, znode.data, ANY_VERSION) for path, znode in written]
        return await write_floor(self.controllers, [ops] * len(CHUNKS), [znode.data for _, znode in written])

    async def _changed(self) -> list[tuple[str, Znode]]:
        original = dict(state_znodes(self.shape))
        found = await self.store.read(list(original))
        both = zip(original, found, strict=True)
        return [(path, znode) for path, znode in both if znode is not None and znode.data != original[path]]

    async def _restore(self) -> None:
        """Restore the original states."""
        original = dict(state_znodes(self.shape))
        await commit_all(self.store, [Set(path, original[path], ANY_VERSION) for path, _ in await self._changed()])

    # --- creation and deletion --------------------------------------------------------------------------------------

    async def create_and_delete(self, more: Shape) -> None:
        """Create topics and delete them, first for the floor and then with the controller."""
        await self._floors_of_topics(more)
        async with self.in_office() as (service, stopwatch):
            size, factor = more.partitions_per_topic, more.replication_factor
            topics = tuple(NewTopic(name, size, factor) for name in more.names())
            await service.answer(CreateTopicsRequest(topics))
            taken = await stopwatch.take("CreateTopics") + await stopwatch.take("TopicChange")
            self.creation.events.append(taken)
            self.deletion.events.append(await self._delete(service, stopwatch, more))

    async def _floors_of_topics(self, more: Shape) -> None:
        ops = [*creation(more), *(Create(paths.topic_config(name), formats.encode_config({})) for name in more.names())]
        data = [op.data for op in ops if isinstance(op, Create) and op.data]
        removal: list[Op] = [Delete(op.path) for op in reversed(ops)]
        self.creation.floors.append(await write_floor(self.controllers, [ops], data))
        self.deletion.floors.append(await write_floor(self.controllers, [removal], data))

    async def _delete(self, service: ControllerService, stopwatch: Stopwatch, more: Shape) -> Times:
        replicas = await self._replicas(more)
        await service.answer(DeleteTopicsRequest(tuple(more.names())))
        taken = await stopwatch.take("DeleteTopics") + await stopwatch.take("TopicDeletion")
        answers = [replicas[start : start + ANSWERED_AT_ONCE] for start in range(0, len(replicas), ANSWERED_AT_ONCE)]
        for answer in answers:
            service.tell(ReplicasDeleted(tuple((replica, EPOCH_DURING_DELETE) for replica in answer)))
        return taken + await stopwatch.take("ReplicasDeleted", len(answers))

    async def _replicas(self, more: Shape) -> list[Stray]:
        """List the replicas of topics, by broker."""
        znodes = zip(more.names(), await self.store.read([paths.topic(name) for name in more.names()]), strict=True)
        topics = {name: formats.decode_topic(name, znode.data) for name, znode in znodes if znode is not None}
        return sorted(
            (
                Stray(topic.topic_id or "", name, number, broker_id)
                for name, topic in topics.items()
                for number, assignment in topic.partitions.items()
                for broker_id in assignment.replicas
            ),
            key=lambda replica: replica.broker_id,
        )


async def measure(partitions: int) -> list[Row]:
    """Measure all rows on a separate server."""
    shape = Shape(partitions // 50, 50, led_by_first=partitions // 4)
    more = Shape(partitions // 100, 100, prefix="new")
    titles = (
        f"failover, {partitions:,} partitions",
        f"loss of a broker that leads {partitions // 4:,}",
        "controlled shutdown of such a broker",
        f"creation of {more.topics:,} topics of 100 partitions",
        "deletion of them",
    )
    rows = [Row(title) for title in titles]
    with tempfile.TemporaryDirectory() as directory:
        async with (
            development_zookeeper(Path(directory)) as server,
            open_zookeeper(server.address) as controllers,
            open_zookeeper(server.address) as store,
        ):
            bench = Bench(shape, controllers, store, *rows)
            await create_cluster(store, shape)
            for _ in range(ROUNDS):
                await bench.lose()
                await bench.shut_down()
                await bench.create_and_delete(more)
    return rows


def main() -> None:
    """Print a row for each event."""
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else PARTITIONS
    try:
        rows = trio.run(measure, partitions)
    except DevelopmentServerError as error:
        sys.exit(str(error))
    print(f"| event, median of {ROUNDS} or more | floor, s | controller, s | ratio | of processor time |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        row.show()


if __name__ == "__main__":
    main()
