"""The question to a broker of Kafka's for its release and its settings."""

from __future__ import annotations

from typing import Final

from transport.kafka.client import KafkaConnection
from transport.kafka.listeners import OF_LISTENERS, BrokerListeners, broker_listeners
from transport.kafka.messages import DescribeConfigsRequest, DescribeConfigsResponse
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult
from transport.kafka.releases import ASKED, OF_THE_START, Release, release_of
from transport.wire.client import REQUEST_TIMEOUT_SECONDS
from transport.wire.errors import UnsupportedApi

BROKER_RESOURCE: Final = 4
"""The type of resources that brokers are, in the requests about settings."""

_BEFORE_THE_START: Final = frozenset({4, 5})
"""The sources of values from a broker's file, and of Kafka's defaults."""

_HAS_SYNONYMS: Final = 1


async def ask_release(
    connection: KafkaConnection,
    broker_id: int,
    *,
    timeout: float = REQUEST_TIMEOUT_SECONDS,  # noqa: ASYNC109  as for all requests
) -> Release:
    """Return the release of the broker at the other end. Raises as `KafkaConnection.send` does."""
    told = await _ask_settings(connection, broker_id, ASKED, timeout)
    return release_of(connection.offered, {name: value for name, value in told.items() if value is not None})


async def ask_listeners(
    connection: KafkaConnection,
    broker_id: int,
    *,
    timeout: float = REQUEST_TIMEOUT_SECONDS,  # noqa: ASYNC109  as for all requests
) -> BrokerListeners | None:
    """Return what the listeners of the broker at the other end are for, None if it does not let us read that.

    Raises as `KafkaConnection.send` does.
    """
    return broker_listeners(await _ask_settings(connection, broker_id, OF_LISTENERS, timeout))


async def _ask_settings(
    connection: KafkaConnection, broker_id: int, names: tuple[str, ...], seconds: float
) -> dict[str, str | None]:
    """Return the named settings of a broker, None for one without a value; without those that we may not read."""
    try:
        version = connection.version_of(DescribeConfigsRequest)
    except UnsupportedApi:
        return {}
    wanted = (DescribeConfigsResource(BROKER_RESOURCE, str(broker_id), names),)
    request = DescribeConfigsRequest(wanted, include_synonyms=version >= _HAS_SYNONYMS)
    answer = await connection.send(request, DescribeConfigsResponse, version, timeout=seconds)
    found = {config.name: _value(config) for result in answer.results for config in result.configs}
    return {name: value for name, value in found.items() if name in names}


def _value(config: DescribeConfigsResourceResult) -> str | None:
    """Return the value of a setting that counts; None if there is none, or if the broker does not tell it."""
    if config.name not in OF_THE_START or config.config_source in _BEFORE_THE_START:
        return config.value
    # Synonyms are all values that the setting would have one after the other, the one in effect first.
    return next((one.value for one in config.synonyms if one.source in _BEFORE_THE_START), None)
