"""An administrator and a producer of a simulated cluster, whose requests go through the cluster's own apis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from attrs import define, evolve

from controller.admin.active_controller import ClusterUnreachable
from simulator.linearizability import operations
from simulator.linearizability.history import AdminRequest, Operations
from simulator.load import Load
from simulator.observed_admin import ObservedAdmin
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
_NO_OPERATIONS: Final = Operations()


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
    admin: ObservedAdmin
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
        with self._asking(operations.creation(topic)) as (admin, request):
            [answered] = (await admin.create_topics([topic])).topics
            request.answered(operations.creation(topic, answered.error))
        require_done([answered])

    async def add_partitions(self, name: str, count: int) -> None:
        """Grow a topic to `count` partitions. Returns when the new ones have leaders. Raises ApiError."""
        self.trace.add("admin", ADMIN, f"give {name} {count} partitions")
        with self._asking(operations.growth(name, count)) as (admin, request):
            [answered] = (await admin.create_partitions([NewPartitions(name, count)])).topics
            request.answered(operations.growth(name, count, answered.error))
        require_done([answered])

    async def validate_topics(self, topics: Sequence[NewTopic]) -> None:
        """Ask whether topics could be created, without creating them. Raises ApiError for the first refusal."""
        self.trace.add("admin", ADMIN, f"validate {', '.join(topic.name for topic in topics)}")
        with self._asking() as (admin, request):
            answered = (await admin.create_topics(topics, validate_only=True)).topics
            request.answered(operations.creations_checked(topics, answered))
        require_done(answered)

    async def validate_partitions(self, totals: Mapping[str, int]) -> None:
        """Ask whether topics could grow to these totals, without adding any. Raises ApiError for the first refusal."""
        self.trace.add("admin", ADMIN, f"validate the growth of {', '.join(totals)}")
        asked = [NewPartitions(name, count) for name, count in totals.items()]
        with self._asking() as (admin, request):
            answered = (await admin.create_partitions(asked, validate_only=True)).topics
            request.answered(operations.growth_checked(totals, answered))
        require_done(answered)

    async def delete_topic(self, *names: str) -> None:
        """Delete topics. Returns when their deletion is certain. Raises ApiError for the first refusal."""
        self.trace.add("admin", ADMIN, f"delete {', '.join(names)}")
        before = self.world.safety.before()
        with self._asking(operations.deletions(names)) as (admin, request):
            answered = (await admin.delete_topics(names)).topics
            request.answered(operations.deletions_answered(answered))
        require_done(answered)
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
        with self._asking(operations.moves(wanted)) as (admin, request):
            answered = (await admin.alter_partition_reassignments(wanted)).partitions
            request.answered(operations.moves_answered(wanted, answered))
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
        with self._asking(operations.orders(ordered)) as (admin, request):
            results = await admin.elect_leaders(kind, wanted, orders=ordered)
            request.answered(operations.elections(kind, ordered, results))
        for item in results:
            if item.error is ErrorCode.NONE:
                tp = item.tp
                safety.election_answered(before, kind, tp, ordered.get(tp))
        for item in results:
            if item.error not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                raise ApiError(item.error, item.message)

    async def alter_topics(
        self, settings: Mapping[str, Mapping[str, str | None]], *, validate_only: bool = False
    ) -> None:
        """Alter settings of topics; the name "" stands for the default of all brokers, and None removes a setting.

        With `validate_only`, nothing changes. Raises ApiError for the first refusal.
        """
        verb = "validate" if validate_only else "alter"
        for topic, values in settings.items():
            for setting, value in values.items():
                self.trace.add("admin", ADMIN, f"{verb} {topic or 'the default'}: {setting}={value}")
        asked = [
            AlterConfigsResource(_topic_resource(topic), _operations(values)) for topic, values in settings.items()
        ]
        before = self.world.safety.settings.number
        with self._asking(_NO_OPERATIONS if validate_only else operations.alterations(settings)) as (admin, request):
            answered = await admin.incremental_alter_configs(asked, validate_only=validate_only)
            request.answered(operations.alterations_answered(settings, answered, validate_only=validate_only))
        outcomes = {result.resource: result.error for result in answered}
        for item in asked:
            if outcomes[item.resource] is ErrorCode.NONE and not validate_only:
                self.world.safety.settings_answered(before, item)
        require_done(answered)

    async def alter_brokers(
        self, settings: Mapping[int, Mapping[str, str | None]], *, validate_only: bool = False
    ) -> None:
        """Alter settings of single brokers; None removes a setting. With `validate_only`, nothing changes.

        Raises ApiError for the first refusal.
        """
        verb = "validate" if validate_only else "alter"
        for broker_id, values in settings.items():
            for setting, value in values.items():
                self.trace.add("admin", ADMIN, f"{verb} broker {broker_id}: {setting}={value}")
        brokers = {ConfigResource(ConfigResourceType.BROKER, str(id_)): values for id_, values in settings.items()}
        asked = [AlterConfigsResource(resource, _operations(values)) for resource, values in brokers.items()]
        require_done(await self.admin.incremental_alter_configs(asked, validate_only=validate_only))

    async def list_reassignments(self) -> None:
        """List the reassignments in progress, and then describe them. Raises ApiError."""
        self.trace.add("admin", ADMIN, "list reassignments")
        partitions = [tp for tp, _ in self.world.safety.durable.partitions()]
        with self._asking() as (admin, request):
            listed = await admin.list_partition_reassignments()
            request.answered(operations.listed(partitions, listed))
        with self._asking() as (admin, request):
            described = (await admin.describe_reassignments()).values()
            request.answered(operations.listed((), described))

    async def describe_topics(self) -> None:
        """Describe all topics, and then their settings. Raises ApiError."""
        self.trace.add("admin", ADMIN, "describe topics")
        durable = self.world.safety.durable
        topics, partitions = durable.topics(), [tp for tp, _ in durable.partitions()]
        with self._asking() as (admin, request):
            described = (await admin.read_metadata()).partitions
            request.answered(operations.described(topics, partitions, described))
        with self._asking() as (admin, request):
            resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in durable.topics()]
            request.answered(operations.settings_described(await admin.describe_configs(resources)))

    @contextmanager
    def _asking(self, wanted: Operations = _NO_OPERATIONS) -> Iterator[tuple[ObservedAdmin, AdminRequest]]:
        """Make a request in the block, and record what it wanted with an unknown outcome if its answer is lost."""
        request = self.world.safety.history.request()
        try:
            yield evolve(self.admin, sent_to=request.sent_to), request
        except (ApiError, ClusterUnreachable):
            request.refused(wanted)
            raise
        except BaseException:
            request.unanswered(wanted)
            raise

    async def produce(self, name: str, values: Sequence[bytes]) -> int:
        """Append records with acks=all and return the offset of the first. Raises ApiError or GaveUp."""
        async with self.load.producer("producer") as producer:
            return await self.load.send(producer, partition_named(name), values)

    async def consume(self, name: str, from_offset: int = 0, *, up_to: int = 0, within: float = 30.0) -> list[bytes]:
        """Return the committed records of a partition from an offset on, and at least those before `up_to`.

        A leader that has just been elected may not know yet how much is committed: `up_to` makes sure of it. Raises
        GaveUp after `within` virtual seconds without progress, and ApiError.
        """
        async with self.load.consumer("consumer") as consumer:
            tp = partition_named(name)
            return await consumer.read_all(*tp, from_offset, up_to=up_to, give_up_after=within)


def _topic_resource(topic: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC if topic else ConfigResourceType.BROKER, topic)


def _operations(values: Mapping[str, str | None]) -> tuple[AlterableConfig, ...]:
    return tuple(
        AlterableConfig(setting, ConfigOperation.DELETE if value is None else ConfigOperation.SET, value or "")
        for setting, value in values.items()
    )
