"""Large events of the controller, compared with the floor: the same data read or written in bulk, packed and told once.

There are 2,000 topics of 50 partitions with 3 replicas on 10 brokers, which run in a process of their own and accept
every order at once, and a separate ZooKeeper server. The floor is measured in the same run, next to the event, through
the same store and with the same brokers. An event ends when the last state is in ZooKeeper and the last broker has
answered. `--rounds` gives the number of rounds, an argument without a name that of the partitions.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from attrs import define

from benchmarks.kit import command
from benchmarks.kit.accepting_brokers import AcceptingBrokers, our_brokers
from benchmarks.kit.cluster import (
    Shape,
    commit_all,
    create_cluster,
    creation,
    moved,
    moved_to,
    register,
    state_znodes,
    topic_znodes,
)
from benchmarks.kit.controllership import Controllership, controllership
from benchmarks.kit.floor import CHUNKS, Recipients, Replicas, news_of, read_floor, telling_floor, write_floor
from benchmarks.kit.rows import Row, table
from benchmarks.kit.times import NO_TIME, Times
from transport.metadata import LeaderAndIsr, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import ANY_VERSION, Create, Delete, MetadataStore, Op, Set
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

PARTITIONS: Final = 100_000
ROUNDS: Final = 5
BROKERS: Final = 10
BROKER: Final = 0
"""The broker that is lost or shut down."""

MOVED: Final = 20
"""One of so many partitions is reassigned."""

LEAST_METADATA: Final = 40
"""A partition takes more bytes than that in UpdateMetadata."""


@define
class Rows:
    """The rows of the table, in its order."""

    failover: Row
    loss: Row
    shutdown: Row
    creation: Row
    deletion: Row
    reassignment: Row

    def all(self) -> list[Row]:
        """List the rows."""
        return [self.failover, self.loss, self.shutdown, self.creation, self.deletion, self.reassignment]


@define
class Bench:
    """The cluster, the controllers' session with its store, and a session for the benchmark."""

    shape: Shape
    controllers: MetadataStore
    store: MetadataStore
    brokers: AcceptingBrokers
    rows: Rows

    @property
    def ports(self) -> dict[int, int]:
        """The ports of the brokers, by their ids."""
        return dict(enumerate(self.brokers.ports))

    # --- failover, loss and shutdown --------------------------------------------------------------------------------

    @asynccontextmanager
    async def in_office(self) -> AsyncIterator[Controllership]:
        """Fail over to a new controller."""
        shape, row = self.shape, self.rows.failover
        told = await telling_floor(self.ports, news_of(shape, dict(state_znodes(shape)), all_lead))
        row.add_floor(await read_floor(self.controllers, shape) + told)
        async with controllership(self.controllers, self.store, self.brokers) as controller:
            outcome = await controller.fail_over()
            taken = outcome.taken
            _require(taken.leader_and_isr.partitions >= shape.partitions * shape.replication_factor, "what was told")
            _require(taken.update_metadata.size >= shape.partitions * shape.brokers * LEAST_METADATA, "what was told")
            row.add(outcome)
            yield controller

    async def lose(self) -> None:
        """Lose a broker."""
        row = self.rows.loss
        async with self.in_office() as controller:
            row.add(await controller.lose(BROKER))
        row.add_floor(await self._floor_of_leaving(others_lead, live=1))
        await self._restore()
        await register(self.store, BROKER, self.ports[BROKER])

    async def shut_down(self) -> None:
        """Relieve a broker that is about to stop."""
        row = self.rows.shutdown
        async with self.in_office() as controller:
            row.add(await controller.shut_down(BROKER))
        row.add_floor(await self._floor_of_leaving(others_lead_and_it_stops))
        await self._restore()

    async def _floor_of_leaving(self, recipients: Recipients, live: int = 0) -> Times:
        """Write and tell again what the controller has written, to the brokers from `live` on."""
        written = await self._changed()
        replicas = map(self.shape.replicas, range(self.shape.partitions))
        _require(len(written) == sum(BROKER in of for of in replicas), "states that were written")
        _require(not any(BROKER in _decoded(*of).isr for of in written.items()), "ISRs without the broker that left")
        ops: list[Op] = [Set(path, data, ANY_VERSION) for path, data in written.items()]
        floor = await write_floor(self.controllers, [ops] * len(CHUNKS), list(written.values()))
        ports = {broker_id: port for broker_id, port in self.ports.items() if broker_id >= live}
        return floor + await telling_floor(ports, news_of(self.shape, written, recipients))

    async def _changed(self) -> dict[str, bytes]:
        """Return the states that are not the original ones, by their paths."""
        original = dict(state_znodes(self.shape))
        found = zip(original, await self.store.read(list(original)), strict=True)
        return {path: znode.data for path, znode in found if znode is not None and znode.data != original[path]}

    async def _restore(self) -> None:
        """Restore the original states."""
        original = dict(state_znodes(self.shape))
        await commit_all(self.store, [Set(path, original[path], ANY_VERSION) for path in await self._changed()])

    # --- creation and deletion --------------------------------------------------------------------------------------

    async def create_and_delete(self, more: Shape) -> None:
        """Create topics and delete them, first for the floor and then with the controller."""
        await self._floors_of_topics(more)
        async with self.in_office() as controller:
            self.rows.creation.add(await controller.create(more))
            _require(None not in await self.store.read([*map(paths.partition_state, more.tps())]), "states of topics")
            self.rows.deletion.add(await controller.delete(more))
            [left] = await self.store.children([paths.TOPICS])
            _require(left is not None and len(left) == self.shape.topics, "topics that are left")

    async def _floors_of_topics(self, more: Shape) -> None:
        ops = [*creation(more), *(Create(paths.topic_config(name), formats.encode_config({})) for name in more.names())]
        data = [op.data for op in ops if isinstance(op, Create) and op.data]
        removal: list[Op] = [Delete(op.path) for op in reversed(ops)]
        states = dict(state_znodes(more))
        told = await telling_floor(self.ports, news_of(more, states, all_lead))
        self.rows.creation.add_floor(await write_floor(self.controllers, [ops], data) + told)
        told = await telling_floor(self.ports, news_of(more, states, all_stop))
        self.rows.deletion.add_floor(await write_floor(self.controllers, [removal], data) + told)

    # --- reassignment -----------------------------------------------------------------------------------------------

    async def reassign(self) -> None:
        """Move one replica each of some partitions."""
        shape, row = self.shape, self.rows.reassignment
        targets = moved(shape, MOVED)
        async with self.in_office() as controller:
            row.add(await controller.move(targets))
        row.add_floor(await self._floor_of_moves(targets))
        await self._restore()
        await commit_all(self.store, [Set(path, data, ANY_VERSION) for path, data in topic_znodes(shape)])

    async def _floor_of_moves(self, targets: dict[TopicPartition, tuple[int, ...]]) -> Times:
        """Write and tell what a move passes through: its beginning, the new replica in the ISR, and the end."""
        states = await self._changed()
        isrs = {path: set(_decoded(path, data).isr) for path, data in states.items()}
        _require(isrs == {paths.partition_state(tp): set(to) for tp, to in targets.items()}, "ISRs after moves")
        names = [paths.topic(name) for name in dict.fromkeys(tp.topic for tp in targets)]
        topics = [znode.data for znode in await self.store.read(names) if znode is not None]
        begun = [*zip(names, topics, strict=True), *states.items()]
        floor = NO_TIME
        for written in (begun, list(states.items()), begun):
            ops: list[Op] = [Set(path, data, ANY_VERSION) for path, data in written]
            floor += await write_floor(self.controllers, [ops] * len(CHUNKS), [data for _, data in written])
        for recipients in (self._all_lead_with_new, nobody_leads, self._target_leads):
            floor += await telling_floor(self.ports, news_of(self.shape, states, recipients))
        return floor

    def _all_lead_with_new(self, replicas: Replicas) -> tuple[Replicas, Replicas]:
        """At the beginning of a move, the old replicas and the new one lead or follow."""
        return (*replicas, moved_to(self.shape, replicas)[-1]), ()

    def _target_leads(self, replicas: Replicas) -> tuple[Replicas, Replicas]:
        """At the end of a move, the new replicas lead or follow, and the one that leaves stops."""
        return moved_to(self.shape, replicas), (replicas[-1],)


