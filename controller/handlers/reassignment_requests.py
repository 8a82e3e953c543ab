"""Reassignment requests of administrators, through `/admin/reassign_partitions` or the admin API."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from controller.handlers import leadership, reassignment_entries, reassignments, rollout_overrides
from controller.model import registrations
from controller.model.choosing import decide_all
from controller.model.context import ControllerContext
from controller.model.faults import move_fault, outgrown
from controller.model.reassignment import UNIDENTIFIED
from controller.model.rounds import Rounds, read
from transport.errors import ErrorCode, Fault
from transport.log import get_logger
from transport.messages import (
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    PartitionError,
    ReassignablePartition,
)
from transport.metadata import NEVER_LED, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import FORBIDDEN

log = get_logger(__name__)


def requested_in_store(context: ControllerContext) -> Rounds[reassignments.Targets]:
    """Process `/admin/reassign_partitions`: refuse and remove invalid entries, begin the rest and return them.

    Entries already in progress are skipped without validation, even if their adding replicas are dead, so that reading
    the znode again is harmless.
    """
    [znode] = yield from read([paths.REASSIGN_PARTITIONS], watch=True)
    if znode is None:
        return {}
    if znode == FORBIDDEN:
        log.error("requests to move wait: an ACL keeps us from reading them", path=paths.REASSIGN_PARTITIONS)
        return {}
    try:
        entries = formats.decode_reassign_partitions(znode.data)
    except formats.UndecodableZnode as error:
        log.error("reassignment requests removed: they cannot be decoded", fault=str(error))
        entries = {}
    yield from leadership.read_again(context, entries)
    # A topic that an ACL hides from us may have the partition: its entry waits.
    hidden = context.closed_topics.keys() - context.topics.keys()
    new = {tp: target for tp, target in entries.items() if tp.topic not in hidden and _is_new(context, tp, target)}
    faults = {tp: fault for tp, target in new.items() if (fault := refusal(context, tp, target)) is not None}
    faults |= _outgrown(context, {tp: target for tp, target in new.items() if tp not in faults})
    for tp, (_, text) in faults.items():
        log.warning("reassignment refused", partition=str(tp), reason=text)
    yield from reassignment_entries.rewrite(
        context,
        lambda tp, target: (
            entries.get(tp) == target and (tp in faults or reassignment_entries.is_done(context, tp, target))
        ),
    )
    accepted = {tp: target for tp, target in new.items() if tp not in faults}
    held = yield from rollout_overrides.take_out(context, accepted)
    for tp, (_, text) in held.items():
        log.error("a request to move waits for the next one", partition=str(tp), reason=text)
    accepted = {tp: target for tp, target in accepted.items() if tp not in held}
    yield from reassignments.begin(context, accepted)
    return accepted


def _is_new(context: ControllerContext, tp: TopicPartition, target: tuple[int, ...]) -> bool:
    """Return whether a partition neither has `target` nor is being moved to it."""
    assignment = context.assignment(tp)
    return tp.topic in context.deletions or not assignment.replicas or assignment.target_replicas != target


def refusal(context: ControllerContext, tp: TopicPartition, target: Sequence[int]) -> Fault | None:
    """Return why a partition cannot be moved to `target`, None if it can."""
    current = context.assignment(tp)
    fault = move_fault(tp, current, target, context.able_brokers(), is_being_deleted=tp.topic in context.deletions)
    if fault is None and registrations.is_held(context, tp):
        text = "the registration of the leader cannot be used, so it cannot be sent the move: repair it first"
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    if fault is None and not reassignments.leaves_a_leader(context, tp, target):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no live member of the ISR would be left to lead"
    return fault


def _outgrown(context: ControllerContext, targets: reassignments.Targets) -> dict[TopicPartition, Fault]:
    topics = {tp.topic: context.topics[tp.topic].znode for tp in targets}
    return outgrown(topics, targets, context.config.request_limits)


def requested_by_api(
    context: ControllerContext, partitions: Sequence[ReassignablePartition]
) -> Rounds[AlterPartitionReassignmentsResponse]:
    """Begin, override or cancel reassignments; the answer says what was begun.

    A request overrides the entries of its partitions in `/admin/reassign_partitions`, which are removed.
    """
    yield from leadership.read_again(context, [item.tp for item in partitions])
    wanted = {item.tp: item.replicas for item in partitions}
    kinds = [_kind(context, tp, replicas) for tp, replicas in wanted.items()]
    verdicts = decide_all(context, list(wanted), lambda tp: _judge(context, tp, wanted[tp]), kinds)
    targets = {tp: target for tp, (target, fault) in zip(wanted, verdicts, strict=True) if fault is None}
    faults = {tp: fault for tp, (_, fault) in zip(wanted, verdicts, strict=True) if fault is not None}
    faults |= _outgrown(context, targets)
    targets = {tp: target for tp, target in targets.items() if tp not in faults}
    # An entry that stays would move its partition elsewhere after a failover.
    faults |= yield from reassignment_entries.withdraw(context, targets)
    targets = {tp: target for tp, target in targets.items() if tp not in faults}
    new = {tp: target for tp, target in targets.items() if _is_new(context, tp, target)}
    faults |= yield from rollout_overrides.take_out(context, new)
    yield from reassignments.begin(context, {tp: target for tp, target in new.items() if tp not in faults})
    outcomes = [
        PartitionError(*tp, *faults[tp]) if tp in faults else _outcome(context, tp, targets[tp]) for tp in wanted
    ]
    return AlterPartitionReassignmentsResponse(tuple(outcomes))


def _kind(context: ControllerContext, tp: TopicPartition, replicas: tuple[int, ...] | None) -> Hashable:
    """Return what judges requests alike; those are unlike all others that are about a partition's own past or name."""
    current = context.assignment(tp)
    is_moved = replicas is not None and current.replicas and tp.topic not in context.deletions
    return (current, replicas) if is_moved else tp


def _outcome(context: ControllerContext, tp: TopicPartition, target: tuple[int, ...]) -> PartitionError:
    if _is_new(context, tp, target):
        fault = refusal(context, tp, target)
        if fault is not None:
            return PartitionError(*tp, *fault)
        text = f"{tp} was deleted meanwhile, or its znodes cannot be read or written: see the controller's log"
        return PartitionError(*tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return PartitionError(*tp)


def _original(context: ControllerContext, tp: TopicPartition) -> tuple[int, ...]:
    """Return the replicas that a partition had before its move, in their original order if that is known."""
    current, original = context.assignment(tp), context.reassigning.get(tp, UNIDENTIFIED).original
    return original if original and set(original) <= set(current.replicas) else current.origin_replicas


def _judge(
    context: ControllerContext, tp: TopicPartition, replicas: tuple[int, ...] | None
) -> tuple[tuple[int, ...], Fault | None]:
    """Return the target that a request means, and why it is refused, None if it is not."""
    if replicas is None and not context.assignment(tp).is_being_reassigned:
        text = f"{tp} is not being reassigned: there is nothing to cancel"
        return (), (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, text)
    target = _original(context, tp) if replicas is None else replicas
    return target, refusal(context, tp, target)


def list_ongoing(
    context: ControllerContext, wanted: Sequence[TopicPartition] | None
) -> ListPartitionReassignmentsResponse:
    """List the reassignments in progress; partitions that are unknown or not being reassigned are left out."""
    tps = context.reassigning if wanted is None else [tp for tp in wanted if tp in context.reassigning]
    return ListPartitionReassignmentsResponse(
        tuple(
            OngoingReassignment.of(tp, context.assignment(tp), context.leadership.get(tp, NEVER_LED))
            for tp in sorted(tps)
        )
    )
