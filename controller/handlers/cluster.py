"""A summary of the cluster."""

from __future__ import annotations

from collections import Counter

from controller.model.context import ControllerContext
from controller.model.notable import Notable, judge
from controller.model.state_machines import PartitionPhase
from transport.messages import BrokerEndpoint, DescribeClusterResponse, DescribedBroker


def describe_cluster(context: ControllerContext) -> DescribeClusterResponse:
    """Return the brokers, and counts of topics and partitions and of their problems, without topics being deleted."""
    tps = [tp for tp in context.partitions() if tp.topic not in context.deletions]
    judged = Counter(kind for tp in tps for kind in judge(context, tp))
    led = Counter(leadership.leader for leadership in context.leadership.values())
    held = Counter(r for tp in tps for r in context.assignment(tp).replicas)
    new = sum(context.partition_phases.get(tp) is PartitionPhase.NEW for tp in tps)
    return DescribeClusterResponse(
        context.controller,
        context.epoch,
        tuple(
            DescribedBroker(
                BrokerEndpoint(broker.id, broker.host, broker.port, broker.rack),
                broker.epoch,
                led[broker.id],
                held[broker.id],
                broker.id in context.shutting_down,
            )
            for _, broker in sorted(context.brokers.items())
        ),
        topics=len(context.topics) - len(context.deletions),
        topics_being_deleted=len(context.deletions),
        partitions=len(tps),
        offline=judged[Notable.OFFLINE] + new,
        under_replicated=judged[Notable.UNDER_REPLICATED],
        under_min_isr=judged[Notable.UNDER_MIN_ISR],
        without_preferred_leader=judged[Notable.IMBALANCED],
        being_reassigned=len(context.reassigning),
    )
