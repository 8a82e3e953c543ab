"""Topics that are created, changed or deleted in the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from attrs import evolve
from msgspec.structs import replace

from controller.handlers import deletion_markers, leadership, own_replicas, reassignment_znodes, strays
from controller.handlers.configs import read_min_isrs
from controller.model.context import ControllerContext
from controller.model.facts import PartitionsMoved, ReplicasMoved, TopicClosed, TopicGone, TopicWritten
from controller.model.rounds import (
    Rounds,
    Step,
    TellMetadata,
    apply,
    children,
    commit,
    commit_each,
    existing,
    read_ahead,
    until_none_is_left,
)
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.log import get_logger
from transport.metadata import LEADER_DURING_DELETE, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import FORBIDDEN, Set, Znode

log = get_logger(__name__)


def topic_change(context: ControllerContext, new_ids: Iterable[str]) -> Rounds[None]:
    """Compare the list of topics with the context; load new topics and start their partitions.

    `new_ids` supplies ids for topics written by tools that do not assign one.
    """
    listed = yield from children(paths.TOPICS, watch=True)
    there = set(listed)
    yield from forget(context, [name for name in context.topics if name not in there])
    gone = [name for name in context.closed_topics if name not in there]
    yield from apply("gone", [Step(facts=(TopicGone(name),)) for name in gone])
    # Others have rewritten these, and an ACL kept us from writing back what was lost.
    closed = [name for name in context.closed_topics if name in context.topics]
    yield from refresh_topics(context, closed)
    yield from start_added(context, closed)
    new = [name for name in listed if name not in context.topics]
    yield from load_topics(context, new, new_ids)
    yield from read_min_isrs(context, new)
    yield from start_partitions(context, context.partitions(new))


def partition_modifications(context: ControllerContext, names: Sequence[str], new_ids: Iterable[str]) -> Rounds[None]:
    """Start the partitions that were added to topics' znodes; changes to existing ones there are not adopted.

    A topic that was set aside and has been repaired is loaded as new. One being deleted gets none (KAFKA-6612).
    """
    unknown = [name for name in names if name not in context.topics]
    yield from refresh_topics(context, [name for name in names if name in context.topics])
    there = list((yield from existing(paths.topic, unknown)))
    yield from load_topics(context, there, new_ids)
    yield from read_min_isrs(context, there)
    yield from start_added(context, names)


def start_added(context: ControllerContext, names: Iterable[str]) -> Rounds[None]:
    """Start the partitions of topics that have not been started, as when others have added them.

    Another event may have read them before, and a topic that is being deleted since then starts none.
    """
    able = [name for name in names if name not in context.deletions]
    added = [tp for tp in context.partitions(able) if tp not in context.partition_phases]
    yield from start_partitions(context, added)


def refresh_topics(
    context: ControllerContext,
    names: Sequence[str],
    in_doubt: Mapping[TopicPartition, ReplicaAssignment] = MappingProxyType({}),
) -> Rounds[list[str]]:
    """Read known topics again, and watch them; return those that still exist and can be decoded.

    Others may only add partitions: known assignments and the id are kept, and written back at once if they were
    overwritten (KAFKA-9038, KAFKA-14190), or the next controller would not know them. A topic with a different id is a
    new topic of which nothing is known. Our own writes `in_doubt` may have taken effect without an answer.
    """
    there: list[str] = []

    def refresh(pending: list[str]) -> Rounds[list[str]]:
        known = [name for name in pending if name in context.topics]
        found = yield from existing(paths.topic, known, watch=True)
        topics = _decoded(context, found)
        # Another id: the topic was deleted and created again while we did not look.
        others = [name for name, topic in topics.items() if topic.topic_id not in (None, context.topic_id(name))]
        yield from _recognise(context, topics, in_doubt)
        placed = yield from own_replicas.replaced(context, topics)
        taken_over = {
            name: _take_over(context, name, topics[name], placed[name], found[name].stat.version) for name in topics
        }
        steps = {name: step for name, step in taken_over.items() if step is not None}
        yield from forget(context, [name for name in known if name not in found or name in others])
        rejected = list[str]()
        stale = yield from commit_each("topics", steps, on_rejected=rejected.extend)
        # What others have dropped cannot be written back, so the next controller would not know it.
        yield from apply("topics", [Step(facts=(TopicClosed(name),)) for name in rejected])
        yield from read_min_isrs(context, others)
        left_out = {*stale, *rejected, *others}
        there.extend(name for name in steps if name not in left_out)
        return stale

    yield from until_none_is_left("topics", names, refresh)
    return there


def _recognise(
    context: ControllerContext,
    topics: Mapping[str, formats.TopicZnode],
    in_doubt: Mapping[TopicPartition, ReplicaAssignment],
) -> Rounds[None]:
    """Take assignments for known that we wrote without an answer, and that the store has."""

    def written(name: str, topic: formats.TopicZnode) -> Step:
        ours = {tp.partition: assignment for tp, assignment in in_doubt.items() if tp.topic == name}
        landed = {number: ours[number] for number in ours if topic.partitions.get(number) == ours[number]}
        known = context.topics[name]
        partitions = {**known.znode.partitions, **landed}
        return Step(facts=(TopicWritten(name, evolve(known.znode, partitions=partitions), known.version),))

    names = dict.fromkeys(tp.topic for tp in in_doubt if tp.topic in topics)
    yield from apply("observed", [written(name, topics[name]) for name in names])


def _take_over(
    context: ControllerContext, name: str, written: formats.TopicZnode, placed: formats.TopicZnode, version: int
) -> Step | None:
    """Return the step that adopts, and if needed corrects, a topic's znode; None if the result would be too large.

    `placed` is the same without the controller among the replicas.
    """
    known = context.topics[name].znode
    if written.topic_id not in (None, known.topic_id):
        return _adopt(name, written, written, version)
    # A topic that is being deleted takes no new partitions. A missing id was dropped by a tool that knows no ids.
    added = {} if name in context.deletions else placed.partitions
    merged = evolve(written, partitions={**added, **known.partitions}, topic_id=known.topic_id)
    if merged != written:
        if not _is_writable(context, name, formats.encode_topic(merged)):
            return None
        log.warning("a topic's znode was rewritten by others: its id and assignments are written back", topic=name)
    return _adopt(name, written, merged, version)


def forget(context: ControllerContext, names: Sequence[str]) -> Rounds[None]:
    """Forget topics that no longer exist, and have brokers delete their replicas.

    The replicas are strays until their brokers have answered, so that no log is left to conflict with a new topic of
    the same name.
    """

    def leave(pending: list[TopicPartition]) -> Rounds[list[TopicPartition]]:
        steps = [strays.leave_all(context, tp) for tp in pending]
        unrecorded = list[Step]()
        refused = yield from commit("gone", steps, on_rejected=unrecorded.extend)
        for step in unrecorded:
            text = "replicas of a removed topic are deleted on live brokers only: they cannot be recorded as strays"
            log.error(text, partition=str(step.subjects[0]))
        yield from apply("gone", [evolve(step, writes=()) for step in unrecorded])
        if refused:
            yield from strays.load(context)
        return [tp for step in refused for tp in step.subjects]

    for name in names:
        log.warning("a topic was removed from the store: deleting its replicas", topic=name)
    # A marker left behind would delete the next topic of that name.
    yield from deletion_markers.remove([name for name in names if name in context.deletions])
    tps = {name: context.partitions([name]) for name in names}
    yield from until_none_is_left("gone", context.partitions(names), leave)
    yield from apply("gone", [_gone(context, *item) for item in tps.items()])
    yield from reassignment_znodes.settle(context, names)


def _gone(context: ControllerContext, name: str, tps: Sequence[TopicPartition]) -> Step:
    states = [
        replace(context.describe(tp), leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0)
        for tp in tps
        if tp in context.leadership
    ]
    return Step(facts=(TopicGone(name),), publications=(TellMetadata(None, tuple(states)),))


def load_topics(
    context: ControllerContext, names: Sequence[str], new_ids: Iterable[str], ahead: int = 0
) -> Rounds[None]:
    """Load topics, watch them, and assign an id to those without one (KAFKA-12835).

    The states of the first `ahead` partitions begin to be read.
    """
    ids = iter(new_ids)

    def load(pending: list[str]) -> Rounds[list[str]]:
        found = yield from existing(paths.topic, pending, watch=True)
        closed = [name for name, znode in found.items() if znode == FORBIDDEN]
        topics = _decoded(context, found)
        placed = yield from own_replicas.replaced(context, topics)
        steps = {
            name: _load(name, topic, placed[name], found[name].stat.version, ids) for name, topic in topics.items()
        }
        steps |= {name: Step(facts=(TopicClosed(name),)) for name in closed}
        yield from read_ahead(paths.partition_states(islice(_partitions(placed), ahead)))
        rejected = list[str]()
        stale = yield from commit_each("topics", steps, on_rejected=rejected.extend)
        # A topic without an id cannot be used, and an ACL keeps us from giving it one.
        yield from apply("topics", [Step(facts=(TopicClosed(name),)) for name in rejected])
        return stale

    yield from until_none_is_left("topics", names, load)


def _partitions(topics: Mapping[str, formats.TopicZnode]) -> Iterator[TopicPartition]:
    for name, topic in topics.items():
        yield from TopicPartition.of_topic(name, topic.partitions)


def _load(name: str, written: formats.TopicZnode, placed: formats.TopicZnode, version: int, ids: Iterator[str]) -> Step:
    topic = placed if placed.topic_id is not None else evolve(placed, topic_id=next(ids))
    return _adopt(name, written, topic, version)


def _adopt(name: str, written: formats.TopicZnode, topic: formats.TopicZnode, version: int) -> Step:
    """Return the step after which a topic's znode is known, and written first unless others have `written` the same."""
    if topic == written:
        return Step(facts=(TopicWritten(name, topic, version),))
    write = Set(paths.topic(name), formats.encode_topic(topic), version)
    return Step(writes=(write,), facts=(TopicWritten(name, topic, version + 1),))


