"""Topics that operators remove from the store by hand, past the controller, and create again under the same name."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from attrs import frozen

from simulator.actions.edits import in_office
from simulator.actions.requests import CreateTopic
from simulator.actions.scene import CannotBeDone, Scene, Strike
from simulator.administration import ADMIN
from simulator.cluster import SimulatedCluster
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import Conflict, Create, Delete, Op, Rejected, Set
from transport.store.tree import Tree

_ID_BYTES: Final = 16


@frozen
class RecreateTopic(Strike):
    """Delete the znodes of topics by hand and create new topics of the same names, before anybody has looked.

    An operator does this with `deleteall` and Kafka's tools. The data of the deleted topics are still on the brokers.
    If the controller ends before it deals with them, no invariant is checked over the topics from then on.
    """

    topics: tuple[CreateTopic, ...]

    def strike(self, scene: Scene) -> None:
        """Write the znodes. Raises CannotBeDone if no controller knows one of the topics, or it is being deleted."""
        for topic in self.topics:
            if not _is_at_rest(scene.cluster, topic.name):
                raise CannotBeDone(f"no controller at rest knows topic {topic.name} now")
            _recreate(scene.cluster, topic)


def _is_at_rest(cluster: SimulatedCluster, name: str) -> bool:
    """Return whether the active controller knows a topic as it is, has nothing to do, and is not to delete it.

    Otherwise states that it is about to create for the old topic would be those of the new one.
    """
    service, topic = in_office(cluster), cluster.durable.topic(name)
    if service is None or service.office is None or not service.is_idle:
        return False
    known = service.office.context.topics.get(name)
    is_marked = cluster.durable.tree.read(paths.delete_topic(name)) is not None
    return known is not None and known.znode == topic and not is_marked


def _recreate(cluster: SimulatedCluster, topic: CreateTopic) -> None:
    tree, path = cluster.durable.tree, paths.topic(topic.name)
    partitions = {number: ReplicaAssignment(replicas) for number, replicas in enumerate(topic.assignment)}
    data = formats.encode_topic(TopicZnode(partitions, new_topic_id(topic.name, tree.zxid)))
    writes: list[Op] = [Create(path, data)]
    # Versions begin at 0 again: a late write of a controller for the old topic must not fit the new one.
    if (was := tree.read(path)) is not None and was.stat.version == 0:
        writes.append(Set(path, data, 0))
    doomed = [Delete(each) for each in (*_below(tree, path), path)]
    cluster.trace.add("admin", ADMIN, f"deletes {path} and creates it again")
    cluster.world.safety.exempt.recreated(topic.name)
    try:
        cluster.world.ensemble.commit_by_hand([*doomed, *writes])
    except (Conflict, Rejected) as refusal:  # an ACL keeps the operator from a znode, or from listing its children
        raise CannotBeDone(str(refusal)) from refusal


def _below(tree: Tree, path: str) -> Iterator[str]:
    """Yield the paths of the znodes below one, children first."""
    for name in tree.children(path) or ():
        child = f"{path}/{name}"
        yield from _below(tree, child)
        yield child


def new_topic_id(name: str, zxid: int) -> str:
    """Return a topic id that no other topic of the simulation has."""
    digest = sha256(f"{name} {zxid}".encode()).digest()
    return urlsafe_b64encode(digest[:_ID_BYTES]).decode().rstrip("=")
