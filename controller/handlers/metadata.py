"""Metadata: the topics, partitions and brokers that the active controller knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, Step, TellMetadata, change, children
from transport.messages import MetadataResponse
from transport.metadata import NEVER_LED, TopicPartition
from transport.store import paths


def all_topics(context: ControllerContext) -> Rounds[tuple[tuple[str, str], ...]]:
    """Return the name and id of each topic not being deleted; the id is "" if the topic is set aside or new."""
    names = yield from children(paths.TOPICS)
    known = context.topics
    return tuple((n, context.topic_id(n) if n in known else "") for n in names if n not in context.deletions)


def publish(context: ControllerContext, name: str, tps: Iterable[TopicPartition]) -> Rounds[None]:
    """Send every broker the current state of led partitions, as the round `name`."""
    yield from change(name, [Step((tp,), publications=(TellMetadata(None, (context.describe(tp),)),)) for tp in tps])


def describe_topics(context: ControllerContext, names: Sequence[str] | None) -> MetadataResponse:
    """Return the live brokers and the partitions of all topics, or of those named that exist.

    A partition that never had a leader, because no broker of its replicas has been alive, is listed without one.
    """
    wanted = dict.fromkeys(context.topics if names is None else names)
    topics = [name for name in wanted if name in context.topics and name not in context.deletions]
    tps = [TopicPartition(name, number) for name in topics for number in context.topics[name].znode.partitions]
    partitions = [context.describe(tp, leadership=context.leadership.get(tp, NEVER_LED)) for tp in tps]
    partitions += context.describe_deletions(name for name in wanted if name in context.deletions)
    return MetadataResponse(context.controller, context.epoch, context.live_brokers(), tuple(partitions))
