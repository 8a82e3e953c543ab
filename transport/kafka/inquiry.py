"""The question to a broker of Kafka's for its release and its settings."""

from __future__ import annotations

from typing import Final

from transport.kafka.client import KafkaConnection
from transport.kafka.messages import DescribeConfigsRequest, DescribeConfigsResponse
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.kafka.releases import ASKED, Release, release_of
from transport.wire.client import REQUEST_TIMEOUT_SECONDS
from transport.wire.errors import UnsupportedApi

BROKER_RESOURCE: Final = 4
"""The type of resources that brokers are, in the requests about settings."""


async def ask_release(
    connection: KafkaConnection,
    broker_id: int,
    *,
    timeout: float = REQUEST_TIMEOUT_SECONDS,  # noqa: ASYNC109  as for all requests
) -> Release:
    """Return the release of the broker at the other end. Raises as `KafkaConnection.send` does."""
    return release_of(connection.offered, await _ask_settings(connection, broker_id, timeout))


async def _ask_settings(connection: KafkaConnection, broker_id: int, seconds: float) -> dict[str, str]:
    """Return the settings of a broker that are asked for, without those that it does not let us read."""
    try:
        version = connection.version_of(DescribeConfigsRequest)
    except UnsupportedApi:
        return {}
    request = DescribeConfigsRequest((DescribeConfigsResource(BROKER_RESOURCE, str(broker_id), ASKED),))
    answer = await connection.send(request, DescribeConfigsResponse, version, timeout=seconds)
    configs = [config for result in answer.results for config in result.configs if config.name in ASKED]
    return {config.name: config.value for config in configs if config.value is not None}
