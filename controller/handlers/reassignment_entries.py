"""The entries of `/admin/reassign_partitions`, each the target of a partition's move."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from attrs import frozen

from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, Step, commit, read, until_none_is_left
from transport.errors import ErrorCode, Fault
from transport.log import get_logger
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import FORBIDDEN
from transport.store.requests import weight_of

log = get_logger(__name__)


def is_done(context: ControllerContext, tp: TopicPartition, target: Sequence[int]) -> bool:
    """Return whether a partition has exactly these replicas, in this order, and is not being reassigned."""
    assignment = context.assignment(tp)
    return not assignment.is_being_reassigned and assignment.replicas == tuple(target)


@frozen
class Kept:
    """Finished entries that stay in the store, and would be begun again by the next controller."""

    fault: Fault
    """Why they stay, in the answer to a request that depends on their removal."""

    entries: Collection[TopicPartition] | None = ()
    """None if the list cannot even be read: it may name any partition."""

    @property
    def is_closed(self) -> bool:
        """Whether an ACL keeps them; a list that is too large becomes smaller when the other moves are done."""
        return self.fault == _CLOSED

    def faults(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Fault]:
        """Return the fault of each of these partitions that may have an entry."""
        code, reason = self.fault
        may_stay = [tp for tp in tps if self.entries is None or tp in self.entries]
        return {tp: (code, f"{tp} stands in {paths.REASSIGN_PARTITIONS}, which {reason}") for tp in may_stay}


_TOO_LARGE: Final = ErrorCode.INVALID_REQUEST, "is too large to be rewritten: wait until some of the moves are done"
_CLOSED: Final = (
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    "cannot be read or written: see the controller's log, and give the controller access to it",
)


def withdraw(context: ControllerContext, tps: Collection[TopicPartition]) -> Rounds[dict[TopicPartition, Fault]]:
    """Remove the entries of partitions that get another target; return why those that keep theirs cannot get one."""
    if not tps:
        return {}
    kept = yield from rewrite(context, lambda tp, _: tp in tps)
    return kept.faults(tps)


def rewrite(context: ControllerContext, is_over: Callable[[TopicPartition, tuple[int, ...]], bool]) -> Rounds[Kept]:
    """Remove finished entries from `/admin/reassign_partitions`, retrying if the znode was rewritten concurrently.

    Return the finished entries that stay: others may write a larger znode than we can, or close it to us.
    """
    kept = Kept(_TOO_LARGE)

    def rewrite(pending: list[str]) -> Rounds[list[str]]:
        nonlocal kept
        kept = Kept(_TOO_LARGE)
        [znode] = yield from read(pending)
        if znode is None:
            return []
        if znode == FORBIDDEN:
            kept = Kept(_CLOSED, None)
            log.error("requests to move stay in the store: an ACL keeps us from reading them")
            return []
        try:
            entries = formats.decode_reassign_partitions(znode.data)
        except formats.UndecodableZnode:
            entries = {}
        left = {tp: replicas for tp, replicas in entries.items() if not is_over(tp, replicas)}
        # An empty list is deleted even so: while the znode exists, Kafka's tools take a reassignment to be in progress.
        if len(left) == len(entries) and entries:
            return []
        finished = [tp for tp in entries if tp not in left]
        write = formats.requests_write(left, znode.stat.version)
        if weight_of([write]) > context.config.request_limits.group:
            kept = Kept(_TOO_LARGE, finished)
            log.warning("finished requests stay in the list: the rest is too large to be written", left=len(left))
            return []

        def stay(rejected: Sequence[Step]) -> None:
            nonlocal kept
            kept = Kept(_CLOSED, finished)
            text = "finished requests stay in the list, which cannot be written: their partitions are not moved again"
            log.error(text, finished=len(finished), writes=len(rejected))

        refused = yield from commit("B7", [Step(writes=(write,))], on_rejected=stay)
        return pending if refused else []

    yield from until_none_is_left("B7", [paths.REASSIGN_PARTITIONS], rewrite)
    return kept
