"""The log directories of Kafka's brokers, asked for and told as those of ours are (KIP-113)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

from attrs import frozen

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.describe_log_dirs_request import DescribableLogDirTopic
from transport.kafka.messages.describe_log_dirs_response import DescribeLogDirsResult
from transport.kafka.volume import Volume
from transport.messages import UNKNOWN, DescribeLogDirsRequest, DescribeLogDirsResponse, LogDir, LogDirReplica
from transport.network import Network

LOG_DIRS_NEED: Final = "our principal needs Describe on the cluster"


@frozen
class LogDirsConnection:
    """A connection to a broker of Kafka's that is asked for its log directories."""

    connection: KafkaConnection

    async def call(self, request: DescribeLogDirsRequest, *, timeout: float) -> DescribeLogDirsResponse:  # noqa: ASYNC109
        """Return the log directories of a broker. Raises ApiError if it refuses; see also `KafkaConnection.send`."""
        answer, _ = await self.describe(request, timeout=timeout)
        return answer

    async def describe(
        self,
        request: DescribeLogDirsRequest,
        *,
        timeout: float,  # noqa: ASYNC109  as for all requests
    ) -> tuple[DescribeLogDirsResponse, dict[str, Volume]]:
        """Return the same, with the file system of each directory by its path. Raises as `call` does."""
        version = self.connection.version_of(kafka.DescribeLogDirsRequest)
        asked = describe_log_dirs(request)
        answer = await self.connection.send(asked, kafka.DescribeLogDirsResponse, version, timeout=timeout)
        volumes = {one.log_dir: Volume(one.total_bytes, one.usable_bytes) for one in answer.results}
        return describe_log_dirs_answer(answer), volumes


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


def describe_log_dirs_answer(answer: kafka.DescribeLogDirsResponse) -> DescribeLogDirsResponse:
    """Return the answer of a broker, which does not tell ids and ends of logs. Raises ApiError if it refused."""
    if answer.error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(answer.error_code), LOG_DIRS_NEED)
    dirs = [LogDir(one.log_dir, ErrorCode(one.error_code), tuple(_replicas(one))) for one in answer.results]
    return DescribeLogDirsResponse(tuple(dirs))


def _replicas(result: DescribeLogDirsResult) -> Iterator[LogDirReplica]:
    for topic in result.topics:
        for log in topic.partitions:
            # A log that is being moved to another directory of the broker is there twice.
            if not log.is_future_key:
                size, lag = log.partition_size, log.offset_lag
                yield LogDirReplica(topic.name, "", log.partition_index, size, UNKNOWN, lag)
