"""Requests of administrators and producers, through the cluster's own apis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import trio
from attrs import field, frozen

from simulator.actions.scene import Node, Request, Scene, Strike, as_nodes, controller_of
from simulator.cluster import SimulatedCluster
from transport.errors import ApiError
from transport.messages import ElectionType, NewTopic
from transport.wire import WireError


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; a single name needs none."""
    return (names,) if isinstance(names, str) else tuple(names)


@frozen
class CreateTopic(Request):
    """Create a topic with the replicas of each partition, or with counts for the controller to place."""

    name: str
    assignment: tuple[tuple[int, ...], ...] = ()
    partitions: int = 1
    replication_factor: int = 1

    @property
    def count(self) -> int:
        """The number of partitions."""
        return len(self.assignment) or self.partitions

    async def ask(self, scene: Scene) -> None:
        """Create the topic."""
        await scene.cluster.create_topic(
            self.name, self.assignment, partitions=self.partitions, replication_factor=self.replication_factor
        )


@frozen
class CreateTopics(Request):
    """Create topics, and wait until each of their partitions has a leader."""

    topics: tuple[CreateTopic, ...]

    async def ask(self, scene: Scene) -> None:
        """Create the topics one at a time. Raises NotInTime, too."""
        for topic in self.topics:
            await topic.ask(scene)
            for number in range(topic.count):
                await _until_led(scene.cluster, f"{topic.name}-{number}")


async def _until_led(cluster: SimulatedCluster, name: str) -> None:
    await cluster.until(lambda: cluster.partition(name) is not None, what=f"a leader of {name}")


@frozen
class AddPartitions(Request):
    """Add partitions to topics, up to these totals."""

    totals: Mapping[str, int]

    async def ask(self, scene: Scene) -> None:
        """Add the partitions, one topic at a time."""
        for topic, total in self.totals.items():
            await scene.cluster.add_partitions(topic, total)


@frozen
class ValidateTopics(Request):
    """Ask whether topics could be created, without creating them."""

    topics: tuple[CreateTopic, ...]

    async def ask(self, scene: Scene) -> None:
        """Have the topics validated."""
        wanted = [
            NewTopic(topic.name, topic.count, topic.replication_factor, topic.assignment) for topic in self.topics
        ]
        await scene.cluster.validate_topics(wanted)


@frozen
class ValidatePartitions(Request):
    """Ask whether topics could get more partitions, up to these totals, without adding any."""

    totals: Mapping[str, int]

    async def ask(self, scene: Scene) -> None:
        """Have the totals validated."""
        await scene.cluster.validate_partitions(self.totals)


@frozen
class DeleteTopic(Request):
    """Delete topics; their data is deleted later."""

    names: tuple[str, ...] = field(converter=as_names)

    async def ask(self, scene: Scene) -> None:
        """Delete the topics."""
        await scene.cluster.delete_topic(*self.names)


@frozen
class AlterTopic(Request):
    """Change settings of topics at run time; null inherits them again."""

    settings: Mapping[str, Mapping[str, str | None]]

    async def ask(self, scene: Scene) -> None:
        """Change the settings."""
        await scene.cluster.alter_topics(self.settings)


@frozen
class AlterBroker(Request):
    """Change settings of single brokers at run time; null inherits them again."""

    settings: Mapping[int, Mapping[str, str | None]]

    async def ask(self, scene: Scene) -> None:
        """Change the settings."""
        await scene.cluster.alter_brokers(self.settings)


@frozen
class ValidateSettings(Request):
    """Ask whether settings of topics could be changed, without changing them; null asks to inherit them again."""

    settings: Mapping[str, Mapping[str, str | None]]

    async def ask(self, scene: Scene) -> None:
        """Have the settings validated."""
        await scene.cluster.alter_topics(self.settings, validate_only=True)


@frozen
class ValidateBrokerSettings(Request):
    """Ask whether settings of single brokers could be changed, without changing them."""

    settings: Mapping[int, Mapping[str, str | None]]

    async def ask(self, scene: Scene) -> None:
        """Have the settings validated."""
        await scene.cluster.alter_brokers(self.settings, validate_only=True)


@frozen
class Reassign(Request):
    """Begin or override reassignments through the admin api; None cancels one."""

    targets: Mapping[str, Sequence[int] | None]

    async def ask(self, scene: Scene) -> None:
        """Begin the reassignments."""
        await scene.cluster.reassign(self.targets)


@frozen
class Elect(Request):
    """Elect leaders of partitions, or of all that need one; `orders` gives partitions a new order of replicas."""

    kind: ElectionType
    partitions: tuple[str, ...] | None = None
    orders: Mapping[str, tuple[int, ...]] = field(factory=dict)

    async def ask(self, scene: Scene) -> None:
        """Elect the leaders."""
        await scene.cluster.elect_leaders(self.kind, self.partitions, self.orders)


@frozen
class ListReassignments(Request):
    """List the reassignments in progress, and describe them."""

    async def ask(self, scene: Scene) -> None:
        """Read the list, which is compared with all other answers at the end."""
        await scene.cluster.list_reassignments()


@frozen
class DescribeTopics(Request):
    """Describe all topics and their settings."""

    async def ask(self, scene: Scene) -> None:
        """Read the descriptions, which are compared with all other answers at the end."""
        await scene.cluster.describe_topics()


@frozen
class ReadFrom(Strike):
    """Have controllers themselves describe all topics, in office or not: so many `times`, one after the other.

    There are `every` seconds between an answer and the next request.
    """

    nodes: tuple[Node, ...] = field(converter=as_nodes)
    times: int = 1
    every: float = field(default=0.0, converter=float)

    def strike(self, scene: Scene) -> None:
        """Begin to ask. Raises CannotBeDone if a node is a broker."""
        for id_ in scene.nodes(self.nodes):
            controller_of(scene.cluster, id_)
            scene.nursery.start_soon(self._read, scene.cluster, id_)

    async def _read(self, cluster: SimulatedCluster, id_: int) -> None:
        for _ in range(self.times):
            # A read may be refused, or come to nothing.
            with suppress(ApiError, WireError):
                await cluster.read_from(id_)
            await trio.sleep(self.every)


@frozen
class Produce(Request):
    """Write this many records to partitions with acks=all, and wait until they are acknowledged."""

    counts: Mapping[str, int]

    async def ask(self, scene: Scene) -> None:
        """Write the records."""
        for name, count in self.counts.items():
            await scene.cluster.produce(name, [f"{name} {number}".encode() for number in range(count)])
