"""Topic deletion (reference: Kafka's TopicDeletionManager).

A topic that is marked below `/admin/delete_topics` is excluded from everything else at once: its partitions become
NonExistent, brokers learn that they have no leader, and a reassignment of it ends. Its replicas pass through the
deletion states:

    Offline -> DeletionStarted -> DeletionSuccessful     the broker has answered that the data are deleted
                               -> DeletionIneligible     the broker failed or is not alive: the topic waits for it

An Ineligible replica is retried when its broker starts, and after RETRY_SECONDS while its broker is alive. When all
replicas are Successful, the znodes are deleted, children first and REMOVED_AT_ONCE at a time. Many topics begin to be
deleted, and are removed, in several events, so that others have their turn in between. The topic, its settings and its
marker are deleted last and in one multi, so that a new topic of the same name inherits nothing of the old one and is
not mistaken for it. The marker is all that the next controller needs to repeat everything: brokers report a replica
that they do not have as deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import accumulate, compress, count, groupby
from operator import attrgetter
from typing import Final

from controller.handlers import deletion_markers, reassignment_entries, reassignment_znodes
from controller.model.context import ControllerContext
from controller.model.deletion_progress import is_done
from controller.model.descriptions import describe_deletions
from controller.model.facts import DeletionStarted, PartitionsMoved, ReplicasMoved, TopicGone
from controller.model.rounds import (
    Rounds,
    Step,
    TellMetadata,
    TellStopReplica,
    apply,
    children,
    commit,
    descendants,
    immediately,
    read,
    until_none_is_left,
)
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.log import get_logger
from transport.messages import StopReplicaPartition
from transport.metadata import EPOCH_DURING_DELETE, Stray, TopicPartition
from transport.store import formats, paths
from transport.store.chunks import plan_chunks
from transport.store.protocol import ANY_VERSION, Check, Delete, Op, Znode
from transport.store.requests import weight_of

log = get_logger(__name__)

RETRY_SECONDS: Final = 10.0
"""The delay before a live broker that failed to delete a replica is sent the order again."""

PER_EVENT: Final = 20
"""The most requests that the partitions of one event would fill, with an operation for each. Other events wait then.

An event begins to delete so many partitions, or removes their znodes, two for each.
"""

REMOVED_TOGETHER: Final = 2
"""The same for the topics whose removal is prepared together, while the store writes what was prepared before."""

REMOVED_AT_ONCE: Final = 500
"""The number of znodes below a topic that one multi deletes."""


def topic_deletion(context: ControllerContext) -> Rounds[list[str]]:
    """Begin to delete marked topics, and retry failed deletions on live brokers; return topics for another event."""
    marked = yield from deletion_markers.read_marked(context)
    names, left = _cut(context, [name for name in marked if name not in context.deletions], PER_EVENT)
    yield from begin(context, names)
    yield from resume(context, context.brokers, dict.fromkeys([*names, *context.held_up]))
    return left


def _cut(context: ControllerContext, names: Sequence[str], requests: int) -> tuple[list[str], list[str]]:
    """Split topics into those for one event, whose partitions would fill a few requests, and the others."""
    most = context.config.request_limits.operations_in(requests)
    sizes = accumulate(len(context.topics[name].znode.partitions) for name in names)
    first = max(1, sum(size <= most for size in sizes))
    return list(names[:first]), list(names[first:])


def begin(context: ControllerContext, names: Sequence[str]) -> Rounds[None]:
    """Exclude topics from everything else, and publish to every broker that they have no leader any more."""
    if not names:
        return
    for name in names:
        log.info("deleting a topic", topic=name, partitions=len(context.topics[name].znode.partitions))
    yield from apply("delete", [_beginning(context, names)])
    yield from reassignment_entries.rewrite(context, lambda tp, _: tp.topic in context.deletions)


def _beginning(context: ControllerContext, names: Sequence[str]) -> Step:
    tps = tuple(context.partitions(names))
    begun = list(compress(tps, context.partition_phases.of_all(tps)))
    ending = (PartitionsMoved(begun, phase) for phase in (PartitionPhase.OFFLINE, PartitionPhase.NON_EXISTENT))
    told = TellMetadata(None, describe_deletions(context, names))
    return Step(tps, facts=(*ending, *map(DeletionStarted, names)), publications=(told,))


# --- replicas ---------------------------------------------------------------------------------------------------


def resume(context: ControllerContext, brokers: Collection[int], names: Iterable[str] | None = None) -> Rounds[None]:
    """Order live `brokers` to delete what they may still have; replicas on dead brokers become Ineligible."""
    orders = _orders(context, brokers, context.deletions if names is None else names)
    yield from apply("stop", [orders] if orders.facts else [])


def _orders(context: ControllerContext, brokers: Collection[int], names: Iterable[str]) -> Step:
    transitions = cache(partial(_transitions, context, brokers))
    moved: dict[ReplicaPhase, dict[TopicPartition, tuple[int, ...]]] = {phase: {} for phase in _COURSE}
    for tp in context.partitions(names):
        for phase, ids in transitions(context.assignment(tp).replicas, context.replica_phases.of(tp)):
            moved[phase][tp] = ids
    told = moved[ReplicaPhase.DELETION_STARTED]
    return Step(
        tuple(told),
        facts=tuple(ReplicasMoved(list(of), list(of.values()), phase) for phase, of in moved.items() if of),
        publications=(TellStopReplica(list(told.values()), _stops(context, told)),) if told else (),
    )


_COURSE = (ReplicaPhase.NEW, ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_INELIGIBLE)


def _transitions(
    context: ControllerContext,
    brokers: Collection[int],
    replicas: tuple[int, ...],
    phases: tuple[ReplicaPhase | None, ...],
) -> list[tuple[ReplicaPhase, tuple[int, ...]]]:
    """Return the states that a partition's replicas in these states enter, in the order of _COURSE, and which do."""
    before = dict(zip(replicas, phases, strict=True))
    left = [r for r in replicas if before[r] is not ReplicaPhase.DELETION_SUCCESSFUL]
    # A live broker that has no order in progress: it has just started, or could not delete the replica before.
    told = [r for r in left if r in context.brokers and r in brokers and before[r] is not ReplicaPhase.DELETION_STARTED]
    # A dead broker cannot be asked: the topic waits for it.
    dead = [r for r in left if r not in context.brokers and before[r] is not ReplicaPhase.DELETION_INELIGIBLE]
    # A reassignment had assigned these replicas, but not started them yet.
    new = [r for r in (*told, *dead) if before[r] is None]
    # A replica is Offline before its deletion starts (see `replica_states`), unless its broker died after the order.
    offline = [r for r in (*told, *dead) if before[r] is not ReplicaPhase.DELETION_STARTED]
    return [(phase, tuple(ids)) for phase, ids in zip(_COURSE, (new, offline, told, dead), strict=True) if ids]


