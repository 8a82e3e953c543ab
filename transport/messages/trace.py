"""The controller's commit trace: our own, which Kafka has not."""

from __future__ import annotations

from attrs import frozen

from transport.messages.common import PartitionState, Request


@frozen
class TracedCommit:
    """One commit of the controller, or the state it loaded (`round` "loaded") when it took office.

    `zxid` is that of the multi; for a loaded state, that of the partition's last change. `partitions` are the
    partitions that the commit changed, as they are after it. `event_id` is that of the event which caused it, as in the
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


@frozen
class CommitTraceResponse:
    """Commits from the one asked for on, oldest first; `next_sequence` is what to ask for next."""

    next_sequence: int
    commits: tuple[TracedCommit, ...]


@frozen
class CommitTraceRequest(Request[CommitTraceResponse]):
    """Ask a controller for its commits from `sequence` on; waits `max_wait_ms` for one.

    The trace is bounded: what was dropped is missing, and `TracedCommit.sequence` shows the gap.
    """

    sequence: int
    max_wait_ms: int
