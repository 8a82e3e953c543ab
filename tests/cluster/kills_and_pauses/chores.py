"""An administrator who is busy during the faults: topics, moves, elections and settings, drawn from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import trio
from attrs import define, field

from controller.admin.active_controller import ClusterUnreachable
from controller.admin.client import AdminClient
from tests.cluster.kills_and_pauses.load import Load
from tests.cluster.kills_and_pauses.nodes import BROKERS
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    NewPartitions,
    NewTopic,
    PartitionState,
    ReassignablePartition,
)
from transport.metadata import TopicPartition
from transport.wire import WireError

STEADY: Final = ("steady-a", "steady-b", "steady-c", "steady-d")
"""Topics that are written to and never deleted."""

STEADY_PARTITIONS: Final = 3
MOST_PARTITIONS: Final = 6
MOST_GUESTS: Final = 8
"""The most topics that are created and deleted."""

SECONDS_BETWEEN: Final = (0.2, 1.2)
UNCLEAR: Final = "outcome unknown"


@define
class Chores:
    """One chore after the other, and what was answered, which may well be a refusal."""

    admin: AdminClient
    load: Load
    rng: random.Random
    answers: Counter[tuple[str, str]] = field(factory=Counter)
    faults: list[str] = field(factory=list)
    _guests: int = 0

    async def create_steady_topics(self) -> None:
        """Create the topics that are written to, and begin to write. Raises ApiError."""
        answer = await self.admin.create_topics([NewTopic(name, STEADY_PARTITIONS, 3) for name in STEADY])
        for topic in answer.topics:
            if topic.error is not ErrorCode.NONE:
                raise ApiError(topic.error, topic.message)
        for name in STEADY:
            for number in range(STEADY_PARTITIONS):
                self.load.write_to(TopicPartition(name, number))

    async def work(self) -> None:
        """Do chores until cancelled."""
        kinds = {
            self._move: 8,
            self._cancel: 3,
            self._create: 4,
            self._delete: 3,
            self._elect: 2,
            self._grow: 2,
            self._configure: 3,
        }
        while True:
            await self.attempt(self.rng.choices(list(kinds), list(kinds.values()))[0])
            await trio.sleep(self.rng.uniform(*SECONDS_BETWEEN))

    async def attempt(self, chore: Callable[[], Awaitable[Iterable[tuple[ErrorCode, str]]]]) -> None:
        """Do a chore and count what is answered. Nobody may be there to answer; an unknown error is a fault."""
        name = chore.__name__.strip("_")
        try:
            answers = list(await chore())
        except ApiError as error:
            answers = [(error.code, error.message)]
        except (ClusterUnreachable, WireError):
            self.answers[name, UNCLEAR] += 1
            return
        for code, message in answers:
            self.answers[name, code.name] += 1
            if code is ErrorCode.UNKNOWN_SERVER_ERROR:
                self.faults.append(f"the answer to {name} was {code.name}: {message}")

    async def _partitions(self) -> list[PartitionState]:
        """Return the partitions that are not being deleted."""
        return [state for state in (await self.admin.read_metadata()).partitions if state.leader >= -1]

    async def _create(self) -> list[tuple[ErrorCode, str]]:
        names = {state.topic for state in await self._partitions()}
        if len(names) >= len(STEADY) + MOST_GUESTS:
            return await self._delete()
        self._guests += 1
        topic = NewTopic(f"guest-{self._guests}", self.rng.randint(1, 4), self.rng.randint(2, 3))
        return [(item.error, item.message) for item in (await self.admin.create_topics([topic])).topics]

    async def _delete(self) -> list[tuple[ErrorCode, str]]:
        guests = sorted({state.topic for state in await self._partitions()} - set(STEADY))
        if not guests:
            return []
        answer = await self.admin.delete_topics([self.rng.choice(guests)])
        return [(item.error, item.message) for item in answer.topics]

    async def _move(self) -> list[tuple[ErrorCode, str]]:
        states = await self._partitions()
        chosen = self.rng.sample(states, min(len(states), self.rng.randint(1, 4)))
        wanted = [
            ReassignablePartition(state.topic, state.partition, tuple(self.rng.sample(BROKERS, self._factor(state))))
            for state in chosen
        ]
        answer = await self.admin.alter_partition_reassignments(wanted)
        return [(item.error, item.message) for item in answer.partitions]

    def _factor(self, state: PartitionState) -> int:
        """Return the number of replicas to give a partition: a topic that is written to keeps three."""
        return 3 if state.topic in STEADY else self.rng.randint(2, 4)

    async def _cancel(self) -> list[tuple[ErrorCode, str]]:
        ongoing = await self.admin.list_partition_reassignments()
        if not ongoing:
            return []
        chosen = self.rng.choice(ongoing)
        answer = await self.admin.alter_partition_reassignments(
            [ReassignablePartition(chosen.topic, chosen.partition, None)]
        )
        return [(item.error, item.message) for item in answer.partitions]

    async def _elect(self) -> list[tuple[ErrorCode, str]]:
        outcomes = await self.admin.elect_leaders(ElectionType.PREFERRED)
        return [(item.error, item.message) for item in outcomes]

    async def _grow(self) -> list[tuple[ErrorCode, str]]:
        counts = Counter(state.topic for state in await self._partitions())
        small = sorted(name for name, count in counts.items() if count < MOST_PARTITIONS)
        if not small:
            return []
        name = self.rng.choice(small)
        count = counts[name] + 1
        answer = await self.admin.create_partitions([NewPartitions(name, count)])
        if name in STEADY and answer.topics[0].error is ErrorCode.NONE:
            self.load.write_to(TopicPartition(name, count - 1))
        return [(item.error, item.message) for item in answer.topics]

    async def _configure(self) -> list[tuple[ErrorCode, str]]:
        """Change settings that harm nobody: sizes far above those of our records, rates far above ours."""
        names = sorted({state.topic for state in await self._partitions()})
        topic = ConfigResource(ConfigResourceType.TOPIC, self.rng.choice(names))
        broker = ConfigResource(ConfigResourceType.BROKER, self.rng.choice(["", *map(str, BROKERS)]))
        resource, name, value = self.rng.choice(
            [
                (topic, "max.message.bytes", self.rng.randint(100_000, 1_000_000)),
                (topic, "follower.replication.throttled.replicas", "*"),
                (broker, "message.max.bytes", self.rng.randint(100_000, 1_000_000)),
                (broker, "follower.replication.throttled.rate", self.rng.randint(10_000_000, 100_000_000)),
            ]
        )
        operation = self.rng.choice([ConfigOperation.SET, ConfigOperation.DELETE])
        change = AlterableConfig(name, operation, str(value) if operation is ConfigOperation.SET else "")
        outcomes = await self.admin.incremental_alter_configs([AlterConfigsResource(resource, (change,))])
        return [(item.error, item.message) for item in outcomes]
