"""Replicas of a topic whose broker may still have the log of an earlier topic of the same name.

StopReplica of Kafka's brokers names a topic without its id. An order to delete the earlier log that is repeated after
the new replica has started would delete the new log. So a broker of Kafka's is not told to lead or follow a partition
while it may have a stray of an earlier topic there. To elections its replica is offline until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from controller.model.context import ControllerContext
from controller.model.rounds import Publication, TellLeaderAndIsr
from transport.metadata import Stray, TopicPartition


def without_waiting(context: ControllerContext, publications: Sequence[Publication]) -> Sequence[Publication]:
    """Return what may be published now: nothing that starts a replica which waits for the deletion of a namesake."""
    waiting = context.waiting

    def permitted(item: Publication) -> Publication:
        if not isinstance(item, TellLeaderAndIsr):
            return item
        orders = zip(item.recipients, item.states, strict=True)
        return evolve(item, recipients=[tuple(r for r in ids if (of.tp, r) not in waiting) for ids, of in orders])

    return list(map(permitted, publications)) if waiting else publications


def that_wait(context: ControllerContext) -> list[tuple[TopicPartition, int]]:
    """Return the replicas that wait, in order. An earlier topic may have logs where the later one has no replica."""
    return sorted((tp, broker_id) for tp, broker_id in context.waiting if broker_id in context.assignment(tp).replicas)


def that_waited(context: ControllerContext, strays: Iterable[Stray]) -> list[tuple[TopicPartition, int]]:
    """Return the replicas that waited for the deletion of these strays, which are gone now."""
    if not context.config.kafka:
        return []
    gone = [stray for stray in strays if stray not in context.strays and context.has_namesake(stray)]
    over = [replica for replica in dict.fromkeys(stray.replica for stray in gone) if replica not in context.waiting]
    return [(tp, broker_id) for tp, broker_id in over if broker_id in context.assignment(tp).replicas]
