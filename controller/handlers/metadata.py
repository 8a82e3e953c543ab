"""Metadata: the topics, partitions and brokers that the active controller knows, and a summary of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from controller.model import registrations
from controller.model.context import ControllerContext
from controller.model.descriptions import describe_all, describe_deletions, describe_led
from controller.model.namesakes import that_wait
from controller.model.notable import Notable, judge_all
from controller.model.rounds import Rounds, Step, TellMetadata, apply, children
from controller.model.state_machines import PartitionPhase
from transport.messages import (
    DescribeClusterResponse,
    DescribedBroker,
    FailedReplica,
    MetadataResponse,
    WaitingReplica,
)
from transport.metadata import NEVER_LED, NO_EPOCH, TopicPartition
from transport.store import paths


def all_topics(context: ControllerContext) -> Rounds[tuple[tuple[str, str], ...]]:
    """Return the name and id of each topic not being deleted; the id is "" if the topic is set aside or new."""
    names = yield from children(paths.TOPICS)
    known = context.topics
    return tuple((n, context.topic_id(n) if n in known else "") for n in names if n not in context.deletions)


def publish(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
    """Send every broker the current state of led partitions."""
    states = tuple(describe_led(context, tps))
    subjects = tuple([state.tp for state in states])
    yield from apply("metadata", [Step(subjects, publications=(TellMetadata(None, states),))] if states else [])


def describe_topics(context: ControllerContext, names: Sequence[str] | None) -> MetadataResponse:
    """Return the live brokers and the partitions of all topics, or of those named that exist.

    A partition that never had a leader, because no broker of its replicas has been alive, is listed without one.
    """
    wanted = dict.fromkeys(context.topics if names is None else names)
    topics = [name for name in wanted if name in context.topics and name not in context.deletions]
    led = context.leadership
    tps = context.partitions(topics)
    partitions = describe_all(context, tps, [led.get(tp, NEVER_LED) for tp in tps])
    partitions += describe_deletions(context, (name for name in wanted if name in context.deletions))
    waiting = tuple(WaitingReplica(*tp, broker_id) for tp, broker_id in that_wait(context) if tp.topic in wanted)
    return MetadataResponse(
        context.controller,
        context.epoch,
        context.live_brokers(),
        tuple(partitions),
        are_kafkas=context.config.kafka,
        waiting=waiting,
        failed=_failed(context, topics),
    )


def _failed(context: ControllerContext, topics: Iterable[str]) -> tuple[FailedReplica, ...]:
    """Return the replicas of topics for which brokers failed to carry out an order."""
    names = set(topics) if context.failures else ()
    failed = []
    for (tp, broker_id), failure in context.failures.items():
        if tp.topic in names and not failure.is_over:
            failed.append(FailedReplica(*tp, broker_id, failure.order.value, failure.reason, failure.failures))
    return tuple(sorted(failed, key=lambda one: (one.tp, one.broker_id)))


def describe_cluster(context: ControllerContext) -> DescribeClusterResponse:
    """Return the brokers, and counts of topics and partitions and of their problems, without topics being deleted."""
    tps = [tp for tp in context.partitions() if tp.topic not in context.deletions]
    judged = Counter(kind for kinds, n in Counter(judge_all(context, tps)).items() for kind in kinds for _ in range(n))
    led = Counter(leadership.leader for leadership in context.leadership.values())
    held = Counter(r for tp in tps for r in context.assignment(tp).replicas)
    new = sum(context.partition_phases.get(tp) is PartitionPhase.NEW for tp in tps)
    return DescribeClusterResponse(
        context.controller,
        context.epoch,
        tuple(
            DescribedBroker(
                endpoint,
                registrations.epoch_of(context, endpoint.id) or NO_EPOCH,
                led[endpoint.id],
                held[endpoint.id],
                endpoint.id in context.shutting_down,
                registrations.fault_of(context, endpoint.id),
            )
            for endpoint in registrations.endpoints(context)
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
