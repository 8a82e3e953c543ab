"""Clusters of one shape under Kafka's own controller and under ours, at which Kafka's tools are pointed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen
from confluent_kafka import Producer

from tests.kafka import jars
from tests.kafka.cluster_security import ADMIN, ClusterSecurity
from tests.kafka.moves import BYTES, RECORDS
from tests.kafka.real_brokers import RealBroker, kill
from tests.kafka.real_cluster import OPEN, PATIENCE_SECONDS, SETTINGS, Starting, real_broker_of, real_cluster, until
from tests.kafka.real_controllers import LISTENERS
from tests.kafka.told_metadata import told_metadata
from tests.kafka.tool_runner import ToolRunner, running_tools
from tests.kit.ports import free_ports
from transport.network import TcpNetwork
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import HOST

BROKERS: Final = (1, 2, 3)
SECONDS: Final = 30
UNORDERED: Final = frozenset({"kafka-consumer-groups", "kafka-leader-election"})
"""The tools whose lines are in the order of answers, or in none."""

_NOISE: Final = re.compile(r"\s*$|\tat |\t\.\.\. \d+ more|log4j:|SLF4J")
_VARYING: Final = (
    (r"(127\.0\.0\.1:\d+,?)+", "SERVERS"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"SERVERS +\(\d\)", "COORDINATOR"),
    (r"User:CN=", "User:"),
    (r"Request Request\(.*\) is", "REQUEST is"),
)


def write_replicas(file: Path, partitions: Mapping[str, Sequence[int]]) -> None:
    """Write a file of the replicas that partitions such as orders-0 are to have, as Kafka's tools read it."""
    rows = [(name.rpartition("-"), replicas) for name, replicas in partitions.items()]
    wanted = [{"topic": topic, "partition": int(number), "replicas": on} for (topic, _, number), on in rows]
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))


@frozen
class Answer:
    """What a tool has said to a command, without what differs between two runs on the same cluster."""

    command: str
    code: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"$ {self.command}", f"exit code {self.code}", *self.lines])


@define(eq=False)
class Side:
    """A cluster, and what tools have said to it."""

    brokers: Mapping[int, RealBroker]
    clients: Mapping[int, str]
    directory: Path
    tools: ToolRunner
    security: ClusterSecurity | None = None
    answers: list[Answer] = field(factory=list, init=False)

    async def play(self, commands: str, tool: str = "") -> None:
        """Run commands, one a line, all of the same tool perhaps, and take what they say.

        Brokers read changes of settings some time later: a command is repeated until it says what is behind `# until`,
        or does not say what is behind `# until no`.
        """
        for line in filter(None, map(str.strip, commands.splitlines())):
            command, _, end = line.partition(" # until ")
            await self.run(f"{tool} {command}".strip(), end=end)

    async def run(self, command: str, stdin: bytes = b"", end: str = "") -> None:
        """Run a command, in which {} stands for the cluster's directory, and take what it says."""
        answer = await self._answer(command, stdin)
        with trio.fail_after(PATIENCE_SECONDS):
            while (end.removeprefix("no ") in str(answer)) is end.startswith("no "):
                answer = await self._answer(command, stdin)
        self.answers.append(answer)

    async def _answer(self, command: str, stdin: bytes) -> Answer:
        tool, *words = shlex.split(command)
        words = [word.replace("{}", str(self.directory)) for word in words]
        code, text = await self.tools.run(tool, *words, stdin=stdin)
        lines = self._lines(text)
        return Answer(command, code, tuple(sorted(lines) if tool in UNORDERED else lines))

    def _lines(self, text: str) -> list[str]:
        text = text.replace(str(self.directory), "{}")
        for varying, name in _VARYING:
            text = re.sub(varying, name, text)
        text = re.sub(r"Isr: ([\d,]+)", _sorted_isr, text)
        return [_in_order(line.rstrip()) for line in text.splitlines() if not _NOISE.match(line)]

    def write(self, name: str, partitions: Mapping[str, Sequence[int]]) -> None:
        """Write a file of the replicas that partitions are to have, in the cluster's directory."""
        write_replicas(self.directory / name, partitions)

    def connecting(self, servers: str) -> dict[str, str | int | float | bool]:
        """Return the settings with which librdkafka connects to brokers."""
        return {"bootstrap.servers": servers, **({} if self.security is None else self.security.of_client())}

    async def fill(self, topic: str, partition: int) -> None:
        """Write so much to a partition that a throttle of next to nothing holds its moves."""
        await trio.to_thread.run_sync(self._fill, topic, partition)

    def _fill(self, topic: str, partition: int) -> None:
        producer = Producer({**self.connecting(self.tools.bootstrap), "acks": "all"})
        for _ in range(RECORDS):
            producer.produce(topic, b".".ljust(BYTES), partition=partition)
        assert producer.flush(SECONDS) == 0

    async def until_moved(self) -> None:
        """Wait until no partition is being moved."""

        async def are_over() -> bool:
            code, told = await self.tools.run("kafka-reassign-partitions", "--list")
            return (code, told.strip()) == (0, "No partition reassignments found.")

        await until(are_over)

    async def until_gone(self, topic: str) -> None:
        """Wait until no broker has data of a topic."""

        async def are_gone() -> bool:
            await trio.lowlevel.checkpoint()
            return not [log for broker in self.brokers.values() for log in broker.logs(topic)]

        await until(are_gone)

    async def until_led(self, topic: str, partition: int, leader: int, *isr: int) -> None:
        """Wait until all living brokers tell clients of this leader, -1 for none, and this ISR."""
        alive = [id_ for id_, broker in self.brokers.items() if broker.process.poll() is None]

        async def do_all_tell() -> bool:
            return all([await self._told(id_, topic, partition) == (leader, set(isr)) for id_ in alive])

        await until(do_all_tell)

    async def _told(self, broker_id: int, topic: str, partition: int) -> tuple[int, set[int]] | None:
        network = TcpNetwork() if self.security is None else self.security.network_of(ADMIN)
        [told] = (await told_metadata(network, self.clients[broker_id], topic)).topics
        found = [one for one in told.partitions if one.partition_index == partition]
        return (found[0].leader_id, set(found[0].isr_nodes)) if found else None


