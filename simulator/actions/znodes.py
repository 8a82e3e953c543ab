"""Writes of Kafka's old tools, brokers and operators to the store."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from simulator.actions.requests import CreateTopic, as_names
from simulator.actions.scene import CannotBeDone, Node, Scene, Strike
from simulator.administration import ADMIN, partition_named
from simulator.cluster import SimulatedCluster
from transport.metadata import ReplicaAssignment, Stray
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import ANY_VERSION, Create, Op, Rejected, Set
from transport.store.tree import Access


@frozen
class MarkForDeletion(Strike):
    """Write the markers that request the deletion of topics, unless they exist."""

    names: tuple[str, ...] = field(converter=as_names)

    def strike(self, scene: Scene) -> None:
        """Write them."""
        for path in map(paths.delete_topic, self.names):
            if scene.cluster.durable.tree.read(path) is None:
                write_by_hand(scene.cluster, Create(path))


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
            write_by_hand(
                scene.cluster, Set(paths.topic(topic.name), formats.encode_topic(TopicZnode(partitions)), ANY_VERSION)
            )


@frozen
class WriteSettings(Strike):
    """Write all settings of topics and brokers by hand, and the notifications, as Kafka's tools do.

    They are named `topics/orders`, `brokers/1` and `brokers/<default>`. Missing topics get none.
    """

    settings: Mapping[str, Mapping[str, str]]

    def strike(self, scene: Scene) -> None:
        """Write them. Raises CannotBeDone if no entity exists."""
        tree = scene.cluster.durable.tree
        missing = {
            name for name in self.settings if name.startswith("topics/") and tree.read(f"/brokers/{name}") is None
        }
        if missing == self.settings.keys():
            raise CannotBeDone("there is no such topic")
        for name, values in self.settings.items():
            if name not in missing:
                _put(scene.cluster, f"/config/{name}", formats.encode_config(values))
                notice = formats.encode_config_change(name)
                write_by_hand(scene.cluster, Create(f"{paths.CONFIG_CHANGES}/config_change_", notice, sequence=True))


@frozen
class NotifyIsrChange(Strike):
    """Notify the controller that ISRs changed, truthfully or not, as leaders that write ISRs themselves do."""

    partitions: tuple[str, ...] = field(converter=as_names)

    def strike(self, scene: Scene) -> None:
        """Write the notification."""
        data = formats.encode_partitions(map(partition_named, self.partitions))
        write_by_hand(scene.cluster, Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_", data, sequence=True))


@frozen
class NotifyLogDir(Strike):
    """Notify the controller that a broker lost a log directory, truthfully or not."""

    broker: Node

    def strike(self, scene: Scene) -> None:
        """Write the notification. Raises CannotBeDone if no broker is meant."""
        for id_ in scene.nodes((self.broker,)):
            data = formats.encode_log_dir_event(id_)
            notice = Create(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_", data, sequence=True)
            write_by_hand(scene.cluster, notice)


@frozen
class Damage(Strike):
    """Write damaged or absurd data to znodes by hand; no invariant is checked over their rows from then on.

    A row of a topic exempts the whole topic. Missing znodes are created, with their parents.
    """

    rows: Mapping[str, str | bytes] = field()

    @rows.validator
    def _check_rows(self, _: object, rows: Mapping[str, str | bytes]) -> None:
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
                    write_by_hand(scene.cluster, Create(parent))
            _put(scene.cluster, path, data.encode() if isinstance(data, str) else data)


@frozen
class DamageExisting(Damage):
    """Write damaged or absurd data to those of these znodes that exist, such as the registrations of live brokers."""

    def strike(self, scene: Scene) -> None:
        """Damage them. Raises CannotBeDone if there are none."""
        tree = scene.cluster.durable.tree
        rows = {path: data for path, data in self.rows.items() if tree.read(path) is not None}
        if not rows:
            raise CannotBeDone("none of the znodes exists")
        Damage(rows).strike(scene)


@frozen
class Allow(Strike):
    """Set the access that a znode's ACL gives to everybody; no invariant is checked over its row from then on.

    As for damaged data, a row of a topic exempts the whole topic. While controllers may read the row, what they tell
    brokers about the topic is still checked.
    """

    path: str
    access: Access = Access.ALL

    def strike(self, scene: Scene) -> None:
        """Set the ACL. Raises CannotBeDone if there is no such znode."""
        cluster = scene.cluster
        if self.access is not Access.ALL:
            if cluster.durable.tree.read(self.path) is None:
                raise CannotBeDone(f"{self.path} does not exist now")
            exempt = cluster.world.safety.exempt
            (exempt.close if self.access is Access.READ else exempt.add)(self.path)
        cluster.trace.add("admin", ADMIN, f"allows to do {self.access.value} with {self.path}")
        cluster.world.ensemble.allow(self.path, self.access)


def _put(cluster: SimulatedCluster, path: str, data: bytes) -> None:
    is_there = cluster.durable.tree.read(path) is not None
    write_by_hand(cluster, Set(path, data, ANY_VERSION) if is_there else Create(path, data))


def write_by_hand(cluster: SimulatedCluster, op: Op, does: str = "writes") -> None:
    """Write a znode past the api. Raises CannotBeDone if the store rejects it."""
    cluster.trace.add("admin", ADMIN, f"{does} {op.path}")
    try:
        cluster.world.ensemble.commit_by_hand([op])
    except Rejected as refusal:
        raise CannotBeDone(str(refusal)) from refusal


@frozen
class AssignStrays(Strike):
    """Assign the strays of a topic again by hand, as an operator does who wants the removed replicas back.

    If the controller ends before it writes back what it knew, no invariant but one is checked over the topic from then
    on: a controller that has loaded the assignment does not have the replicas deleted.
    """

    topic: str

    def strike(self, scene: Scene) -> None:
        """Write the topic's znode. Raises CannotBeDone if it has no strays, or moves."""
        cluster = scene.cluster
        topic, tree = cluster.durable.topic(self.topic), cluster.durable.tree
        named = (paths.parse_stray(name) for name in tree.children(paths.STRAYS) or ())
        found = [each for each in named if each is not None and topic is not None and each.topic == self.topic]
        strays = [each for each in found if topic is not None and _may_be_assigned(topic, each)]
        if topic is None or not strays or any(each.is_being_reassigned for each in topic.partitions.values()):
            raise CannotBeDone(f"topic {self.topic} has no strays to assign now")
        partitions = dict(topic.partitions)
        for stray in strays:
            replicas = (*partitions[stray.partition].replicas, stray.broker_id)
            partitions[stray.partition] = ReplicaAssignment(replicas)
        cluster.world.safety.exempt.edited(self.topic)
        data = formats.encode_topic(evolve(topic, partitions=partitions))
        write_by_hand(cluster, Set(paths.topic(self.topic), data, ANY_VERSION), "edits")
        cluster.world.safety.closed_records.assigned_again(strays)


def _may_be_assigned(topic: TopicZnode, stray: Stray) -> bool:
    assignment = topic.partitions.get(stray.partition)
    is_free = assignment is not None and stray.broker_id not in assignment.replicas
    return is_free and topic.topic_id == stray.topic_id
