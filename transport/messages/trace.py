"""The messages of the controller's commit trace, an api of our own."""

from __future__ import annotations

from transport.messages.common import Message, PartitionState, Request


class TracedCommit(Message, frozen=True):
    """A commit of the controller, or the state that it loaded (`round` "loaded") when it took office.

    `zxid` is that of the multi or, for a loaded state, that of the partition's last change. `partitions` has the
    changed partitions as they are after the commit. `event_id` identifies the event that caused it, as in the
    controller's log.
    """

    sequence: int
    controller_id: int
    controller_epoch: int
    event: str
    round: str
    zxid: int
    topic_versions: tuple[tuple[str, int], ...]
    partitions: tuple[PartitionState, ...]
    event_id: str = ""


class CommitTraceResponse(Message, frozen=True):
    """Commits from the requested sequence number on, oldest first. `next_sequence` continues the trace."""

    next_sequence: int
    commits: tuple[TracedCommit, ...]


class CommitTraceRequest(Request[CommitTraceResponse], frozen=True):
    """Ask a controller for its commits from `sequence` on; the response waits up to `max_wait_ms` for one.

    The trace is bounded. A gap in `TracedCommit.sequence` shows that commits were dropped.
    """

    sequence: int
    max_wait_ms: int
