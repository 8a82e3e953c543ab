"""Replicas that others place on the controller.

Kafka's brokers are told of the controller as of a live broker, and place topics there that they create themselves. The
controller holds no data, so it puts a broker in its place before anybody hears of such a partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import evolve

from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, read
from transport.log import get_logger
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import paths
from transport.store.formats import TopicZnode

log = get_logger(__name__)


def replaced(context: ControllerContext, topics: Mapping[str, TopicZnode]) -> Rounds[dict[str, TopicZnode]]:
    """Return topics without the controller among the replicas of partitions that have never been led."""
    ours = _on_controller(context, topics)
    states = yield from read(map(paths.partition_state, ours))
    led = [tp for tp, state in zip(ours, states, strict=True) if state is not None]
    if led:
        text = "partitions have a replica on the controller, which holds no data: reassign them"
        log.error(text, partitions=list(map(str, led)))
    placed = dict(topics)
    for name in dict.fromkeys(tp.topic for tp in ours):
        numbers = [tp.partition for tp in ours if tp.topic == name and tp not in led]
        placed[name] = _placed_anew(context, topics[name], numbers)
    return placed


def _on_controller(context: ControllerContext, topics: Mapping[str, TopicZnode]) -> list[TopicPartition]:
    if not context.config.kafka:
        return []
    return [
        TopicPartition(name, number)
        for name, topic in topics.items()
        for number, assignment in topic.partitions.items()
        if context.controller.id in assignment.replicas
    ]


def _placed_anew(context: ControllerContext, topic: TopicZnode, numbers: Sequence[int]) -> TopicZnode:
    """Give each of these partitions another broker in place of the controller, of another rack if there is one.

    If every live broker has a replica already, a partition has one less.
    """
    held = Counter(r for assignment in topic.partitions.values() for r in assignment.replicas)
    partitions = dict(topic.partitions)
    for number in numbers:
        replicas = partitions[number].replicas
        others = [r for r in replicas if r != context.controller.id]
        racks = {context.brokers[r].rack for r in others if r in context.brokers}
        free = [b for b in context.able_brokers() if b not in others]
        chosen = min(free, key=lambda b: (context.brokers[b].rack in racks, held[b], b), default=None)
        if chosen is not None:
            held[chosen] += 1
            others.insert(replicas.index(context.controller.id), chosen)
        # Without any live broker the partition stays as it is, and is placed by the next controller.
        partitions[number] = ReplicaAssignment(tuple(others or replicas))
    log.info("the controller is no replica: partitions are placed anew", partitions=len(numbers))
    return evolve(topic, partitions=partitions)