def _is_writable(context: ControllerContext, name: str, data: bytes) -> bool:
    most = context.config.request_limits.found_topic
    if len(data) > most:
        text = "topic set aside: others have made its znode too large to be written again"
        log.error(text, topic=name, bytes=len(data), limit=most)
    return len(data) <= most


def _decoded(context: ControllerContext, found: Mapping[str, Znode]) -> dict[str, formats.TopicZnode]:
    topics = {name: _decode(context, name, znode.data) for name, znode in found.items()}
    return {name: topic for name, topic in topics.items() if topic is not None}


def _decode(context: ControllerContext, name: str, data: bytes) -> formats.TopicZnode | None:
    if not _is_writable(context, name, data):
        return None
    try:
        return formats.decode_topic(name, data)
    except formats.UndecodableZnode as fault:
        log.error("topic set aside: its assignment cannot be decoded", topic=name, fault=str(fault))
        return None


def start_partitions(context: ControllerContext, tps: Sequence[TopicPartition]) -> Rounds[None]:
    """Take partitions and their replicas from NonExistent to Online; a partition without a live replica stays New."""
    yield from strays.take_back_assigned(context)
    replicas = [context.assignment(tp).replicas for tp in tps]
    new = PartitionsMoved(tps, PartitionPhase.NEW), ReplicasMoved(tps, replicas, ReplicaPhase.NEW)
    yield from apply("new", [Step(tuple(tps), facts=new)])
    yield from leadership.initialise(context, tps)
    yield from leadership.elect_leaders(
        context, [tp for tp in tps if context.partition_phases.get(tp) is PartitionPhase.OFFLINE]
    )
    yield from apply("replicas", [Step(tuple(tps), facts=(ReplicasMoved(tps, replicas, ReplicaPhase.ONLINE),))])
    yield from reassignment_znodes.identify(context, tps)
