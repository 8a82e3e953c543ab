"""The log directories of Kafka's brokers, asked for and told as those of ours are (KIP-113)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

from attrs import frozen

from transport.acls import Operation, needs
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.describe_log_dirs_request import DescribableLogDirTopic
from transport.kafka.messages.describe_log_dirs_response import DescribeLogDirsResult
from transport.kafka.volume import ToldLogDir, Volume
from transport.messages import UNKNOWN, DescribeLogDirsRequest, DescribeLogDirsResponse, LogDir, LogDirReplica
from transport.network import Network

LOG_DIRS_NEED: Final = needs(Operation.DESCRIBE)


@frozen
class LogDirsConnection:
    """A connection to a broker of Kafka's that is asked for its log directories."""

    connection: KafkaConnection

    async def call(self, request: DescribeLogDirsRequest, *, timeout: float) -> DescribeLogDirsResponse:  # noqa: ASYNC109
        """Return the log directories of a broker. Raises ApiError if it refuses; see also `KafkaConnection.send`."""
        told = await self.ask(request, timeout=timeout)
        return DescribeLogDirsResponse(tuple(one.log_dir for one in told))

    async def ask(self, request: DescribeLogDirsRequest, *, timeout: float) -> tuple[ToldLogDir, ...]:  # noqa: ASYNC109
        """Return the same with all that the broker tells of them."""
        version = self.connection.version_of(kafka.DescribeLogDirsRequest)
        asked = describe_log_dirs(request)
        return told_log_dirs(await self.connection.send(asked, kafka.DescribeLogDirsResponse, version, timeout=timeout))


@asynccontextmanager
async def open_log_dirs(
    network: Network, host: str, port: int, *, client_id: str, connect_timeout: float
) -> AsyncIterator[LogDirsConnection]:
    """Connect to a broker of Kafka's to ask it for its log directories; see `open_kafka_connection`."""
    opening = open_kafka_connection(network, host, port, client_id=client_id, connect_timeout=connect_timeout)
    async with opening as connection:
        yield LogDirsConnection(connection)


def describe_log_dirs(request: DescribeLogDirsRequest) -> kafka.DescribeLogDirsRequest:
    """Return a request in Kafka's form."""
    if request.partitions is None:
        return kafka.DescribeLogDirsRequest(topics=None)
    partitions: dict[str, list[int]] = {}
    for tp in request.partitions:
        partitions.setdefault(tp.topic, []).append(tp.partition)
    topics = [DescribableLogDirTopic(topic, tuple(numbers)) for topic, numbers in partitions.items()]
    return kafka.DescribeLogDirsRequest(topics=tuple(topics))


def told_log_dirs(answer: kafka.DescribeLogDirsResponse) -> tuple[ToldLogDir, ...]:
    """Return the answer of a broker, which does not tell ids and ends of logs. Raises ApiError if it refused."""
    if answer.error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(answer.error_code), LOG_DIRS_NEED)
    return tuple(map(_told, answer.results))


def _told(result: DescribeLogDirsResult) -> ToldLogDir:
    volume = Volume(result.total_bytes, result.usable_bytes)
    replicas = tuple(_replicas(result, are_futures=False))
    log_dir = LogDir(result.log_dir, ErrorCode(result.error_code), replicas, volume.total, volume.usable)
    return ToldLogDir(log_dir, volume, tuple(_replicas(result, are_futures=True)))


def _replicas(result: DescribeLogDirsResult, *, are_futures: bool) -> Iterator[LogDirReplica]:
    """Yield logs; one that is being moved to another directory of the broker is there twice, once as a future one."""
    for topic in result.topics:
        for log in topic.partitions:
            if log.is_future_key is are_futures:
                size, lag = log.partition_size, log.offset_lag
                yield LogDirReplica(topic.name, "", log.partition_index, size, UNKNOWN, lag)
