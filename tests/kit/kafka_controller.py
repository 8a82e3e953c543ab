"""Plays the part of Apache Kafka's controller: writes the znodes of requested moves as it does.

Only the steps that tools can see from outside: U1, the growth of the ISR by brokers, B4 to B7, each in its own write.
The JSON is Kafka's to the byte; a topic's znode is of version 2 (2.4 to 2.7, without an id) or 3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import trio
from attrs import define, field

from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.protocol import Create, Delete, MetadataStore, Set, WatchFired, ensure_paths

Lists = dict[str, list[int]]

KAFKA_PATHS = (
    "/consumers",
    "/brokers/ids",
    "/brokers/topics",
    "/config/changes",
    "/admin/delete_topics",
    "/brokers/seqid",
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)


def dumps(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def topic_data(version: int, partitions: Lists, adding: Lists, removing: Lists) -> bytes:
    """Return a topic's znode as Kafka's TopicZNode encodes it."""
    identity = {"topic_id": "mK1qW5yGTWa4mNnWjZ3zbA"} if version == 3 else {}
    head: dict[str, object] = {"version": version, **identity, "partitions": partitions}
    return dumps(head | {"adding_replicas": adding, "removing_replicas": removing})


def state_data(leader: int, leader_epoch: int, isr: Sequence[int]) -> bytes:
    """Return a partition's state as Kafka's TopicPartitionStateZNode encodes it."""
    state = {"controller_epoch": 7, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": list(isr)}
    return dumps(state)


@define
class KafkaController:
    """Controller 1 of a cluster of Kafka's brokers, with one topic."""

    store: MetadataStore
    version: int = 3
    topic: str = "orders"
    partitions: Lists = field(factory=dict)
    adding: Lists = field(factory=dict)
    removing: Lists = field(factory=dict)
    may_catch_up: trio.Event = field(factory=trio.Event)
    """Set when the adding replicas may join the ISR."""

    requests: list[bytes] = field(factory=list)
    """The contents of `/admin/reassign_partitions` each time it was created."""

    async def start(self, brokers: Sequence[int], partitions: Lists) -> None:
        """Register brokers, take office and create the topic."""
        self.partitions = dict(partitions)
        await ensure_paths(self.store, KAFKA_PATHS)
        for id_ in brokers:
            registration = {
                "version": 5,
                "host": "127.0.0.1",
                "port": 9090 + id_,
                "endpoints": [f"PLAINTEXT://127.0.0.1:{9090 + id_}"],
                "jmx_port": -1,
                "timestamp": "1700000000000",
                "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
                "features": {},
            }
            await self.store.multi([Create(paths.broker(id_), dumps(registration), ephemeral=True)])
        holder = {"version": 2, "brokerid": 1, "timestamp": "1700000000000", "kraftControllerEpoch": -1}
        await self.store.multi([Create(paths.CONTROLLER, dumps(holder), ephemeral=True)])
        await self.store.multi([Create(paths.CONTROLLER_EPOCH, b"7")])
        await self.store.multi([Create(paths.topic(self.topic), self._topic())])
        await self.store.multi([Create(paths.topic_partitions(self.topic))])
        for number, replicas in partitions.items():
            tp = self._tp(number)
            state = state_data(replicas[0], 0, replicas)
            await self.store.multi([Create(paths.partition(tp)), Create(paths.partition_state(tp), state)])

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Carry out each request when its znode is created, and ignore everything else."""
        news = trio.Event()

        def on_event(event: object) -> None:
            if isinstance(event, WatchFired) and event.path == paths.REASSIGN_PARTITIONS:
                news.set()

        self.store.subscribe(on_event)
        task_status.started()
        while True:
            [znode] = await self.store.read([paths.REASSIGN_PARTITIONS], watch=True)
            if znode is None:
                await news.wait()
                news = trio.Event()
                continue
            self.requests.append(znode.data)
            await self._carry_out(
                {str(entry["partition"]): entry["replicas"] for entry in json.loads(znode.data)["partitions"]}
            )

    async def _carry_out(self, targets: Mapping[str, list[int]]) -> None:
        for number, target in targets.items():  # U1
            origin = self.partitions[number]
            self.partitions[number] = target + [r for r in origin if r not in target]
            self.adding[number] = [r for r in target if r not in origin]
            self.removing[number] = [r for r in origin if r not in target]
            await self._write_topic()
        await self.may_catch_up.wait()
        left = dict(targets)
        for number, target in targets.items():
            leader, replicas = self.partitions[number][-1], self.partitions[number]
            await self._write_state(number, state_data(leader, 1, replicas))
            await self._write_state(number, state_data(target[0], 2, replicas))  # B3
            await self._write_state(number, state_data(target[0], 3, target))  # B4
            self.partitions[number] = list(target)
            del self.adding[number], self.removing[number]
            await self._write_topic()  # B6
            del left[number]
            await self._leave(left)  # B7

    async def _leave(self, left: Mapping[str, list[int]]) -> None:
        if not left:
            await self.store.multi([Delete(paths.REASSIGN_PARTITIONS)])
            return
        entries = [{"topic": self.topic, "partition": int(number), "replicas": new} for number, new in left.items()]
        await self.store.multi([Set(paths.REASSIGN_PARTITIONS, dumps({"version": 1, "partitions": entries}), -1)])

    async def _write_topic(self) -> None:
        await self.store.multi([Set(paths.topic(self.topic), self._topic(), -1)])

    async def _write_state(self, number: str, state: bytes) -> None:
        await self.store.multi([Set(paths.partition_state(self._tp(number)), state, -1)])

    def _topic(self) -> bytes:
        return topic_data(self.version, self.partitions, self.adding, self.removing)

    def _tp(self, number: str) -> TopicPartition:
        return TopicPartition(self.topic, int(number))
