"""The contents of the metadata store's leader, decoded: the durable state, which others may not know yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache

from attrs import frozen

from simulator.settings import CONTROLLERS
from transport.messages import PartitionState
from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.tree import Tree

# Cached, because producers and checks read the same znodes repeatedly, and few of them change.
decode_topic = lru_cache(maxsize=1024)(formats.decode_topic)
_decode_partition_state = lru_cache(maxsize=4096)(formats.decode_partition_state)

DecodeBroker = Callable[[int, bytes, int], BrokerRegistration]
"""Returns the registration of a broker, given its id, data and czxid. Raises UndecodableZnode."""

_decode_broker = lru_cache(maxsize=1024)(formats.decode_broker)


@frozen
class Durable:
    """A view of a tree of znodes, which reads the tree at each call.

    A topic, a partition state or a broker whose znode cannot be decoded counts as missing.
    """

    tree: Tree
    decode_broker: DecodeBroker = _decode_broker

    def topics(self) -> list[str]:
        """Return the names of the topics, sorted."""
        return self.tree.children(paths.TOPICS) or []

    def topic(self, name: str) -> TopicZnode | None:
        """Return a topic's znode; None if there is no such topic."""
        znode = self.tree.read(paths.topic(name))
        with suppress(formats.UndecodableZnode):
            return None if znode is None else decode_topic(name, znode.data)
        return None

    def partitions(self) -> Iterator[tuple[TopicPartition, ReplicaAssignment]]:
        """Yield every partition and its assignment, in order."""
        for name in self.topics():
            topic = self.topic(name)
            for number, assignment in sorted(topic.partitions.items() if topic is not None else ()):
                yield TopicPartition(name, number), assignment

    def assignment(self, tp: TopicPartition) -> ReplicaAssignment | None:
        """Return a partition's assignment; None if there is no such partition."""
        topic = self.topic(tp.topic)
        return None if topic is None else topic.partitions.get(tp.partition)

    def leadership(self, tp: TopicPartition) -> LeaderAndIsr | None:
        """Return a partition's leadership; None if it never had one."""
        znode = self.tree.read(paths.partition_state(tp))
        with suppress(formats.UndecodableZnode):
            return None if znode is None else _decode_partition_state(tp, znode.data, znode.stat.version)
        return None

    def state(self, tp: TopicPartition) -> PartitionState | None:
        """Return assignment and leadership together; None if either is missing."""
        topic, leadership = self.topic(tp.topic), self.leadership(tp)
        if topic is None or leadership is None or tp.partition not in topic.partitions:
            return None
        return PartitionState.of(tp, topic.topic_id or "", topic.partitions[tp.partition], leadership)

    def brokers(self) -> dict[int, BrokerRegistration]:
        """Return the registered brokers in order of their ids."""
        found = {}
        for id_ in sorted(paths.numbers(self.tree.children(paths.BROKER_IDS) or [])):
            znode = self.tree.read(paths.broker(id_))
            # In a cluster of Kafka's, the controller may register, too.
            if znode is not None and id_ not in CONTROLLERS:
                with suppress(formats.UndecodableZnode):
                    found[id_] = self.decode_broker(id_, znode.data, znode.stat.czxid)
        return found

    def storage_id(self, broker_id: int) -> str | None:
        """Return the recorded id of a broker's storage; None if there is none that can be decoded."""
        znode = self.tree.read(paths.storage_id(broker_id))
        with suppress(formats.UndecodableZnode):
            return None if znode is None else formats.decode_storage_id(broker_id, znode.data)
        return None

    def controller(self) -> int | None:
        """Return the id in `/controller`; None if there is no such znode."""
        znode = self.tree.read(paths.CONTROLLER)
        return None if znode is None else formats.decode_controller(znode.data)

    def controller_epoch(self) -> int:
        """Return the controller epoch, 0 before the first."""
        znode = self.tree.read(paths.CONTROLLER_EPOCH)
        return 0 if znode is None else formats.decode_controller_epoch(znode.data)
