"""Topics that a broker of Apache Kafka's creates itself, past the controller."""

from __future__ import annotations

from attrs import frozen

from simulator.actions.recreations import new_topic_id
from simulator.actions.requests import CreateTopic
from simulator.actions.scene import CannotBeDone, Scene, Strike
from simulator.administration import ADMIN
from simulator.settings import CONTROLLERS
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import Create


@frozen
class PlaceTopic(Strike):
    """Write the znodes of new topics, as brokers of Kafka's do that create them; replicas may be on controllers.

    Such a broker places replicas on those that it takes to be alive, and the controller is among them.
    """

    topics: tuple[CreateTopic, ...]

    def strike(self, scene: Scene) -> None:
        """Write the znodes. Raises CannotBeDone if one of the topics exists, or no broker has heard of a controller."""
        cluster = scene.cluster
        for topic in self.topics:
            path = paths.topic(topic.name)
            if cluster.durable.tree.read(path) is not None:
                raise CannotBeDone(f"topic {topic.name} exists")
            named = {r for replicas in topic.assignment for r in replicas if r in CONTROLLERS}
            if not all(map(cluster.world.safety.has_held_office, named)):
                raise CannotBeDone("brokers know only controllers that have been in office")
            partitions = {number: ReplicaAssignment(replicas) for number, replicas in enumerate(topic.assignment)}
            topic_id = new_topic_id(topic.name, cluster.durable.tree.zxid)
            cluster.trace.add("admin", ADMIN, f"places {path} as a broker does")
            cluster.world.ensemble.commit_by_hand(
                [Create(path, formats.encode_topic(TopicZnode(partitions, topic_id)))]
            )
