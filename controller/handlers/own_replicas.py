"""Replicas that others place on a controller.

Kafka's brokers are told of the controller as of a live broker, and place topics there that they create themselves. They
go on after its death, until its successor tells them of itself. Controllers hold no data, so the one in office puts
brokers in their place before anybody hears of such a partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from attrs import evolve

from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, children, existing
from transport.log import get_logger
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import paths
from transport.store.formats import TopicZnode

log = get_logger(__name__)


def replaced(context: ControllerContext, topics: Mapping[str, TopicZnode]) -> Rounds[dict[str, TopicZnode]]:
    """Return topics without controllers among the replicas of partitions that have never been led."""
    controllers = yield from _controllers(context, topics)
    if not controllers:
        return dict(topics)
    ours = [
        TopicPartition(name, number)
        for name, topic in topics.items()
        for number, assignment in topic.partitions.items()
        if not controllers.isdisjoint(assignment.replicas)
    ]
    led = yield from existing(paths.partition_state, ours)
    if led:
        text = "partitions have a replica on a controller, which holds no data: reassign them"
        log.error(text, partitions=list(map(str, led)))
    placed = dict(topics)
    for name in dict.fromkeys(tp.topic for tp in ours):
        numbers = [tp.partition for tp in ours if tp.topic == name and tp not in led]
        placed[name] = _placed_anew(context, topics[name], numbers, controllers)
    return placed


def _controllers(context: ControllerContext, topics: Mapping[str, TopicZnode]) -> Rounds[frozenset[int]]:
    """Return the ids of controllers, the present one and earlier ones, among those of the replicas."""
    if not context.config.kafka:
        return frozenset()
    named = {r for topic in topics.values() for assignment in topic.partitions.values() for r in assignment.replicas}
    absent = named - context.brokers.keys()
    if absent <= {context.controller.id}:
        return frozenset(absent)
    earlier = paths.numbers((yield from children(paths.CONTROLLER_IDS)))
    return frozenset(absent.intersection([context.controller.id, *earlier]))


def _placed_anew(
    context: ControllerContext, topic: TopicZnode, numbers: Sequence[int], controllers: Collection[int]
) -> TopicZnode:
    """Give each of these partitions other brokers in place of controllers.

    If every live broker has a replica already, a partition has one less.
    """
    held = Counter(r for assignment in topic.partitions.values() for r in assignment.replicas)
    partitions = dict(topic.partitions)
    for number in numbers:
        placed = _with_brokers(context, partitions[number].replicas, controllers, held)
        # Without any live broker the partition stays as it is, and is placed by the next controller.
        partitions[number] = ReplicaAssignment(placed) if placed else partitions[number]
    log.info("a controller is no replica: partitions are placed anew", partitions=len(numbers))
    return evolve(topic, partitions=partitions)


def _with_brokers(
    context: ControllerContext, replicas: Sequence[int], controllers: Collection[int], held: Counter[int]
) -> tuple[int, ...]:
    """Return replicas with a live broker in the place of each controller, of another rack if there is one.

    `held` counts the replicas by broker.
    """
    taken = [r for r in replicas if r not in controllers]
    placed: list[int] = []
    for replica in replicas:
        if replica not in controllers:
            placed.append(replica)
        elif (chosen := _free_broker(context, taken, held)) is not None:
            held[chosen] += 1
            taken.append(chosen)
            placed.append(chosen)
    return tuple(placed)


def _free_broker(context: ControllerContext, taken: Sequence[int], held: Counter[int]) -> int | None:
    """Return the broker to join those that are taken, None if there is no other."""
    racks = {context.brokers[r].rack for r in taken if r in context.brokers}
    free = [b for b in context.able_brokers() if b not in taken]
    return min(free, key=lambda b: (context.brokers[b].rack in racks, held[b], b), default=None)
