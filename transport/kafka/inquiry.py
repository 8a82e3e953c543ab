"""The question to a broker of Kafka's for its release and its settings."""

from __future__ import annotations

from typing import Final

from transport.kafka.client import KafkaConnection
from transport.kafka.messages import DescribeConfigsRequest, DescribeConfigsResponse
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult
from transport.kafka.releases import ASKED, OF_CONTROLLERS, Release, release_of
from transport.wire.client import REQUEST_TIMEOUT_SECONDS
from transport.wire.errors import UnsupportedApi

BROKER_RESOURCE: Final = 4
"""The type of resources that brokers are, in the requests about settings."""

_BEFORE_THE_START: Final = frozenset({4, 5})
"""The sources of values from a broker's file, and of Kafka's defaults."""


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
    configs = [config for result in answer.results for config in result.configs if _counts(config)]
    return {config.name: config.value for config in configs if config.value is not None}


def _counts(config: DescribeConfigsResourceResult) -> bool:
    """Return whether a setting was asked for, and is not one of controllers that was set at run time for all."""
    return config.name in ASKED and (config.name not in OF_CONTROLLERS or config.config_source in _BEFORE_THE_START)
