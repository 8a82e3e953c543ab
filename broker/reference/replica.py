"""A replica on this broker: its log, its high watermark, and its role as leader or follower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio

from broker.reference.leadership import Leadership
from broker.reference.logs import ReplicaLog
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.messages import FetchPartition, FetchResult, PartitionState, Record
from transport.metadata import NO_EPOCH, TopicPartition

CONSUMER: Final = -1
"""The replica id in fetches of consumers."""

_log = get_logger(__name__)


class Watchers:
    """The tasks that wait for a change of one kind."""

    def __init__(self) -> None:
        self._events: dict[trio.Event, None] = {}

    def add(self, event: trio.Event) -> None:
        """Set `event` at the next change."""
        self._events[event] = None

    def remove(self, event: trio.Event) -> None:
        """Remove an event that nobody waits for any more."""
        self._events.pop(event, None)

    def wake(self) -> None:
        """Set all events after a change."""
        events, self._events = self._events, {}
        for event in events:
            event.set()


class Replica:
    """A log and its state. The replica follows unless `leadership` is set.

    The high watermark is not stored on disk. That of a new leader may be too low, or 0 after a restart, until its
    followers have fetched. This is safe: followers truncate by leader epoch instead, and to join the ISR a replica also
    needs the leader's log up to the start of its epoch.
    """

    def __init__(self, tp: TopicPartition, log: ReplicaLog, state: PartitionState) -> None:
        self.tp = tp
        self.log = log
        self.state = state
        self.high_watermark = 0
        self.committed_at_leader = 0
        """The leader's high watermark in the latest response to a follower, whose log may not reach it yet."""

        self.leadership: Leadership | None = None
        self.end_watchers = Watchers()
        """The tasks that wait for a change of the log end, or of the role."""

        self.commit_watchers = Watchers()
        """The tasks that wait for a change of the high watermark, or of the role."""

    # --- roles --------------------------------------------------------------------------------------------------

    def lead(self, state: PartitionState, begin: Callable[[int], Leadership], now: float) -> None:
        """Lead, or continue to lead; `begin` returns a new leadership that starts at a log end."""
        if self.leadership is None:
            self.leadership = begin(self.log.end_offset)
        else:
            self.leadership.renew(state, self.log.end_offset, now)
        self.state = state
        self._wake_all()

    def follow(self, state: PartitionState) -> None:
        """Follow `state.leader`, or nobody if it is negative."""
        self.leadership = None
        self.state = state
        self._wake_all()

    def close(self) -> None:
        """Neither lead nor follow, and close the log."""
        self.leadership = None
        self.log.close()
        self._wake_all()

    def _wake_all(self) -> None:
        self.end_watchers.wake()
        self.commit_watchers.wake()

    # --- as leader ----------------------------------------------------------------------------------------------

    def leading(self) -> Leadership:
        """Return the leadership. Raises ApiError with NOT_LEADER_OR_FOLLOWER if there is none."""
        if self.leadership is None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the leader of {self.tp} is broker {self.state.leader}")
        return self.leadership

    def append(self, values: Sequence[bytes]) -> int:
        """Append a producer's records, and return the offset of the first. Raises ApiError or OSError."""
        epoch, latest = self.leading().state.leader_epoch, self.log.latest_epoch
        # Somebody has damaged the partition's state: epochs began anew, while the log kept its records.
        if epoch < latest:
            text = f"{self.tp} has records of leader epoch {latest}, and its leader has epoch {epoch}: elect again"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        base_offset = self.log.append([Record(epoch, value) for value in values])
        self.end_watchers.wake()
        return base_offset

    def advance(self, now: float) -> None:
        """Raise the high watermark as far as the followers' progress allows."""
        if self.leadership is None:
            return
        raised = self.leadership.high_watermark(self.high_watermark, self.log.end_offset, now)
        if raised > self.high_watermark:
            self.high_watermark = raised
            self.commit_watchers.wake()

    def note_fetch(self, follower: int, partition: FetchPartition, now: float) -> bool:
        """Record a follower's progress if its log agrees with ours. Raises ApiError.

        Return whether the high watermark or the ISR may have to change. They need not if everything is committed and an
        ISR member fetches again from the same offset.
        """
        leadership, log_end = self._admit(follower, partition), self.log.end_offset
        if self._divergence(partition) is not None or partition.fetch_offset > log_end:
            return False
        is_news = leadership.record_fetch(follower, partition.fetch_offset, log_end, now)
        return is_news or self.high_watermark < log_end

    def watchers(self, reader: int) -> Watchers:
        """Return the watchers of the change that this reader waits for when there is nothing to read."""
        return self.commit_watchers if reader == CONSUMER else self.end_watchers

    def has_news(self, reader: int, partition: FetchPartition, *, withheld: bool = False) -> bool:
        """Return whether `read` has an answer: records unless `withheld`, a divergence of the logs, or an error."""
        try:
            self._admit(reader, partition)
        except ApiError:
            return True
        log_end = self.log.end_offset
        end = 0 if withheld else self.high_watermark if reader == CONSUMER else log_end
        is_beyond = partition.fetch_offset > log_end
        return is_beyond or partition.fetch_offset < end or self._divergence(partition) is not None

    def read(self, reader: int, partition: FetchPartition, max_bytes: int) -> FetchResult:
        """Return records up to the log end for a follower, or up to the high watermark for a consumer.

        Raises ApiError: INCONSISTENT_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH or
        OFFSET_OUT_OF_RANGE.
        """
        self._admit(reader, partition)
        diverging = self._divergence(partition)
        # The follower truncates first: it gets no records until its log is a prefix of ours.
        if diverging is not None:
            return FetchResult(*self.tp, ErrorCode.NONE, self.high_watermark, (), *diverging)
        if not 0 <= partition.fetch_offset <= self.log.end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.tp} has offsets up to {self.log.end_offset}")
        end = self.high_watermark if reader == CONSUMER else self.log.end_offset
        is_read = max_bytes > 0 and partition.fetch_offset < end
        records = self.log.read(partition.fetch_offset, max_bytes, end) if is_read else ()
        return FetchResult(*self.tp, ErrorCode.NONE, self.high_watermark, records)

    def _admit(self, reader: int, partition: FetchPartition) -> Leadership:
        state = self.state
        if partition.topic_id not in ("", state.topic_id):
            message = f"{self.tp} is of {state.topic_id}, not of {partition.topic_id}"
            raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID, message)
        leadership = self.leading()
        asked, ours = partition.current_leader_epoch, state.leader_epoch
        # A reader with an older epoch must learn of the new leadership; one with a newer epoch shows that we must.
        if asked != NO_EPOCH and asked < ours:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {ours}, no longer {asked}")
        if asked > ours:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"the leader epoch is still {ours}, not yet {asked}")
        if reader != CONSUMER and not leadership.knows(reader):
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {reader} has no replica of {self.tp}")
        return leadership

    def _divergence(self, partition: FetchPartition) -> tuple[int, int] | None:
        """Return where the reader's log diverges from ours, as an epoch and its end (KIP-595); None if it does not."""
        theirs, log = partition.last_fetched_epoch, self.log
        # A log that is empty, or of our latest epoch and no longer than ours, is a prefix of ours.
        if theirs == NO_EPOCH or (theirs == log.latest_epoch and partition.fetch_offset <= log.end_offset):
            return None
        epoch, end = log.end_offset_for_epoch(theirs)
        if epoch == theirs and end >= partition.fetch_offset:
            return None
        return epoch, end

    # --- as follower --------------------------------------------------------------------------------------------

    @property
    def lag(self) -> int:
        """The number of committed records that this replica lacks, as far as it knows."""
        return 0 if self.leadership is not None else max(0, self.committed_at_leader - self.log.end_offset)

    def next_fetch(self, max_bytes: int) -> FetchPartition:
        """Return the follower's next request to its leader."""
        log, state = self.log, self.state
        epochs = state.leader_epoch, log.latest_epoch
        return FetchPartition(*self.tp, log.end_offset, max_bytes, *epochs, state.topic_id, self.high_watermark)

    def take(self, asked: FetchPartition, result: FetchResult) -> None:
        """Apply the leader's response, unless it is stale. Raises OSError, or ValueError for an impossible response."""
        # The replica has another role, epoch or log end than when it asked.
        is_stale = asked.current_leader_epoch != self.state.leader_epoch or asked.fetch_offset != self.log.end_offset
        if self.leadership is not None or is_stale:
            return
        if result.diverging_epoch != NO_EPOCH:
            self._truncate(result)
            return
        if result.records:
            self.log.append(result.records)
        self.committed_at_leader = result.high_watermark
        self.high_watermark = max(self.high_watermark, min(result.high_watermark, self.log.end_offset))

    def _truncate(self, result: FetchResult) -> None:
        if result.diverging_end_offset < 0:
            raise ValueError(f"the logs cannot diverge at offset {result.diverging_end_offset}")
        _, own_end = self.log.end_offset_for_epoch(result.diverging_epoch)
        # The logs agree up to the end of that epoch in the shorter of them.
        end_offset = min(own_end, result.diverging_end_offset)
        # Below the high watermark, records that were once committed are lost (an unclean election).
        report = _log.warning if end_offset < self.high_watermark else _log.info
        report("truncated", partition=str(self.tp), log_end=self.log.end_offset, end_offset=end_offset)
        self.log.truncate(end_offset)
        self.high_watermark = min(self.high_watermark, end_offset)
