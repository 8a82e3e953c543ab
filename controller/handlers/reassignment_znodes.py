"""`/admin/reassignments/TOPIC/PARTITION`: the identity and the start time of each reassignment (KIP-240).

The znode is created in the multi that stores the first target, and kept by an override. It is deleted in the multi that
ends the move, or after the deletion of its topic, whose znodes may be too many for one multi. The parent of a topic's
znodes is created with the first of them and deleted with the last. The czxid is the identity, the ctime the start time.
The data are the original replicas as Kafka's reassignment JSON; a cancellation restores them, and a topic's znode does
not keep the order of those that are also in the target. If another process moves a partition, or creates or deletes
znodes here, the assignments are authoritative and the znodes are corrected. A reassignment that has lost its znode gets
a new one, and with it a new identity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from attrs import evolve, frozen

from controller.model.assignments import Changes
from controller.model.context import ControllerContext
from controller.model.facts import ReassignmentIdentified
from controller.model.reassignment import UNIDENTIFIED, ReassignmentIdentity
from controller.model.rounds import (
    Rounds,
    Step,
    apply,
    children,
    commit,
    commit_each,
    descendants,
    read,
    until_none_is_left,
)
from transport.log import get_logger
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Op, Set, Znode

log = get_logger(__name__)


def writes_with(context: ControllerContext, name: str, changes: Changes) -> list[Op]:
    """Return the writes for the multi that changes the assignments of partitions of a topic."""
    moving = sum(map(context.reassigning.__contains__, context.partitions([name])))
    after = {tp: change.assignment.is_being_reassigned for tp, change in changes.items()}
    begun = [tp for tp, moves in after.items() if moves and tp not in context.reassigning]
    ended = [tp for tp, moves in after.items() if not moves and tp in context.reassigning]
    creates: list[Op] = [
        Create(paths.reassignment(tp), formats.encode_reassign_partitions({tp: context.assignment(tp).replicas}))
        for tp in begun
    ]
    deletes: list[Op] = [Delete(paths.reassignment(tp)) for tp in ended]
    # The first move of a topic creates the parent, and the last one deletes it.
    if begun and not moving:
        return [Create(paths.topic_reassignments(name)), *creates]
    if ended and not begun and len(ended) == moving:
        return [*deletes, Delete(paths.topic_reassignments(name))]
    return [*creates, *deletes]


def identify(context: ControllerContext, tps: Iterable[TopicPartition]) -> Rounds[None]:
    """Read the identity of each reassignment that has just begun, creating its znode if it is missing."""
    begun = [tp for tp in tps if context.reassigning.get(tp) == UNIDENTIFIED]
    znodes = yield from read(paths.reassignment(tp) for tp in begun)
    yield from _take_over(zip(begun, znodes, strict=True))
    yield from settle(context, [tp.topic for tp in begun if context.reassigning[tp] == UNIDENTIFIED])


def load(context: ControllerContext, set_aside: Collection[str]) -> Rounds[None]:
    """Correct all znodes that earlier controllers have left, and load the identities.

    Znodes of topics that are `set_aside` are kept: their moves may continue once the topics are repaired.
    """
    earlier = (yield from _discard_earlier(context)) if context.config.kafka else ()
    names = yield from children(paths.REASSIGNMENTS)
    yield from settle(context, [*(n for n in names if n not in set_aside), *(tp.topic for tp in context.reassigning)])
    # To cancel one of these moves must not restore the replicas of another.
    known = {tp: evolve(context.reassigning[tp], original=()) for tp in earlier if tp in context.reassigning}
    yield from apply("observed", [Step(facts=(ReassignmentIdentified(tp, one),)) for tp, one in known.items()])


def _discard_earlier(context: ControllerContext) -> Rounds[list[TopicPartition]]:
    """Delete the znodes of reassignments that Kafka's controller has ended, where it has begun another one.

    It keeps no such znodes. One from before it was in office is older than our `/controller`, and is of another
    reassignment if its original replicas are others than those of the assignment. One that is kept is written again:
    from then on only our overrides change the assignment, and may add to its original replicas. Return the partitions
    with a znode that should be deleted, and could not be: its original replicas are not those of their move.
    """
    moving = list(context.reassigning)
    holder, *znodes = yield from read([paths.CONTROLLER, *map(paths.reassignment, moving)])
    if holder is None:
        return []
    found = [(tp, znode) for tp, znode in zip(moving, znodes, strict=True) if znode is not None]
    older = [(tp, znode) for tp, znode in found if znode.stat.mzxid < holder.stat.czxid]
    verdicts = {tp: Step(writes=(_judge(context, tp, znode),)) for tp, znode in older}
    kept = list[TopicPartition]()
    yield from commit_each("identify", verdicts, on_rejected=kept.extend)
    return [tp for tp in kept if isinstance(verdicts[tp].writes[0], Delete)]


def _judge(context: ControllerContext, tp: TopicPartition, znode: Znode) -> Op:
    path, original = paths.reassignment(tp), _identity(tp, znode).original
    has_ended = original and set(original) != set(context.assignment(tp).origin_replicas)
    return Delete(path) if has_ended else Set(path, znode.data, znode.stat.version)


def settle(context: ControllerContext, names: Iterable[str]) -> Rounds[frozenset[str]]:
    """Make the znodes of topics match the partitions being reassigned, and read these znodes.

    Return the topics for which an ACL prevents it.
    """
    closed = set[str]()

    def mend(pending: list[str]) -> Rounds[list[str]]:
        if not (yield from _create_root()):
            closed.update(pending)
            return []
        found = yield from _find(context, pending)
        writes = {name: ops for name in pending if (ops := _mending(name, found[name]))}
        rejected = list[Step]()
        steps = [Step(writes=(op,)) for op in chain(*writes.values())]
        yield from commit("identify", steps, on_rejected=rejected.extend)
        denied = {op for step in rejected for op in step.writes}
        closed.update(name for name, ops in writes.items() if not denied.isdisjoint(ops))
        closed.update(name for name in pending if found[name].others is None)
        left = [name for name in writes if name not in closed]
        yield from _take_over(item for name in pending if name not in left for item in found[name].moving.items())
        return left  # read again what was written, to get the identities

    yield from until_none_is_left("identify", dict.fromkeys(names), mend)
    return frozenset(closed)


@frozen
class _Found:
    """The znodes found for a topic: its parent, those of its moving partitions, and unexpected ones."""

    parent: Znode | None
    moving: Mapping[TopicPartition, Znode | None]
    others: Sequence[str] | None
    """The paths of unexpected znodes, children before parents; None if we may not list them."""


def _find(context: ControllerContext, names: Sequence[str]) -> Rounds[dict[str, _Found]]:
    parents = [paths.topic_reassignments(name) for name in names]
    below = yield from descendants(parents)
    moving = {name: [tp for tp in context.partitions([name]) if tp in context.reassigning] for name in names}
    wanted = [paths.reassignment(tp) for tps in moving.values() for tp in tps]
    znodes = yield from read([*parents, *wanted])
    by_path = dict(zip([*parents, *wanted], znodes, strict=True))
    found = {}
    for name, parent, there in zip(names, parents, below, strict=True):
        ours = {tp: by_path[paths.reassignment(tp)] for tp in moving[name]}
        expected = {paths.reassignment(tp) for tp in ours}
        others = None if there is None else [path for path in there if path not in expected]
        found[name] = _Found(by_path[parent], ours, others)
    return found


def _mending(name: str, found: _Found) -> list[Op]:
    """Return the writes that correct a topic's znodes, in order of execution; none if we may not list them all."""
    if found.others is None:
        return []
    parent = paths.topic_reassignments(name)
    missing = [tp for tp, znode in found.moving.items() if znode is None]
    writes: list[Op] = [Delete(path) for path in found.others]
    if found.moving and found.parent is None:
        writes.append(Create(parent))
    elif not found.moving and found.parent is not None:
        writes.append(Delete(parent))
    writes += [Create(paths.reassignment(tp)) for tp in missing]
    if writes:
        log.info("znodes of reassignments corrected", topic=name, created=len(missing), removed=len(found.others))
    return writes


def _create_root() -> Rounds[bool]:
    """Create `/admin/reassignments` if it has been deleted; return whether it could be created."""
    [root] = yield from read([paths.REASSIGNMENTS])
    rejected = list[Step]()
    if root is None:
        yield from commit("identify", [Step(writes=(Create(paths.REASSIGNMENTS),))], on_rejected=rejected.extend)
    return not rejected


def _take_over(found: Iterable[tuple[TopicPartition, Znode | None]]) -> Rounds[None]:
    facts = [ReassignmentIdentified(tp, _identity(tp, znode)) for tp, znode in found if znode is not None]
    yield from apply("observed", [Step(facts=tuple(facts))] if facts else [])


def _identity(tp: TopicPartition, znode: Znode) -> ReassignmentIdentity:
    try:
        original = formats.decode_reassign_partitions(znode.data).get(tp, ()) if znode.data else ()
    except formats.UndecodableZnode:
        original = ()
    return ReassignmentIdentity(znode.stat.czxid, znode.stat.ctime_ms, original)
