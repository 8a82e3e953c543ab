"""Records that a real client of Kafka's writes and reads, with librdkafka."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final

import trio
from attrs import define, field
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

FLUSH_SECONDS: Final = 120
READ_SECONDS: Final = 120
IN_TRANSACTION: Final = 10
"""The number of records in a transaction."""
_PAUSE_SECONDS: Final = 0.02
"""The time between two records: each is a request, which costs three brokers far more than the record."""

_POLL_SECONDS: Final = 0.005

Servers = str | Mapping[str, str]
"""The addresses of brokers, or all settings of librdkafka to connect to them."""


def _connecting(servers: Servers) -> dict[str, str | int | float | bool]:
    return {"bootstrap.servers": servers} if isinstance(servers, str) else dict(servers)


@define(eq=False)
class Written:
    """The records that were acknowledged, and the errors of the others."""

    values: list[bytes] = field(factory=list)
    errors: list[str] = field(factory=list)
    acknowledged: list[tuple[float, float]] = field(factory=list)
    """When each was acknowledged, by trio's clock, and how long it had waited, in seconds."""

    _clock: trio.abc.Clock = field(factory=trio.lowlevel.current_clock)

    def take(self, error: KafkaError | None, message: Message) -> None:
        """Take the outcome of a record."""
        if error is not None:
            self.errors.append(str(error))
            return
        value = message.value()
        assert isinstance(value, bytes)
        self.values.append(value)
        self.acknowledged.append((self._clock.current_time(), message.latency() or 0.0))

    def longest_wait(self, since: float = -math.inf) -> float:
        """Return the longest time that one of the records waited which were acknowledged since a moment."""
        return max((wait for at, wait in self.acknowledged if at > since), default=0.0)

    def longest_pause(self, since: float) -> float:
        """Return the longest time without an acknowledgement, in seconds, from a moment to now."""
        moments = [since, *(at for at, _ in self.acknowledged if at > since), self._clock.current_time()]
        return max(later - earlier for earlier, later in itertools.pairwise(moments))


def writing(servers: Servers, topic: str) -> AbstractAsyncContextManager[Written]:
    """Write records to a topic until the end of the block, which waits for the last acknowledgement.

    The block begins when the first record has been acknowledged.
    """
    return _until_the_end(partial(_write, servers, topic))


async def write(servers: Servers, topic: str, count: int, first: int = 0) -> Written:
    """Write a number of records to a topic as fast as it takes them, beginning with record `first`."""
    written, is_over = Written(), threading.Event()
    is_over.set()
    await trio.to_thread.run_sync(_write, servers, topic, written, is_over, range(first, first + count))
    return written


def _write(
    servers: Servers, topic: str, written: Written, is_over: threading.Event, at_least: range = range(0)
) -> None:
    producer = Producer(_connecting(servers) | {"enable.idempotence": True, "acks": "all", "linger.ms": 5})
    number = at_least.start
    while number < at_least.stop or not is_over.is_set():
        producer.produce(topic, f"{topic}-{number}".encode(), on_delivery=written.take)
        producer.poll(0 if number < at_least.stop else _PAUSE_SECONDS)
        number += 1
    left = producer.flush(FLUSH_SECONDS)
    written.errors += ["not acknowledged in time"] * left


def committing(servers: Servers, topic: str) -> AbstractAsyncContextManager[Written]:
    """Write to a topic in transactions until the end of the block, and take the values of those that were committed.

    The block begins when the first transaction has been committed.
    """
    return _until_the_end(partial(_commit, servers, topic))


@asynccontextmanager
async def _until_the_end(work: Callable[[Written, threading.Event], None]) -> AsyncIterator[Written]:
    written, is_over = Written(), threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.to_thread.run_sync, work, written, is_over))
        try:
            await until_more(written, 1)
            yield written
        finally:
            is_over.set()


async def until_more(written: Written, count: int) -> None:
    """Wait for a number of further records."""
    wanted = len(written.values) + count
    with trio.fail_after(FLUSH_SECONDS):
        while len(written.values) < wanted:
            await trio.sleep(_POLL_SECONDS)


def _commit(servers: Servers, topic: str, written: Written, is_over: threading.Event) -> None:
    producer = Producer(_connecting(servers) | {"transactional.id": f"writer-of-{topic}"})
    producer.init_transactions(FLUSH_SECONDS)
    for number in itertools.count():
        if is_over.is_set():
            return
        values = [f"{topic}-{number}-{place}".encode() for place in range(IN_TRANSACTION)]
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        producer.commit_transaction(FLUSH_SECONDS)
        written.values += values


async def read(servers: Servers, topic: str, group: str) -> list[bytes]:
    """Read all records of a topic in a consumer group."""
    return await trio.to_thread.run_sync(_read, servers, topic, group)


async def create_topic(servers: Servers, topic: str) -> None:
    """Have the controller that brokers know create a topic with three partitions of three replicas."""
    admin = AdminClient(_connecting(servers))
    [created] = admin.create_topics([NewTopic(topic, 3, 3)]).values()
    await trio.to_thread.run_sync(created.result)


async def topics(servers: Servers) -> set[str]:
    """Return the topics that a broker tells clients of."""
    admin = AdminClient(_connecting(servers))
    listed = await trio.to_thread.run_sync(partial(admin.list_topics, timeout=READ_SECONDS))
    return set(listed.topics)


def _read(servers: Servers, topic: str, group: str) -> list[bytes]:
    consumer = Consumer(_connecting(servers) | {"group.id": group, "enable.partition.eof": True})
    ends: set[int] = set()
    assigned: list[TopicPartition] = []

    def begin(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        assigned[:] = [TopicPartition(each.topic, each.partition, OFFSET_BEGINNING) for each in partitions]
        consumer.assign(assigned)

    consumer.subscribe([topic], on_assign=begin)
    values: list[bytes] = []
    silence = 0
    try:
        while not assigned or len(ends) < len(assigned):
            message = consumer.poll(1.0)
            if message is not None:
                _take(message, values, ends)
            elif (silence := silence + 1) > READ_SECONDS:
                raise TimeoutError(f"{len(values)} records of {topic} read, ends of {ends} reached")
        return values
    finally:
        consumer.close()


def _take(message: Message, values: list[bytes], ends: set[int]) -> None:
    error, partition, value = message.error(), message.partition(), message.value()
    if error is None:
        assert isinstance(value, bytes)
        values.append(value)
    elif error.code() == KafkaError._PARTITION_EOF and partition is not None:  # noqa: SLF001  so it is named
        ends.add(partition)
