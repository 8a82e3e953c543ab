"""Changes that old tools and operators make to the znodes of topics and of partitions, based on what they contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from attrs import evolve, frozen
from msgspec.structs import replace

from controller.node.service import ControllerService
from simulator.actions.scene import CannotBeDone, Scene, Strike
from simulator.actions.znodes import write_by_hand
from simulator.administration import partition_named
from simulator.cluster import SimulatedCluster
from transport.metadata import LeaderAndIsr, ReplicaAssignment
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import ANY_VERSION, Delete, Set


class TopicEdit(Enum):
    """The changes of a topic's znode."""

    WITHOUT_ID = "its id is missing"
    ONE_MORE = "it has one more partition"
    ONE_LESS = "it has one partition less"
    OTHER_REPLICAS = "other replicas, and no move"
    FORGED_MOVE = "its first partition moves"
    WITHOUT_MOVES = "no partition moves"


class StateEdit(Enum):
    """The changes of a partition's state."""

    TOUCHED = "the state is written again"
    SMALLER_ISR = "the ISR has one member less"
    DELETED = "the state is deleted"


@frozen
class EditTopic(Strike):
    """Change the assignment of a topic by hand, as tools do that know neither ids nor moves.

    If the controller ends before it writes back what it knew, no invariant is checked over the topic from then on.
    """

    topic: str
    edit: TopicEdit

    def strike(self, scene: Scene) -> None:
        """Write the znode. Raises CannotBeDone if there is no such topic, or no controller that knows it.

        Without its id, nothing would tell a topic that was created again from the one that the controller knows.
        """
        cluster = scene.cluster
        topic, known = cluster.durable.topic(self.topic), _known(cluster, self.topic)
        if topic is None or not topic.partitions or known is None:
            raise CannotBeDone(f"no controller knows topic {self.topic} now")
        if self.edit is TopicEdit.WITHOUT_ID and topic.topic_id not in (None, known.topic_id):
            raise CannotBeDone(f"topic {self.topic} was created again, and no controller knows that yet")
        edited = _EDITS[self.edit](topic, cluster.world.settings.broker_ids)
        cluster.world.safety.exempt.edited(self.topic)
        write_by_hand(cluster, Set(paths.topic(self.topic), formats.encode_topic(edited), ANY_VERSION), "edits")


@frozen
class EditState(Strike):
    """Change the state of a partition by hand, of which its leader knows nothing.

    Unless the state is written as it was, no invariant is checked over the topic from then on.
    """

    partition: str
    edit: StateEdit

    def strike(self, scene: Scene) -> None:
        """Write or delete the znode. Raises CannotBeDone if there is none."""
        cluster, tp = scene.cluster, partition_named(self.partition)
        state, path = cluster.durable.leadership(tp), paths.partition_state(tp)
        if state is None:
            raise CannotBeDone(f"{tp} has no state now")
        if self.edit is not StateEdit.TOUCHED:
            cluster.world.safety.exempt.add(path)
        if self.edit is StateEdit.DELETED:
            write_by_hand(cluster, Delete(path), "edits")
            return
        state = _without_a_follower(state) if self.edit is StateEdit.SMALLER_ISR else state
        write_by_hand(cluster, Set(path, formats.encode_partition_state(state), ANY_VERSION), "edits")


def in_office(cluster: SimulatedCluster) -> ControllerService | None:
    """Return the active controller's service, None if it has not taken office yet."""
    active = cluster.active_controller
    service = cluster.controllers[active].service if active is not None and active in cluster.controllers else None
    return None if service is None or service.office is None else service


def _known(cluster: SimulatedCluster, topic: str) -> TopicZnode | None:
    """Return what the active controller has read of a topic: one that takes office does so only after a while."""
    service = in_office(cluster)
    known = None if service is None or service.office is None else service.office.context.topics.get(topic)
    return None if known is None else known.znode


def _without_a_follower(state: LeaderAndIsr) -> LeaderAndIsr:
    leaving = [member for member in state.isr if member != state.leader][-1:]
    return replace(state, isr=tuple(member for member in state.isr if member not in leaving))


def _without_id(topic: TopicZnode, _: tuple[int, ...]) -> TopicZnode:
    return evolve(topic, topic_id=None)


def _one_more(topic: TopicZnode, _: tuple[int, ...]) -> TopicZnode:
    replicas = topic.partitions[min(topic.partitions)].replicas
    return evolve(topic, partitions={**topic.partitions, max(topic.partitions) + 1: ReplicaAssignment(replicas[::-1])})


def _one_less(topic: TopicZnode, _: tuple[int, ...]) -> TopicZnode:
    last = max(topic.partitions)
    return evolve(topic, partitions={n: each for n, each in topic.partitions.items() if n != last})


def _other_replicas(topic: TopicZnode, brokers: tuple[int, ...]) -> TopicZnode:
    first = min(topic.partitions)
    others = tuple(id_ for id_ in brokers if id_ not in topic.partitions[first].replicas) or brokers
    plain = _without_moves(topic, brokers).partitions
    return evolve(topic, partitions={**plain, first: ReplicaAssignment(others[:3])})


def _forged_move(topic: TopicZnode, brokers: tuple[int, ...]) -> TopicZnode:
    first = min(topic.partitions)
    now = topic.partitions[first].target_replicas
    adding = tuple(id_ for id_ in brokers if id_ not in now)[:1]
    forged = ReplicaAssignment((*adding, *now), adding, now[-1:] if adding else ())
    return evolve(topic, partitions={**topic.partitions, first: forged})


def _without_moves(topic: TopicZnode, _: tuple[int, ...]) -> TopicZnode:
    plain = {number: ReplicaAssignment(each.replicas) for number, each in topic.partitions.items()}
    return evolve(topic, partitions=plain, topic_id=None)


_Edit = Callable[[TopicZnode, tuple[int, ...]], TopicZnode]

_EDITS: Final[Mapping[TopicEdit, _Edit]] = {
    TopicEdit.WITHOUT_ID: _without_id,
    TopicEdit.ONE_MORE: _one_more,
    TopicEdit.ONE_LESS: _one_less,
    TopicEdit.OTHER_REPLICAS: _other_replicas,
    TopicEdit.FORGED_MOVE: _forged_move,
    TopicEdit.WITHOUT_MOVES: _without_moves,
}
