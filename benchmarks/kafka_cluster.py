"""Large events of a cluster of three real brokers of Apache Kafka, under Klamm's controller and under Kafka's own.

The brokers have 10,000 partitions with 3 replicas, so each has a replica of each partition, and leads a third. The
office goes from one controller to the other and back in one run. The events:

- failover: with Kafka's controller, `/controller` is deleted; with Klamm's, its process is killed, and a standby takes
  over. It begins when `/controller` is created.
- loss: a broker is killed. Begins when its registration goes with its session.
- preferred election: that broker is back in every ISR, and is to lead its third again. Begins with the request.
- controlled shutdown: a broker is sent SIGTERM. It begins and ends with the broker's own lines in its log.

The others end with the last state in ZooKeeper, or when the last order has been executed, as the brokers' logs of state
changes tell. An event is over only when the brokers' answers to Metadata agree with it. The broker that is lost or shut
down is never the one in which Kafka's controller lives. The data are in memory, in /dev/shm, if there is one.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit import command
from benchmarks.kit.cluster import Shape
from benchmarks.kit.kafka_broker import KafkaBroker, require_jars
from benchmarks.kit.real_cluster import PATIENCE_SECONDS, RealCluster, real_cluster
from benchmarks.kit.samples import KAFKA, KLAMM, Sample, Samples, now, say
from transport.metadata import LeaderAndIsr, TopicPartition
from transport.store import paths
from transport.store.protocol import Delete
from transport.zookeeper_server import development_zookeeper

PARTITIONS: Final = 10_000
PARTITIONS_PER_TOPIC: Final = 50
BROKERS: Final = 3
ROUNDS: Final = 2
HEAP: Final = "2g"
MICROSECONDS: Final = 1_000_000
FILES: Final = 2000
"""The files that a broker opens besides one for each replica."""

_MEMORY: Final = "/dev/shm"  # noqa: S108 - tempfile makes a folder of its own in it

STARTING: Final = "Starting controlled shutdown"
SUCCEEDED: Final = "Controlled shutdown request returned successfully"


@define
class Bench:
    """The cluster, and what has been measured."""

    cluster: RealCluster
    samples: Samples = field(factory=Samples, init=False)

    async def run(self, rounds: int) -> None:
        """Measure all events under both controllers; each begins a round as often as the other."""
        order = [KAFKA, KLAMM]
        for _ in range(rounds):
            for side in order:
                if await self._in_office() != side:
                    await self.cluster.give_office_to(side)
                await self._fail_over(side)
                await self._lose(side)
                await self._shut_down(side)
            order.reverse()

    async def _in_office(self) -> str:
        return KAFKA if await self.cluster.controller_id() in self.cluster.brokers else KLAMM

    async def _fail_over(self, side: str) -> None:
        cluster = self.cluster
        before, controller_id = await cluster.office(), await cluster.controller_id()
        cluster.mark()
        if side == KLAMM:
            cluster.kill_controller(controller_id)
        else:
            await cluster.store.multi([Delete(paths.CONTROLLER)])
        with trio.fail_after(PATIENCE_SECONDS):
            begun = (await cluster.next_controller(before)).stat.mtime_ms * 1000
        self._add("failover", side, begun, await cluster.until_settled(cluster.has_told_all))
        if side == KLAMM:
            cluster.start_controller(controller_id)

    async def _lose(self, side: str) -> None:
        broker = await self._victim()
        self.cluster.mark()
        broker.kill()
        await self.cluster.until_registered(broker, wanted=False)
        begun = now()
        self._add("loss", side, begun, await self._until_left(broker))
        await self._restore(side, broker)

    async def _shut_down(self, side: str) -> None:
        broker = await self._victim()
        self.cluster.mark()
        broker.process.send_signal(signal.SIGTERM)
        await trio.to_thread.run_sync(broker.process.wait, PATIENCE_SECONDS, abandon_on_cancel=True)
        begun, ended = broker.logged(STARTING)[-1], max(broker.logged(SUCCEEDED), default=0)
        if ended < begun:
            raise RuntimeError(f"broker {broker.id} was not shut down in order: see {broker.log('server')}")
        self._add("controlled shutdown", side, begun, ended)
        await self._until_left(broker)
        await self._restore(side, broker)

    async def _until_left(self, broker: KafkaBroker) -> int:
        def is_left(states: Mapping[TopicPartition, LeaderAndIsr]) -> bool:
            return not any(broker.id in (state.leader, *state.isr) for state in states.values())

        return await self.cluster.until_settled(is_left, lost=broker.id)

    async def _restore(self, side: str, broker: KafkaBroker) -> None:
        begun = await self.cluster.restore(broker)
        self._add("preferred election", side, begun, await self.cluster.until_settled(self.cluster.is_balanced))

    async def _victim(self) -> KafkaBroker:
        controller_id = await self.cluster.controller_id()
        return next(broker for broker in self.cluster.brokers.values() if broker.id != controller_id)

    def _add(self, event: str, side: str, begun: int, ended: int) -> None:
        self.samples.add(event, side, Sample((ended - begun) / MICROSECONDS))


def _memory() -> str | None:
    """Return a folder in memory; None for the usual one where there is none.

    A broker forces several files of each partition to disk, and the disk is not what is compared.
    """
    return _MEMORY if os.access(_MEMORY, os.W_OK) else None


async def measure(partitions: int, rounds: int, heap: str) -> Samples:
    """Measure all events on a separate server."""
    shape = Shape(max(1, partitions // PARTITIONS_PER_TOPIC), PARTITIONS_PER_TOPIC, brokers=BROKERS)
    with tempfile.TemporaryDirectory(dir=_memory()) as directory:
        async with (
            development_zookeeper(Path(directory) / "zookeeper") as server,
            real_cluster(f"{server.address}/cluster", Path(directory), shape, heap) as cluster,
        ):
            say(f"{shape.partitions:,} partitions were created")
            bench = Bench(cluster)
            await bench.run(rounds)
    return bench.samples


def main() -> None:
    """Print a row for each event."""
    parser = command.parser(__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--heap", default=HEAP, help="the heap of a broker")
    arguments = parser.parse_args()
    require_jars()
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 < files < arguments.partitions + FILES:
        sys.exit(f"a broker may open {files:,} files only: raise ulimit -Hn, or name fewer --partitions")
    samples = command.on_zookeeper(measure, arguments.partitions, arguments.rounds, arguments.heap)
    print(f"\n{arguments.partitions:,} partitions on {BROKERS} real brokers:\n")
    for line in samples.table():
        print(line)


if __name__ == "__main__":
    main()