def _stops(context: ControllerContext, tps: Iterable[TopicPartition]) -> list[StopReplicaPartition]:
    ids = cache(context.topic_id)
    return [StopReplicaPartition(name, ids(name), number, EPOCH_DURING_DELETE, delete=True) for name, number in tps]


def replicas_deleted(
    context: ControllerContext, broker_id: int, obeyed: Sequence[StopReplicaPartition]
) -> Rounds[list[str]]:
    """Mark replicas that a broker deleted as Successful; return the topics without remaining replicas.

    Orders that carry a leader epoch are ignored: they came from a reassignment that removed the replica.
    """
    answered = [order for order in obeyed if order.leader_epoch == EPOCH_DURING_DELETE]
    names = yield from _judge(context, broker_id, answered, ReplicaPhase.DELETION_SUCCESSFUL)
    return [name for name in names if is_done(context, name)]


def replicas_not_deleted(context: ControllerContext, replicas: Sequence[Stray]) -> Rounds[None]:
    """Mark replicas that a broker could not delete as Ineligible until the order is sent again."""
    for broker_id in sorted({replica.broker_id for replica in replicas}):
        answered = [replica for replica in replicas if replica.broker_id == broker_id]
        for name in (yield from _judge(context, broker_id, answered, ReplicaPhase.DELETION_INELIGIBLE)):
            text = "a broker could not delete its replicas: the order is repeated, its log gives the reason"
            log.warning(text, topic=name, broker=broker_id, after_seconds=RETRY_SECONDS)


def _judge(
    context: ControllerContext, broker_id: int, answered: Sequence[StopReplicaPartition | Stray], phase: ReplicaPhase
) -> Rounds[list[str]]:
    """Move the answered replicas whose deletion is in progress to a state; return the names of their topics."""
    # Answers about an earlier topic of the same name, and answers that nothing waits for, are ignored.
    tps: list[TopicPartition] = []
    for name, those in groupby(answered, attrgetter("topic")):
        if name in context.deletions:
            topic_id = context.topic_id(name)
            tps += TopicPartition.of_topic(name, [item.partition for item in those if item.topic_id == topic_id])
    begun = context.replica_phases.those_in(ReplicaPhase.DELETION_STARTED, broker_id, list(dict.fromkeys(tps)))
    fact = ReplicasMoved.on(broker_id, begun, phase)
    yield from apply("deleted", [Step(facts=(fact,))] if begun else [])
    return list(dict.fromkeys(tp.topic for tp in begun))


# --- znodes -----------------------------------------------------------------------------------------------------


def topics_deleted(context: ControllerContext, names: Sequence[str]) -> Rounds[list[str]]:
    """Complete the deletion of topics without remaining replicas; return those that are left for another event."""
    first, left = _cut(context, [name for name in names if name in context.deletions], PER_EVENT)
    yield from complete(context, [name for name in first if is_done(context, name)])
    return left


