"""The settings in effect of topics, which a broker of Kafka's knows: its own count where a topic has none."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import trio

from controller.channels.broker_channels import BrokerChannels
from transport.errors import ErrorCode
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages import DescribeConfigsRequest, DescribeConfigsResponse
from transport.kafka.messages.create_topics_response import CreatableTopicConfigs
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.log import get_logger
from transport.wire.errors import ConnectionBroken, RequestTimedOut, UnsupportedApi

SECONDS: Final = 2.0
"""The limit of the broker's answer. A client who has created a topic waits for it, and seldom looks at it."""

_TOPIC: Final = 2
_log = get_logger(__name__)

TopicSettings = dict[str, tuple[CreatableTopicConfigs, ...]]


async def topic_settings(channels: BrokerChannels, names: Collection[str]) -> TopicSettings:
    """Return the settings of topics by their names, as a broker tells them; without those that it does not tell."""
    brokers = channels.connected()
    if not brokers or not names:
        return {}
    broker, _ = brokers[0]
    reason = "it takes too long"
    with trio.move_on_after(SECONDS):
        try:
            return await _ask(channels, broker.host, broker.port, names)
        except (ConnectionBroken, RequestTimedOut, UnsupportedApi) as error:
            reason = str(error)
    _log.info("the settings of new topics are not told", broker=broker.id, reason=reason)
    return {}


async def _ask(channels: BrokerChannels, host: str, port: int, names: Collection[str]) -> TopicSettings:
    client_id = f"controller-{channels.endpoint.id}"
    async with open_kafka_connection(channels.network, host, port, client_id=client_id) as connection:
        resources = tuple(DescribeConfigsResource(_TOPIC, name, None) for name in names)
        version = connection.version_of(DescribeConfigsRequest)
        answer = await connection.send(DescribeConfigsRequest(resources), DescribeConfigsResponse, version)
    return {
        result.resource_name: tuple(
            CreatableTopicConfigs(one.name, one.value, one.read_only, one.config_source, one.is_sensitive)
            for one in result.configs
        )
        for result in answer.results
        if result.error_code == ErrorCode.NONE
    }