# --- who leads or follows, and who stops ------------------------------------------------------------------------------


def all_lead(replicas: Replicas) -> tuple[Replicas, Replicas]:
    """All replicas lead or follow."""
    return replicas, ()


def all_stop(replicas: Replicas) -> tuple[Replicas, Replicas]:
    """All replicas stop."""
    return (), replicas


def others_lead(replicas: Replicas) -> tuple[Replicas, Replicas]:
    """All replicas but that of the broker that leaves lead or follow."""
    return tuple(r for r in replicas if r != BROKER), ()


def others_lead_and_it_stops(replicas: Replicas) -> tuple[Replicas, Replicas]:
    """Like `others_lead`, and the replica of the broker that leaves stops."""
    return others_lead(replicas)[0], (BROKER,)


def nobody_leads(replicas: Replicas) -> tuple[Replicas, Replicas]:  # noqa: ARG001
    """When a replica has joined the ISR, only the metadata change."""
    return (), ()


def _decoded(path: str, data: bytes) -> LeaderAndIsr:
    topic, _, partition, _ = path.removeprefix(f"{paths.TOPICS}/").split("/")
    return formats.decode_partition_state(TopicPartition(topic, int(partition)), data, 0)


def _require(holds: bool, what: str) -> None:  # noqa: FBT001
    if not holds:
        raise RuntimeError(f"not as expected: {what}")


async def measure(partitions: int, rounds: int) -> Rows:
    """Measure all rows on a separate server."""
    shape = Shape(partitions // 50, 50, BROKERS, led_by_first=partitions // 4)
    more = Shape(partitions // 100, 100, BROKERS, prefix="new")
    titles = (
        f"failover, {partitions:,} partitions",
        f"loss of a broker that leads {partitions // 4:,}",
        "controlled shutdown of such a broker",
        f"creation of {more.topics:,} topics of 100 partitions",
        "deletion of them",
        f"reassignment of {partitions // MOVED:,}",
    )
    rows = Rows(*map(Row, titles))
    with tempfile.TemporaryDirectory() as directory:
        async with (
            development_zookeeper(Path(directory)) as server,
            our_brokers(shape.brokers, Path(directory) / "brokers.log") as brokers,
            open_zookeeper(server.address) as controllers,
            open_zookeeper(server.address) as store,
        ):
            bench = Bench(shape, controllers, store, brokers, rows)
            await create_cluster(store, shape, brokers.ports)
            for _ in range(rounds):
                await bench.lose()
                await bench.shut_down()
                await bench.create_and_delete(more)
                await bench.reassign()
    return rows


def main() -> None:
    """Print a row for each event."""
    parser = command.parser(__doc__)
    parser.add_argument("partitions", type=int, nargs="?", default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    rows = command.on_zookeeper(measure, arguments.partitions, arguments.rounds)
    for line in table(rows.all()):
        print(line)
    per_partition = rows.failover.processor / arguments.partitions * 1e6
    print(f"\nA failover takes {per_partition:.1f} us of the controller's processor time per partition.")


if __name__ == "__main__":
    main()
