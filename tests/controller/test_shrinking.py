"""The tables of a context take less memory once most of its partitions are gone."""

from __future__ import annotations

import sys

from attrs import asdict

from controller.handlers.failover import initial_rows
from controller.model.context import ControllerContext
from controller.model.facts import PartitionsFound, TopicGone, TopicWritten
from transport.messages import BrokerEndpoint
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store.formats import TopicZnode

REPLICAS = (1, 2, 3)
STATE = LeaderAndIsr(1, 0, REPLICAS, 0, 1)


def find(context: ControllerContext, topic: str, partitions: int) -> list[TopicPartition]:
    znode = TopicZnode(dict.fromkeys(range(partitions), ReplicaAssignment(REPLICAS)), topic)
    context.apply(TopicWritten(topic, znode, 0))
    tps = context.partitions([topic])
    context.apply(PartitionsFound(tps, [STATE] * partitions, initial_rows(context, tps, [STATE] * partitions)))
    return tps


def sizes(context: ControllerContext) -> list[int]:
    phases = asdict(context, recurse=False)["_phases"]
    return [sys.getsizeof(context.leadership), sys.getsizeof(phases.rows)]


def test_dictionaries_shrink_and_keep_what_they_have() -> None:
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), epoch=1, epoch_version=1)
    few = find(context, "few", 10)
    before = sizes(context)
    find(context, "many", 1_000)
    context.apply(TopicGone("many"))
    assert min(sizes(context)) > 10 * max(before)
    held, phases = context.partitions_on(REPLICAS), dict(context.partition_phases)
    context.compact()
    assert max(sizes(context)) <= max(before)
    assert context.leadership == dict.fromkeys(few, STATE)
    assert (context.partitions_on(REPLICAS), dict(context.partition_phases)) == (held, phases)
