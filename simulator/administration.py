"""An administrator and a producer of a simulated cluster, whose requests go through the cluster's own apis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import define

from controller.admin.client import AdminClient
from simulator.load import Load
from simulator.trace import Trace
from simulator.world import World
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
    PartitionError,
    ReassignablePartition,
    ResourceError,
    TopicError,
)
from transport.metadata import TopicPartition

ADMIN: Final = "admin"


def require_done(results: Iterable[TopicError | PartitionError | ResourceError]) -> None:
    """Raise ApiError for the first refusal of an answer that lists outcomes."""
    for result in results:
        if result.error is not ErrorCode.NONE:
            raise ApiError(result.error, result.message)


def partition_named(name: str) -> TopicPartition:
    """Return the partition named `topic-number`. Raises ValueError for any other name."""
    topic, _, number = name.rpartition("-")
    if not topic or not number.isdecimal():
        raise ValueError(f"{name!r} is not a partition: write TOPIC-NUMBER, such as orders-0")
    return TopicPartition(topic, int(number))


@define(eq=False)
class Administered:
    """The part of a simulated cluster that an administrator and producers see."""

    world: World
    admin: AdminClient
    load: Load

    @property
    def trace(self) -> Trace:
        """The events so far."""
        return self.world.trace

    async def create_topic(
        self, name: str, assignment: Sequence[Sequence[int]] = (), *, partitions: int = 1, replication_factor: int = 1
    ) -> None:
        """Create a topic with the replicas of `assignment`, one row per partition, or placed by the controller.

        Raises ApiError; ClusterUnreachable if no controller is found for too long.
        """
        rows = tuple(tuple(row) for row in assignment)
        topic = NewTopic(name, len(rows) or partitions, len(rows[0]) if rows else replication_factor, rows)
        self.trace.add("admin", ADMIN, f"create {topic}")
        require_done((await self.admin.create_topics([topic])).topics)

    async def add_partitions(self, name: str, count: int) -> None:
        """Grow a topic to `count` partitions. Returns when the new ones have leaders. Raises ApiError."""
        self.trace.add("admin", ADMIN, f"give {name} {count} partitions")
        require_done((await self.admin.create_partitions([NewPartitions(name, count)])).topics)

    async def delete_topic(self, *names: str) -> None:
        """Delete topics. Returns when their deletion is certain. Raises ApiError for the first refusal."""
        self.trace.add("admin", ADMIN, f"delete {', '.join(names)}")
        before = self.world.safety.before()
        require_done((await self.admin.delete_topics(names)).topics)
        for name in names:
            self.world.safety.deletion_answered(before, name)

    async def reassign(self, targets: Mapping[str, Sequence[int] | None]) -> None:
        """Begin or override reassignments, or cancel those whose target is None. Raises ApiError for the first refusal.

        Returns when they have begun, or were rejected; use `until` to wait for their end.
        """
        self.trace.add("admin", ADMIN, f"reassign {dict(targets)}")
        wanted = [
            ReassignablePartition(*partition_named(name), None if target is None else tuple(target))
            for name, target in targets.items()
        ]
        before = self.world.safety.before()
        answered = (await self.admin.alter_partition_reassignments(wanted)).partitions
        for asked, item in zip(wanted, answered, strict=True):
            if asked.replicas is None and item.error is ErrorCode.NONE:
                self.world.safety.cancel_answered(before, asked.tp)
        require_done(answered)

    async def cancel(self, name: str) -> None:
        """Cancel a partition's reassignment. Raises ApiError."""
        await self.reassign({name: None})

    async def elect_leaders(
        self,
        kind: ElectionType,
        names: Sequence[str] | None = None,
        orders: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Elect leaders of the named partitions, or of all that need it. Raises ApiError for the first failure.

        With `orders`, the replicas of these partitions take a new order, and the first of it leads.
        """
        self.trace.add("admin", ADMIN, f"elect {kind.name} {names or ('' if orders else 'all')} {orders or ''}".strip())
        wanted = None if names is None else [partition_named(name) for name in names]
        ordered = {partition_named(name): tuple(order) for name, order in (orders or {}).items()}
        safety = self.world.safety
        before = safety.before()
        results = await self.admin.elect_leaders(kind, wanted, orders=ordered)
        for item in results:
            if item.error is ErrorCode.NONE:
                tp = item.tp
                safety.election_answered(before, kind, tp, ordered.get(tp))
        for item in results:
            if item.error not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                raise ApiError(item.error, item.message)

    async def alter_topics(self, settings: Mapping[str, Mapping[str, str | None]]) -> None:
        """Alter settings of topics; the name "" stands for the default of all brokers, and None removes a setting.

        Raises ApiError for the first refusal.
        """
        for topic, values in settings.items():
            for setting, value in values.items():
                self.trace.add("admin", ADMIN, f"alter {topic or 'the default'}: {setting}={value}")
        asked = [_alterations(topic, values) for topic, values in settings.items()]
        require_done(await self.admin.incremental_alter_configs(asked))

    async def produce(self, name: str, values: Sequence[bytes]) -> int:
        """Append records with acks=all and return the offset of the first. Raises ApiError or GaveUp."""
        async with self.load.producer("producer") as producer:
            return await self.load.send(producer, partition_named(name), values)


def _alterations(topic: str, values: Mapping[str, str | None]) -> AlterConfigsResource:
    kind = ConfigResourceType.TOPIC if topic else ConfigResourceType.BROKER
    operations = [
        AlterableConfig(setting, ConfigOperation.DELETE if value is None else ConfigOperation.SET, value or "")
        for setting, value in values.items()
    ]
    return AlterConfigsResource(ConfigResource(kind, topic), tuple(operations))
