"""A small client of the reference broker, for tests, the demo and the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self, TypeVar

import trio
from attrs import define, frozen

from actors import Backoff
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages import (
    MAX_WAIT_MS,
    FetchPartition,
    FetchRequest,
    FetchResult,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from transport.metadata import TopicPartition
from transport.network import Network
from transport.wire import Connection, WireError, open_connection

T = TypeVar("T")

REQUEST_TIMEOUT_MS: Final = 10_000
FETCH_MAX_BYTES: Final = 1024 * 1024
CONSUMER: Final = -1

_MENDED_BY_TIME: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


class GaveUp(Exception):
    """A request did not succeed in time; the message has the reason of the last attempt."""


@frozen
class _Leader:
    """The address of a partition's leader and the id of its topic, as a broker reported them."""

    address: tuple[str, int]
    topic_id: str


class _Client:
    """Finds partition leaders, and keeps a connection to each broker that it used. For one task at a time."""

    def __init__(
        self, network: Network, bootstrap: Sequence[tuple[str, int]], *, host: Host, client_id: str = "klamm-client"
    ) -> None:
        """Find the brokers through those at the addresses `bootstrap`."""
        self._network = network
        self._bootstrap = tuple(bootstrap)
        self._host = host
        self._client_id = client_id
        self._brokers: tuple[tuple[str, int], ...] = ()
        self._leaders: dict[TopicPartition, _Leader] = {}
        self._connections: dict[tuple[str, int], tuple[Connection, AsyncExitStack]] = {}
        self._asked = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for address in list(self._connections):
            await self._disconnect(address)

    async def _at_leader(
        self, tp: TopicPartition, attempt: Callable[[Connection, str], Awaitable[T]], seconds: float
    ) -> T:
        """Call `attempt` with a connection to the leader and the topic's id, and retry it for `seconds`.

        Follows the leader when it moves. Raises GaveUp or ApiError.
        """
        backoff = Backoff(0.1, 1.0, jitter=self._host.rng.random)
        reason = "no attempt was made"
        with trio.move_on_after(seconds):
            while True:
                try:
                    leader = await self._leader(tp)
                    return await attempt(await self._connect(leader.address), leader.topic_id)
                except ApiError as error:
                    if error.code not in _MENDED_BY_TIME:
                        raise
                    reason = str(error)
                except WireError as error:
                    reason = str(error)
                await self._forget_leader(tp)
                await trio.sleep(backoff.next())
        raise GaveUp(f"{tp}: no success within {seconds:g} s: {reason}")

    async def _leader(self, tp: TopicPartition) -> _Leader:
        if tp not in self._leaders:
            metadata = await self._ask_about(tp)
            leaders = _leaders(metadata)
            if tp not in leaders:
                raise _no_leader(tp, metadata)
            self._leaders = {**leaders, **self._leaders}  # one request describes all partitions of the topic
        return self._leaders[tp]

    async def _ask_about(self, tp: TopicPartition) -> MetadataResponse:
        candidates = list(dict.fromkeys((*self._brokers, *self._bootstrap)))
        # A different broker each time: one that is cut off from the controller would keep naming the old leader.
        address = candidates[self._asked % len(candidates)]
        self._asked += 1
        try:
            connection = await self._connect(address)
            metadata = await connection.call(MetadataRequest((tp.topic,)), timeout=REQUEST_TIMEOUT_MS / 1000)
        except WireError:
            await self._disconnect(address)
            raise
        self._brokers = tuple((broker.host, broker.port) for broker in metadata.brokers)
        return metadata

    async def _connect(self, address: tuple[str, int]) -> Connection:
        held = self._connections.get(address)
        if held is not None:
            return held[0]
        stack = AsyncExitStack()
        connection = await stack.enter_async_context(
            open_connection(
                self._network, *address, client_id=self._client_id, connect_timeout=REQUEST_TIMEOUT_MS / 1000
            )
        )
        self._connections[address] = connection, stack
        return connection

    async def _disconnect(self, address: tuple[str, int]) -> None:
        _, stack = self._connections.pop(address, (None, None))
        if stack is not None:
            await stack.aclose()

    async def _forget_leader(self, tp: TopicPartition) -> None:
        leader = self._leaders.pop(tp, None)
        if leader is not None:
            await self._disconnect(leader.address)


