"""Three real brokers of Apache Kafka, two controllers of Klamm's, and the office that goes back and forth."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit.cluster import Shape, commit_all, topic_znodes
from benchmarks.kit.executed_orders import ExecutedOrders
from benchmarks.kit.kafka_broker import KafkaBroker
from benchmarks.kit.samples import KLAMM, now, say
from controller.admin import handover
from transport.child_process import spawn
from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.metadata import LeaderAndIsr, TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore, Znode
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import HOST

OURS: Final = (9001, 9002)
PATIENCE_SECONDS: Final = 900
POLL_SECONDS: Final = 0.01
LOOK_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 3
SESSION_MS: Final = 6000
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "10000",
    "num.recovery.threads.per.data.dir": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
    # The files of indexes have this size from the beginning.
    "log.index.size.max.bytes": "65536",
}

IsDone = Callable[[Mapping[TopicPartition, LeaderAndIsr]], bool]


@define(eq=False)
class RealCluster:
    """The running cluster. Each of its brokers has a replica of each partition."""

    zookeeper: str
    directory: Path
    store: MetadataStore
    shape: Shape
    brokers: dict[int, KafkaBroker]
    controllers: dict[int, subprocess.Popen[bytes]] = field(factory=dict, init=False)
    executed: dict[int, ExecutedOrders] = field(factory=dict, init=False)
    _told: str = field(default="", init=False)

    @property
    def live(self) -> list[KafkaBroker]:
        """The brokers whose process is alive."""
        return [broker for broker in self.brokers.values() if broker.process.poll() is None]

    # --- processes ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start all processes, and create the topics; a controller of Kafka's is in office then."""
        for broker in self.brokers.values():
            broker.start()
        for broker in self.brokers.values():
            await broker.until_listening()
            self.executed[broker.id] = ExecutedOrders(broker.log("state-change"))
        await self._require(paths.CONTROLLER)
        for controller_id in OURS:
            self.start_controller(controller_id)
        configs = [Create(paths.topic_config(name), formats.encode_config({})) for name in self.shape.names()]
        await commit_all(self.store, configs)
        await commit_all(self.store, [Create(path, data) for path, data in topic_znodes(self.shape)])
        await self.until_settled(self.is_whole)

    def start_controller(self, controller_id: int) -> None:
        """Start a controller of Klamm's."""
        command = [sys.executable, "-m", "klamm", "controller", "run", "--kafka", "--id", str(controller_id)]
        command += ["--zookeeper", self.zookeeper, "--session-timeout", str(SESSION_MS)]
        command.append("--no-auto-leader-rebalance-enable")
        self.controllers[controller_id] = spawn(command, self.directory / f"controller-{controller_id}.log")

    def kill_controller(self, controller_id: int) -> None:
        """Kill a controller of Klamm's with SIGKILL."""
        self.controllers[controller_id].kill()
        self.controllers[controller_id].wait()

    def end(self) -> None:
        """Kill all processes."""
        processes = [process for broker in self.brokers.values() for process in broker.processes]
        for process in [*processes, *self.controllers.values()]:
            process.kill()
        for process in [*processes, *self.controllers.values()]:
            process.wait()

    # --- the office -----------------------------------------------------------------------------------------------

    async def give_office_to(self, side: str) -> None:
        """Let the controller be one of Klamm's or of Kafka's, which it is not."""
        self.mark()
        if side == KLAMM:
            await handover.take_over(self.store, now() // 1000, PATIENCE_SECONDS)
        else:
            await handover.release(self.store, now() // 1000, PATIENCE_SECONDS)
        await self.until_settled(self.has_told_all)

    async def controller_id(self) -> int:
        """Return the id of the controller in office."""
        controller_id: int = json.loads((await self.office()).data)["brokerid"]
        return controller_id

    async def next_controller(self, before: Znode) -> Znode:
        """Return the `/controller` that follows another."""
        while True:
            found = await self.office()
            if found.stat.mzxid != before.stat.mzxid:
                return found
            await trio.sleep(POLL_SECONDS)

    async def office(self) -> Znode:
        """Return `/controller`."""
        return await self._require(paths.CONTROLLER)

    # --- states ---------------------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Forget what brokers have executed up to now."""
        for executed in self.executed.values():
            executed.mark()

    async def until_settled(self, is_done: IsDone, *, lost: int | None = None) -> int:
        """Wait until an event is over, and all live brokers know it; `lost` is a broker that does not lead any more.

        Returns when the last order was executed, or the last state written, in microseconds since 1970.
        """
        with trio.fail_after(PATIENCE_SECONDS):
            while True:
                await trio.sleep(LOOK_SECONDS)
                for broker in self.live:
                    self.executed[broker.id].look()
                last = max(self.executed[broker.id].last for broker in self.live)
                if not _is_quiet_since(last):
                    continue
                states, written = await self.states()
                # What has just been written is still to be told.
                if _is_quiet_since(written) and is_done(states) and await self._is_known(lost):
                    return max(last, written)

    async def states(self) -> tuple[dict[TopicPartition, LeaderAndIsr], int]:
        """Return all states, and when the last of them was written, in microseconds since 1970."""
        names, size = self.shape.names(), self.shape.partitions_per_topic
        tps = [TopicPartition(name, number) for name in names for number in range(size)]
        znodes = zip(tps, await self.store.read([paths.partition_state(tp) for tp in tps]), strict=True)
        found = {tp: znode for tp, znode in znodes if znode is not None}
        states = {tp: formats.decode_partition_state(tp, at.data, at.stat.version) for tp, at in found.items()}
        return states, max((znode.stat.mtime_ms for znode in found.values()), default=0) * 1000

    def is_whole(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> bool:
        """Return whether each partition exists, with all brokers in its ISR."""
        return len(states) == self.shape.partitions and all(len(of.isr) == len(self.brokers) for of in states.values())

    def is_balanced(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> bool:
        """Return whether each partition is led by its preferred leader."""
        leaders = [self.shape.replicas(number)[0] for number in range(self.shape.partitions)]
        return [of.leader for of in states.values()] == leaders

    def has_told_all(self, _: Mapping[TopicPartition, LeaderAndIsr]) -> bool:
        """Return whether each broker has executed a LeaderAndIsr and an UpdateMetadata for each partition."""
        told = [self.executed[broker.id] for broker in self.live]
        return all(min(of.replicas, of.partitions) >= self.shape.partitions for of in told)

    async def restore(self, broker: KafkaBroker) -> int:
        """Start a broker again, and let all leaders be the preferred ones; return when that was asked for."""
        await self.until_registered(broker, wanted=False)
        broker.start()
        await broker.until_listening()
        await self.until_settled(self.is_whole)
        say(f"broker {broker.id} is back")
        self.mark()
        tps = [{"topic": t, "partition": p} for t in self.shape.names() for p in range(self.shape.partitions_per_topic)]
        wanted = [tp for number, tp in enumerate(tps) if self.shape.replicas(number)[0] == broker.id]
        begun, data = now(), json.dumps({"version": 1, "partitions": wanted}).encode()
        await self.store.multi([Create(paths.PREFERRED_REPLICA_ELECTION, data)])
        return begun

    async def until_registered(self, broker: KafkaBroker, *, wanted: bool) -> None:
        """Wait until a broker is registered, or not."""
        with trio.fail_after(PATIENCE_SECONDS):
            while (await self.store.read([paths.broker(broker.id)]) != [None]) != wanted:  # noqa: ASYNC110
                await trio.sleep(POLL_SECONDS)

    async def _is_known(self, lost: int | None) -> bool:
        """Return whether each live broker names the controller, and no leader that is lost; tell it if one does not."""
        controller_id = await self.controller_id()
        for broker in self.live:
            async with open_kafka_connection(TcpNetwork(), HOST, broker.port, client_id="benchmark") as connection:
                version = connection.version_of(kafka.MetadataRequest)
                asked = kafka.MetadataRequest(None, allow_auto_topic_creation=False)
                found = await connection.send(asked, kafka.MetadataResponse, version)
            leaders = Counter(partition.leader_id for topic in found.topics for partition in topic.partitions)
            known = (found.controller_id, leaders[lost] if lost is not None else 0, leaders.total())
            if known != (controller_id, 0, self.shape.partitions):
                self._tell_once(f"broker {broker.id} knows controller {found.controller_id}, leaders {dict(leaders)}")
                return False
        return True

    def _tell_once(self, text: str) -> None:
        if text != self._told:
            say(text)
        self._told = text

    async def _require(self, path: str) -> Znode:
        with trio.fail_after(PATIENCE_SECONDS):
            while (found := await self.store.read([path])) == [None]:  # noqa: ASYNC110
                await trio.sleep(POLL_SECONDS)
        assert found[0] is not None
        return found[0]


def _is_quiet_since(last: int) -> bool:
    return now() - last > QUIET_SECONDS * 1_000_000


@asynccontextmanager
async def real_cluster(zookeeper: str, directory: Path, shape: Shape, heap: str) -> AsyncIterator[RealCluster]:
    """Run a cluster until the end of the block."""
    folders = {id_: directory / f"broker-{id_}" for id_ in range(shape.brokers)}
    brokers = {id_: KafkaBroker(id_, zookeeper, folder, heap, SETTINGS) for id_, folder in folders.items()}
    async with open_zookeeper(zookeeper, session_timeout_ms=60_000) as store:
        cluster = RealCluster(zookeeper, directory, store, shape, brokers)
        try:
            await cluster.start()
            yield cluster
        finally:
            cluster.end()
