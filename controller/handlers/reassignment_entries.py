"""The entries of `/admin/reassign_partitions`, each the target of a partition's move."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, Step, commit, read, unanswered_rejections, until_none_is_left
from transport.log import get_logger
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.requests import weight_of

log = get_logger(__name__)


def is_done(context: ControllerContext, tp: TopicPartition, target: Sequence[int]) -> bool:
    """Return whether a partition has exactly these replicas, in this order, and is not being reassigned."""
    assignment = context.assignment(tp)
    return not assignment.is_being_reassigned and assignment.replicas == tuple(target)


def rewrite(
    context: ControllerContext, is_over: Callable[[TopicPartition, tuple[int, ...]], bool]
) -> Rounds[list[TopicPartition]]:
    """Remove finished entries from `/admin/reassign_partitions`, retrying if the znode was rewritten concurrently.

    Others may write a larger znode than we can. Return finished entries that stay because the rest is too large.
    """
    kept: list[TopicPartition] = []

    def rewrite(pending: list[str]) -> Rounds[list[str]]:
        [znode] = yield from read(pending)
        if znode is None:
            return []
        try:
            entries = formats.decode_reassign_partitions(znode.data)
        except formats.UndecodableZnode:
            entries = {}
        left = {tp: replicas for tp, replicas in entries.items() if not is_over(tp, replicas)}
        # An empty list is deleted even so: while the znode exists, Kafka's tools take a reassignment to be in progress.
        if len(left) == len(entries) and entries:
            return []
        write = formats.requests_write(left, znode.stat.version)
        if weight_of([write]) > context.config.request_limits.group:
            kept.extend(tp for tp in entries if tp not in left)
            log.warning("finished requests stay in the list: the rest is too large to be written", left=len(left))
            return []
        refused = yield from commit("B7", [Step(writes=(write,))], on_rejected=unanswered_rejections)
        return pending if refused else []

    yield from until_none_is_left("B7", [paths.REASSIGN_PARTITIONS], rewrite)
    return kept