class Producer(_Client):
    """Appends records to partitions at their leaders. Use it as an async context manager, in one task."""

    async def send(
        self, topic: str, partition: int, values: Sequence[bytes], *, acks: int = -1, give_up_after: float = 30.0
    ) -> int:
        """Append records and return the offset of the first.

        Attempts that fail, or whose outcome is unknown, are retried for `give_up_after` seconds. Records can therefore
        be duplicated, and may exist even after GaveUp. Raises ApiError for errors that a retry cannot resolve.
        """
        request = ProduceRequest(topic, partition, acks, REQUEST_TIMEOUT_MS, tuple(values))

        async def attempt(connection: Connection, _: str) -> int:
            return (await connection.call(request, timeout=2 * REQUEST_TIMEOUT_MS / 1000)).base_offset

        return await self._at_leader(TopicPartition(topic, partition), attempt, give_up_after)


@define
class _Reading:
    """A partition that is being read, and the id of its topic; None before the first response."""

    tp: TopicPartition
    topic_id: str | None = None


class Consumer(_Client):
    """Reads committed records of partitions. Use it as an async context manager, in one task."""

    async def records(
        self, topic: str, partition: int, from_offset: int = 0, *, give_up_after: float = 30.0
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Yield offset and value of each record when it is committed, without end.

        Raises GaveUp if no leader answers for `give_up_after` seconds, and ApiError with OFFSET_OUT_OF_RANGE, or with
        UNKNOWN_TOPIC_ID if the topic was deleted and recreated, so that the next offset belongs to another log.
        """
        offset = from_offset
        reading = _Reading(TopicPartition(topic, partition))
        while True:
            result = await self._fetch(reading, offset, give_up_after)
            for record in result.records:
                yield offset, record.value
                offset += 1

    async def read_all(
        self, topic: str, partition: int, from_offset: int = 0, *, up_to: int = 0, give_up_after: float = 30.0
    ) -> list[bytes]:
        """Return the values from `from_offset` to the leader's high watermark, and at least up to offset `up_to`.

        To be sure that nothing is missing, set `up_to` to the end of the acknowledged records: a new leader may not
        know yet how much is committed. Raises GaveUp after `give_up_after` seconds without progress before `up_to`, and
        ApiError as `records` does.
        """
        values: list[bytes] = []
        reading = _Reading(TopicPartition(topic, partition))
        progress_at = trio.current_time()
        while True:
            result = await self._fetch(reading, from_offset + len(values), give_up_after)
            values += [record.value for record in result.records]
            end = from_offset + len(values)
            if end >= max(up_to, result.high_watermark):
                return values
            if result.records:
                progress_at = trio.current_time()
            elif trio.current_time() - progress_at > give_up_after:
                raise GaveUp(f"{reading.tp}: only {end} of {up_to} records were committed after {give_up_after:g} s")

    async def _fetch(self, reading: _Reading, offset: int, give_up_after: float) -> FetchResult:
        tp = reading.tp

        async def attempt(connection: Connection, topic_id: str) -> FetchResult:
            if reading.topic_id not in (None, topic_id):
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_ID, f"{tp} was recreated while it was read: start again at offset 0"
                )
            asked = FetchPartition(*tp, offset, FETCH_MAX_BYTES, topic_id=topic_id)
            request = FetchRequest(CONSUMER, MAX_WAIT_MS, (asked,))
            [result] = (await connection.call(request, timeout=REQUEST_TIMEOUT_MS / 1000)).partitions
            if result.error is not ErrorCode.NONE:
                raise ApiError(result.error, f"reading {tp} from offset {offset}")
            reading.topic_id = topic_id
            return result

        return await self._at_leader(tp, attempt, give_up_after)


def _leaders(metadata: MetadataResponse) -> dict[TopicPartition, _Leader]:
    addresses = {broker.id: (broker.host, broker.port) for broker in metadata.brokers}
    led = [state for state in metadata.partitions if state.leader in addresses]
    return {state.tp: _Leader(addresses[state.leader], state.topic_id) for state in led}


def _no_leader(tp: TopicPartition, metadata: MetadataResponse) -> ApiError:
    if any(state.partition == tp.partition for state in metadata.partitions):
        return ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no live leader now")
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp} is not known")
