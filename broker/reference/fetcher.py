"""The copying of partitions from one leader."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import trio
from attrs import define

from actors import Backoff
from broker.kit import BrokerHandle
from broker.reference.logs import size_of
from broker.reference.replica import Replica
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.messages import BrokerEndpoint, FetchPartition, FetchRequest, FetchResult
from transport.metadata import TopicPartition
from transport.wire import Connection, WireError, open_connection

MAX_BACKOFF_SECONDS: Final = 2.0

_log = get_logger(__name__)


@define(eq=False)
class _Followed:
    replica: Replica
    not_before: float = 0.0


class Fetcher:
    """Copies all partitions that this broker follows one leader in, with one request in flight for all of them.

    A partition that is added, or gets a new leader epoch, is not in the request in flight. That request is abandoned
    with its connection, so that the partition need not wait for the end of a long poll. This is rare, and reconnecting
    is cheap.
    """

    def __init__(self, handle: BrokerHandle, leader_id: int) -> None:
        self._handle = handle
        self._leader_id = leader_id
        self._followed: dict[TopicPartition, _Followed] = {}
        self._session = trio.CancelScope()
        self._backoff = Backoff(maximum=MAX_BACKOFF_SECONDS, jitter=handle.host.rng.random)
        self._endpoint: BrokerEndpoint | None = None
        self._patience = handle.config.replica_socket_timeout_ms / 1000

    def follow(self, replica: Replica) -> None:
        """Start to copy a partition, from the end of its log."""
        self._followed[replica.tp] = _Followed(replica)
        self._session.cancel()

    def forget(self, tp: TopicPartition) -> None:
        """Stop copying a partition. A response that arrives later is not applied to it."""
        self._followed.pop(tp, None)

    def metadata_changed(self) -> None:
        """Reconnect if the leader has a new address."""
        if self._handle.metadata.broker(self._leader_id) != self._endpoint:
            self._session.cancel()

    async def run(self) -> None:
        """Fetch until cancelled. An unavailable leader is retried with back-off."""
        while True:
            with self._session:
                if not self._followed:
                    await trio.sleep_forever()
                await self._fetch_or_back_off()
            self._session = trio.CancelScope()

    async def _fetch_or_back_off(self) -> None:
        try:
            await self._fetch_all()
        except (WireError, ApiError) as error:
            _log.info("cannot fetch", broker_id=self._handle.broker_id, leader=self._leader_id, reason=str(error))
            await trio.sleep(self._backoff.next())

    async def _fetch_all(self) -> None:
        """Fetch over one connection while there are partitions to follow."""
        self._endpoint = endpoint = self._handle.metadata.broker(self._leader_id)
        if endpoint is None:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, "its address is not known yet")
        client_id = f"broker-{self._handle.broker_id}-fetcher"
        opening = partial(open_connection, client_id=client_id, connect_timeout=self._patience)
        async with opening(self._handle.network, endpoint.host, endpoint.port) as connection:
            while self._followed:
                await self._fetch_once(connection)
                self._backoff.reset()

    async def _fetch_once(self, connection: Connection) -> None:
        config = self._handle.config
        now = trio.current_time()
        quota = self._handle.throttles.follower
        throttled = [tp for tp, followed in self._followed.items() if self._is_throttled(followed.replica)]
        # A partition is due after its back-off and, if it is throttled, when there is quota.
        starts = {tp: followed.not_before for tp, followed in self._followed.items()}
        starts |= {tp: max(starts[tp], now + quota.pause(now)) for tp in throttled}
        due = [followed for tp, followed in self._followed.items() if starts[tp] <= now]
        pauses = [start - now for start in starts.values() if start > now]
        if not due:
            await trio.sleep(min(pauses))
            return
        # The response must not wait for records longer than until the next partition is due.
        waits_ms = [math.ceil(1000 * pause) for pause in pauses]
        wait_ms = min([config.replica_fetch_wait_max_ms, *waits_ms])
        # Throttled partitions share the quota evenly.
        limit = config.replica_fetch_max_bytes
        share = max(1, quota.room(now) // max(1, len(throttled)))
        limits = dict.fromkeys(throttled, min(limit, share))
        asked = [followed.replica.next_fetch(limits.get(followed.replica.tp, limit)) for followed in due]
        request = FetchRequest(config.broker_id, wait_ms, tuple(asked))
        response = await connection.call(request, timeout=wait_ms / 1000 + self._patience)
        answers = {result.tp: result for result in response.partitions}
        for tp in throttled:
            if tp in answers:
                quota.record(size_of(answers[tp].records), trio.current_time())
        for followed, question in zip(due, asked, strict=True):
            tp = followed.replica.tp
            # The partition may have been dropped meanwhile, or dropped and followed again.
            if tp in answers and self._followed.get(tp) is followed:
                self._take(followed, question, answers[tp])

    def _is_throttled(self, replica: Replica) -> bool:
        """Return whether a replica is throttled; ISR members never are (KIP-542)."""
        if not self._handle.throttles.throttles_follower(replica.tp):
            return False
        latest = self._handle.metadata.partition(replica.tp)
        state = replica.state if latest is None or latest.topic_id != replica.state.topic_id else latest
        return self._handle.broker_id not in state.isr

    def _take(self, followed: _Followed, asked: FetchPartition, result: FetchResult) -> None:
        tp = followed.replica.tp
        if result.error is not ErrorCode.NONE:
            self._pause(followed, result.error.name)
            return
        try:
            followed.replica.take(asked, result)
        # An error of our disk, or an impossible response.
        except (OSError, ValueError) as error:
            self._pause(followed, str(error))
        # To the end of the next request, whose response is limited too: the other partitions go first.
        if result.records:
            self._followed[tp] = self._followed.pop(tp)

    def _pause(self, followed: _Followed, reason: str) -> None:
        _log.info("cannot follow yet", partition=str(followed.replica.tp), leader=self._leader_id, reason=reason)
        followed.not_before = trio.current_time() + self._handle.config.replica_fetch_backoff_ms / 1000