def complete(context: ControllerContext, names: Sequence[str]) -> Rounds[None]:
    """Remove the znodes of topics whose replicas have all been deleted, and forget the topics."""
    if not names:
        return
    # A request that stays in the store would move the next topic of its name.
    kept = yield from reassignment_entries.rewrite(context, lambda tp, _: tp.topic in context.deletions)
    held_up = {tp.topic for tp in kept.faults(context.partitions(names))} if kept.is_closed else frozenset()
    for name in held_up:
        log.error("a topic cannot be removed yet: a request to move it stays in the store", topic=name)
    names = [name for name in names if name not in held_up]
    # Almost all topics have just the znodes of their partitions. Where others are found, all are listed.
    left = yield from _remove(context, partial(_expected, context), names)
    yield from until_none_is_left("remove", left, partial(_remove, context, _listed))
    gone = [name for name in names if name not in context.deletions]
    # The reassignment znodes are removed last. If a failover leaves them behind, the next controller removes them.
    moved = yield from children(paths.REASSIGNMENTS)
    yield from reassignment_znodes.settle(context, [name for name in gone if name in moved])
    for name in gone:
        log.info("a topic is deleted", topic=name)
    for name in [name for name in names if name in context.deletions]:
        log.error("a topic cannot be removed yet: an ACL denies access to a znode below it", topic=name)


Below = Callable[[Sequence[str]], Rounds[list[list[str] | None]]]
"""Finds the paths below topics, children before parents; None if we may not list them all."""


def _expected(context: ControllerContext, names: Sequence[str]) -> Rounds[list[list[str] | None]]:
    """Return the paths below topics that have znodes of their partitions and no others."""
    return immediately([[*_of_partitions(context, name), paths.topic_partitions(name)] for name in names])


def _of_partitions(context: ControllerContext, name: str) -> Iterator[str]:
    for tp in context.partitions([name]):
        yield paths.partition_state(tp)
        yield paths.partition(tp)


def _listed(names: Sequence[str]) -> Rounds[list[list[str] | None]]:
    return descendants([paths.topic(name) for name in names])


def _remove(context: ControllerContext, find: Below, names: Sequence[str]) -> Rounds[list[str]]:
    """Remove topics and all that is below them; return those to retry: below them is something else than `find` finds.

    A topic stays if an ACL keeps us from one of its znodes.
    """
    found = yield from read(path(name) for name in names for path in _OWN)
    own = {name: found[i : i + len(_OWN)] for i, name in zip(count(step=len(_OWN)), names)}
    ours = [name for name in names if _is_ours(context, name, own[name][0])]
    below = dict(zip(ours, (yield from find(ours)), strict=True))
    steps: dict[str, list[Step]] = {}

    def removals(names: Sequence[str]) -> list[Step]:
        steps.update((name, _removals(context, name, own[name], below.get(name))) for name in names)
        return [step for name in names for step in steps[name]]

    # Children that we may not list cannot be removed: the topic stays, and `complete` logs it.
    open_ = [name for name in names if below.get(name, ()) is not None]
    later = [partial(removals, some) for some in _in_parts(context, open_)]
    rejected = set[Step]()
    refused = set((yield from commit("remove", (), on_rejected=rejected.update, later=later)))
    left = [name for name in open_ if steps[name][-1] in refused]
    return [name for name in left if rejected.isdisjoint(steps[name])]


_OWN: Final = paths.topic, paths.topic_config, paths.delete_topic
"""The paths of a topic's own znodes, which go in one multi."""


def _in_parts(context: ControllerContext, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the topics that are prepared together. The last request of each part is not full."""
    while names:
        some, names = _cut(context, names, REMOVED_TOGETHER)
        yield some


def _removals(
    context: ControllerContext, name: str, own: Sequence[Znode | None], below: Sequence[str] | None
) -> list[Step]:
    """Return the steps that delete a topic and what is `below` it, which is None if it is not ours.

    The parent of the partitions is deleted only with the topic. A topic created meanwhile by another process under the
    same name has no such parent yet, so checking for it tells the two apart: their versions may be equal. Such a topic
    keeps its znodes and its settings.
    """
    topic, config, marker = own
    parent = paths.topic_partitions(name)
    has_parent = below is not None and parent in below
    last: list[Op] = [Delete(parent)] if has_parent else []
    if below is not None and topic is not None:
        last.append(Delete(paths.topic(name), topic.stat.version))
        last += [Delete(paths.topic_config(name))] if config is not None else []
    last += [Delete(paths.delete_topic(name))] if marker is not None else []
    unchanged = [Check(parent, ANY_VERSION)] if has_parent else []
    deletes = [Delete(path) for path in below or () if path != parent]
    most = context.config.request_limits.chunk - weight_of((*unchanged, *last))
    chunks = plan_chunks([[delete] for delete in deletes], max_ops=REMOVED_AT_ONCE, max_bytes=most)
    *before, rest = [[deletes[i] for i in chunk] for chunk in chunks] or [[]]
    steps = [Step(writes=(*unchanged, *some)) for some in before]
    return [*steps, Step(writes=(*rest, *last), facts=(TopicGone(name),))]


def _is_ours(context: ControllerContext, name: str, znode: Znode | None) -> bool:
    """Return whether a topic's znode is that of the topic being deleted, not of a new topic of the same name."""
    if znode is None:
        return False
    try:
        return formats.decode_topic(name, znode.data).topic_id in (None, context.topic_id(name))
    except formats.UndecodableZnode:
        # Nobody creates a topic with a damaged znode, so it belongs to the old one.
        return True
