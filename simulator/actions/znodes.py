"""Writes of Kafka's old tools, brokers and operators to the store."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from simulator.actions.requests import CreateTopic, as_names
from simulator.actions.scene import Scene, Strike
from simulator.administration import ADMIN, partition_named
from simulator.cluster import SimulatedCluster
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import ANY_VERSION, Create, Op, Set


@frozen
class MarkForDeletion(Strike):
    """Write the markers that request the deletion of topics, unless they exist."""

    names: tuple[str, ...] = field(converter=as_names)

    def strike(self, scene: Scene) -> None:
        """Write them."""
        for path in map(paths.delete_topic, self.names):
            if scene.cluster.durable.tree.read(path) is None:
                _write(scene.cluster, Create(path))


@frozen
class WriteElection(Strike):
    """Write /admin/preferred_replica_election, as Kafka's old tool does."""

    partitions: tuple[str, ...] = field(converter=as_names)

    def strike(self, scene: Scene) -> None:
        """Write it."""
        data = formats.encode_partitions(map(partition_named, self.partitions))
        _put(scene.cluster, paths.PREFERRED_REPLICA_ELECTION, data)


@frozen
class WriteRequests(Strike):
    """Write /admin/reassign_partitions, as Kafka's old tools do."""

    targets: Mapping[str, tuple[int, ...]]

    def strike(self, scene: Scene) -> None:
        """Write it."""
        targets = {partition_named(name): target for name, target in self.targets.items()}
        _put(scene.cluster, paths.REASSIGN_PARTITIONS, formats.encode_reassign_partitions(targets))


@frozen
class RewriteTopic(Strike):
    """Write the assignment of topics by hand, without their ids and reassignments, as old tools do."""

    topics: tuple[CreateTopic, ...]

    def strike(self, scene: Scene) -> None:
        """Write them."""
        for topic in self.topics:
            partitions = {number: ReplicaAssignment(replicas) for number, replicas in enumerate(topic.assignment)}
            _write(
                scene.cluster, Set(paths.topic(topic.name), formats.encode_topic(TopicZnode(partitions)), ANY_VERSION)
            )


@frozen
class NotifyIsrChange(Strike):
    """Notify the controller that ISRs changed, truthfully or not, as leaders that write ISRs themselves do."""

    partitions: tuple[str, ...] = field(converter=as_names)

    def strike(self, scene: Scene) -> None:
        """Write the notification."""
        data = formats.encode_partitions(map(partition_named, self.partitions))
        _write(scene.cluster, Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_", data, sequence=True))


@frozen
class NotifyLogDir(Strike):
    """Notify the controller that a broker lost a log directory, truthfully or not."""

    broker: int

    def strike(self, scene: Scene) -> None:
        """Write the notification."""
        data = formats.encode_log_dir_event(self.broker)
        _write(scene.cluster, Create(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_", data, sequence=True))


@frozen
class Damage(Strike):
    """Write damaged or absurd data to znodes by hand; no invariant is checked over their rows from then on.

    A row of a topic exempts the whole topic. Missing znodes are created, with their parents.
    """

    rows: Mapping[str, str] = field()

    @rows.validator
    def _check_rows(self, _: object, rows: Mapping[str, str]) -> None:
        for path in rows:
            if path in (paths.CONTROLLER, paths.CONTROLLER_EPOCH):
                raise ValueError(f"{path} cannot be damaged: every invariant rests on it")

    def strike(self, scene: Scene) -> None:
        """Exempt the rows and write them."""
        tree = scene.cluster.durable.tree
        for path, data in self.rows.items():
            scene.cluster.world.safety.exempt.add(path)
            places = [place for place, character in enumerate(path) if character == "/" and place > 0]
            for parent in [path[:place] for place in places]:
                if tree.read(parent) is None:
                    _write(scene.cluster, Create(parent))
            _put(scene.cluster, path, data.encode())


def _put(cluster: SimulatedCluster, path: str, data: bytes) -> None:
    is_there = cluster.durable.tree.read(path) is not None
    _write(cluster, Set(path, data, ANY_VERSION) if is_there else Create(path, data))


def _write(cluster: SimulatedCluster, op: Op) -> None:
    cluster.trace.add("admin", ADMIN, f"writes {op.path}")
    cluster.world.ensemble.commit_by_hand([op])