def _sorted_isr(isr: re.Match[str]) -> str:
    return f"Isr: {','.join(sorted(isr[1].split(',')))}"


def _in_order(line: str) -> str:
    """Return a line of JSON about log directories without their names, and with partitions in order."""
    if not line.startswith('{"brokers"'):
        return line
    told = json.loads(line)
    for broker in told["brokers"]:
        rows = [row for directory in broker["logDirs"] for row in directory["partitions"]]
        rows.sort(key=lambda row: str(row["partition"]))
        broker["logDirs"] = [len(broker["logDirs"]), rows]
    return json.dumps(told)


@asynccontextmanager
async def under_kafka(zookeeper: str, directory: Path, security: ClusterSecurity | None = None) -> AsyncIterator[Side]:
    """Run brokers, the first of which is the controller, until the end of the block."""
    settings = {**SETTINGS, **(OPEN if security is None else security.of_broker(*LISTENERS))}
    made = partial(real_broker_of, jars.RELEASE, zookeeper, directory=directory, settings=settings)
    ports = iter(free_ports(2 * len(BROKERS)))
    clients, inner = (dict(zip(BROKERS, ports, strict=False)) for _ in range(2))
    brokers = {id_: made(id_, ports=(inner[id_], clients[id_])) for id_ in BROKERS}
    try:
        if security is not None:
            async with open_zookeeper(zookeeper) as store:
                await security.let_in(store)
        for broker in brokers.values():
            await broker.start()
        addresses = {id_: f"{HOST}:{port}" for id_, port in clients.items()}
        async with _side(brokers, addresses, directory, security) as side:
            yield side
    finally:
        for process in (process for broker in brokers.values() for process in broker.processes):
            kill(process)


@asynccontextmanager
async def under_klamm(zookeeper: str, directory: Path, security: ClusterSecurity | None = None) -> AsyncIterator[Side]:
    """Run brokers and a controller of ours, which clients see, until the end of the block."""
    starting = Starting(are_shown=True)
    async with (
        real_cluster(zookeeper, directory, broker_ids=BROKERS, security=security, starting=starting) as cluster,
        _side(cluster.brokers, cluster.clients, directory, security) as side,
    ):
        yield side


@asynccontextmanager
async def _side(
    brokers: Mapping[int, RealBroker], clients: Mapping[int, str], directory: Path, security: ClusterSecurity | None
) -> AsyncIterator[Side]:
    config = None if security is None else security.of_tools(directory, ADMIN)
    async with running_tools(jars.folder(jars.RELEASE), ",".join(clients.values()), directory, config) as tools:
        yield Side(brokers, clients, directory, tools, security)
