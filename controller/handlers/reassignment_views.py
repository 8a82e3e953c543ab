"""Reassignments as administrators see them (KIP-240), from the context alone.

Throttles, and what follows from the brokers' logs (sizes, rate, time left), are added to the descriptions afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from controller.model.context import ControllerContext
from controller.progress.report import waits_for
from controller.progress.tracker import MoveTracker, moves_of
from transport.errors import ErrorCode
from transport.messages import (
    UNTHROTTLED,
    DescribeReassignmentsResponse,
    ListReassignmentsResponse,
    PartitionError,
    ReassignmentDescription,
    ReassignmentKey,
    ReplicaProgress,
)
from transport.metadata import NEVER_LED, TopicPartition


def list_reassignments(
    context: ControllerContext, wanted: Iterable[TopicPartition] | None
) -> ListReassignmentsResponse:
    """List the reassignments in progress, all or those of the partitions named, with an error for each unknown one."""
    tps = sorted(context.reassigning if wanted is None else dict.fromkeys(wanted))
    unknown = [tp for tp in tps if not context.assignment(tp).replicas or tp.topic in context.deletions]
    return ListReassignmentsResponse(
        tuple(_key(context, tp) for tp in tps if tp in context.reassigning), tuple(map(_unknown, unknown))
    )


def _key(context: ControllerContext, tp: TopicPartition) -> ReassignmentKey:
    return ReassignmentKey(tp.topic, tp.partition, context.reassigning[tp].czxid)


def _going_on(context: ControllerContext, key: ReassignmentKey) -> TopicPartition | None:
    tp = TopicPartition(key.topic, key.partition)
    return tp if tp in context.reassigning and _key(context, tp) == key else None


def _unknown(tp: TopicPartition) -> PartitionError:
    text = f"there is no partition {tp}, or its topic is being deleted: see `klamm topic list`"
    return PartitionError(*tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)


def describe_reassignments(
    context: ControllerContext, wanted: Sequence[ReassignmentKey] | None
) -> DescribeReassignmentsResponse:
    """Describe the reassignments in progress, all or those that the keys name.

    A completed reassignment is left out, even if its partition is being reassigned again.
    """
    tps = sorted(context.reassigning) if wanted is None else [_going_on(context, key) for key in dict.fromkeys(wanted)]
    moving = [tp for tp in tps if tp is not None]
    known = MoveTracker()
    known.follow(moves_of(context, moving), now=0.0)
    described = [describe_move(context, tp) for tp in moving]
    return DescribeReassignmentsResponse(
        tuple(replace(each, waits_for=waits_for(each, known.copies(each.tp, now=0.0))) for each in described)
    )


def describe_move(context: ControllerContext, tp: TopicPartition) -> ReassignmentDescription:
    """Describe the reassignment of a partition that is being reassigned."""
    assignment, identity = context.assignment(tp), context.reassigning[tp]
    led = context.leadership.get(tp, NEVER_LED)
    return ReassignmentDescription(
        tp.topic,
        tp.partition,
        identity.czxid,
        identity.start_time_ms,
        leader=led.leader,
        leader_throttle=UNTHROTTLED,
        replicas=assignment.replicas,
        adding_replicas=assignment.adding_replicas,
        removing_replicas=assignment.removing_replicas,
        isr=led.isr,
        new_replicas=assignment.target_replicas,
        progress=tuple(ReplicaProgress(r, in_sync=r in led.isr) for r in assignment.target_replicas),
    )
