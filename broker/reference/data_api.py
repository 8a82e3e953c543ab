"""Produce and Fetch, answered from the replicas that this broker leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Final

import trio
from attrs import frozen

from broker.config import BrokerConfig
from broker.reference.leadership import Leadership
from broker.reference.logs import size_of
from broker.reference.replica import CONSUMER, Replica, Watchers
from broker.replication_throttles import ReplicationThrottles
from broker.topic_configs import TopicConfigs
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ProduceRequest,
    ProduceResponse,
    Record,
)
from transport.metadata import TopicPartition
from transport.wire import Handlers

ACKS_ALL: Final = -1
ACKS_LEADER: Final = 1

_RECORD_OVERHEAD: Final = 16


@frozen(eq=False)
class DataApi:
    """The handlers of Produce and Fetch."""

    _config: BrokerConfig
    _topic_configs: TopicConfigs
    _throttles: ReplicationThrottles
    _replicas: Mapping[TopicPartition, Replica]
    """The table of the service, which changes as it runs."""

    _review: Callable[[Replica], None]
    """Called after an append or a follower's fetch that may change the high watermark or the ISR."""

    def handlers(self) -> Handlers:
        """Return the handlers of Produce and Fetch."""
        return {ProduceRequest: self.produce, FetchRequest: self.fetch}

    async def produce(self, request: ProduceRequest) -> ProduceResponse:
        """Append records, and with acks -1 wait until the whole ISR has them.

        Raises ApiError: NOT_ENOUGH_REPLICAS if the ISR was too small, so that nothing was appended;
        NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT or NOT_ENOUGH_REPLICAS_AFTER_APPEND if the records may be lost or
        kept.
        """
        _check(request)
        led = self._find(request.tp).leading()
        topic = await self._topic_configs.of_topic(request.topic, led.state.topic_id)
        _check_size(request, topic.max_message_bytes)
        # Reading the settings may have taken a while: look up the replica again.
        replica = self._find(request.tp)
        leadership = replica.leading()
        needed = topic.min_insync_replicas
        if request.acks == ACKS_ALL:
            _check_isr(leadership, needed, ErrorCode.NOT_ENOUGH_REPLICAS)
        try:
            base_offset = replica.append(request.values)
        except OSError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{replica.tp} cannot be written: {error}") from error
        self._review(replica)
        if request.acks == ACKS_ALL:
            end_offset = base_offset + len(request.values)
            await self._committed(replica, leadership, end_offset, request.timeout_ms)
            _check_isr(leadership, needed, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return ProduceResponse(base_offset)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Read partitions. A follower's fetch also reports its progress.

        An empty response waits for records. An error of one partition is reported for that partition only.
        """
        if request.replica_id != CONSUMER:
            self._note_fetches(request)
        if not self._has_news(request):
            with trio.move_on_after(max(0, request.max_wait_ms) / 1000):
                await self._news(request)
        return FetchResponse(tuple(self._read_all(request)))

    def _find(self, tp: TopicPartition) -> Replica:
        replica = self._replicas.get(tp)
        if replica is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this broker has no replica of {tp}")
        return replica

    async def _committed(self, replica: Replica, leadership: Leadership, end_offset: int, wait_ms: int) -> None:
        """Wait until the records before `end_offset` are committed under the leadership that appended them."""
        with trio.move_on_after(wait_ms / 1000) as waiting:
            while replica.leadership is leadership and replica.high_watermark < end_offset:
                await _change([replica.commit_watchers])
        if replica.leadership is not leadership:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the leader of {replica.tp} changed")
        if waiting.cancelled_caught:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"not all of the ISR had it within {wait_ms} ms")

    def _note_fetches(self, request: FetchRequest) -> None:
        now = trio.current_time()
        for partition in request.partitions:
            try:
                replica = self._find(partition.tp)
                is_news = replica.note_fetch(request.replica_id, partition, now)
            except ApiError:
                continue  # the read reports it
            if is_news:
                self._review(replica)

    def _read_all(self, request: FetchRequest) -> list[FetchResult]:
        results = []
        budget, now = self._config.fetch_max_bytes, trio.current_time()
        for partition in request.partitions:
            if self._is_known(request.replica_id, partition):
                continue
            is_throttled = self._is_throttled(request.replica_id, self._at(partition))
            room = self._throttles.leader.room(now) if is_throttled else budget
            result = self._read(request.replica_id, partition, min(partition.max_bytes, budget, room))
            budget -= sum(map(_size, result.records))
            if is_throttled:
                self._throttles.leader.record(size_of(result.records), now)
            results.append(result)
        return results

    def _is_known(self, reader: int, partition: FetchPartition) -> bool:
        """Return whether the reader, by its own account, is up to date."""
        replica = self._at(partition)
        if replica is None or replica.high_watermark != partition.high_watermark:
            return False
        return not self._has_news_of(reader, replica, partition)

    def _read(self, reader: int, partition: FetchPartition, max_bytes: int) -> FetchResult:
        try:
            replica = self._find(partition.tp)
            return replica.read(reader, partition, max_bytes)
        except ApiError as error:
            return FetchResult(*partition.tp, error.code)
        except OSError:
            return FetchResult(*partition.tp, ErrorCode.KAFKA_STORAGE_ERROR)

    def _at(self, partition: FetchPartition) -> Replica | None:
        return self._replicas.get(partition.tp)

    def _has_news(self, request: FetchRequest) -> bool:
        for partition in request.partitions:
            replica = self._at(partition)
            if replica is None or self._has_news_of(request.replica_id, replica, partition):
                return True
        return False

    def _has_news_of(self, reader: int, replica: Replica, partition: FetchPartition) -> bool:
        withheld = self._is_throttled(reader, replica) and not self._throttles.leader.room(trio.current_time())
        return replica.has_news(reader, partition, withheld=withheld)

    def _is_throttled(self, reader: int, replica: Replica | None) -> bool:
        """Return whether a reader's fetches of a replica are throttled; those of ISR members never are (KIP-542)."""
        if reader == CONSUMER or replica is None or replica.leadership is None:
            return False
        return self._throttles.throttles_leader(replica.tp) and reader not in replica.leadership.state.isr

    async def _news(self, request: FetchRequest) -> None:
        """Wait until there is something to read, given that there is nothing now."""
        while True:
            replicas = [replica for replica in map(self._at, request.partitions) if replica is not None]
            is_throttled = any(self._is_throttled(request.replica_id, replica) for replica in replicas)
            pause = self._throttles.leader.pause(trio.current_time()) if is_throttled else 0
            with trio.move_on_after(pause) if pause else nullcontext():
                await _change([replica.watchers(request.replica_id) for replica in replicas])
            if self._has_news(request):
                return


def _check(request: ProduceRequest) -> None:
    if request.acks not in (ACKS_ALL, ACKS_LEADER) or not request.values or request.timeout_ms < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, "acks must be -1 or 1, with at least one value and a timeout")


def _check_size(request: ProduceRequest, limit: int) -> None:
    largest = max(map(len, request.values))
    if largest > limit:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a record of {largest} bytes exceeds the limit of {limit}")


def _check_isr(leadership: Leadership, needed: int, code: ErrorCode) -> None:
    in_sync = len(leadership.state.isr)
    if in_sync < needed:
        raise ApiError(code, f"{in_sync} replicas are in sync, min.insync.replicas is {needed}")


async def _change(watchers: list[Watchers]) -> None:
    event = trio.Event()
    for some in watchers:
        some.add(event)
    try:
        await event.wait()
    finally:
        for some in watchers:
            some.remove(event)


def _size(record: Record) -> int:
    return _RECORD_OVERHEAD + len(record.value)
