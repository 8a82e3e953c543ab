"""The answers about the settings of the controller as a node of Kafka's, which tools take for one more broker.

It has no settings that Kafka knows. Tools read the settings of each node, and take throttles from all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import trio
from attrs import define

from controller.node.kafka_admin import Ask
from transport import messages
from transport.dynamic_configs import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.alter_configs_response import AlterConfigsResourceResponse as Altered
from transport.kafka.messages.describe_configs_response import DescribeConfigsResult
from transport.kafka.messages.incremental_alter_configs_response import AlterConfigsResourceResponse
from transport.kafka.relay import NotOurs
from transport.kafka.server import Handlers, KafkaRequest

BROKER: Final = 4
BROKER_LOGGER: Final = 8
_DELETE: Final = 1
_DENIED: Final = "Cluster authorization failed."
"""The words of brokers, which tools show of whichever node answers first."""

_THROTTLES: Final = {LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE, "replica.alter.log.dirs.io.max.bytes.per.second"}
"""Settings that change nothing for a node without replicas."""


@define
class KafkaOwnSettings:
    """Answers requests about the settings of one node. `ask` finds out whether a caller may make them."""

    node_id: int
    ask: Ask

    def handlers(self) -> Handlers:
        """Return the answers by their requests; each raises NotOurs for requests about others."""
        return {
            kafka.AlterConfigsRequest: self._alter,
            kafka.DescribeConfigsRequest: self._describe,
            kafka.IncrementalAlterConfigsRequest: self._incremental_alter,
        }

    async def _describe(self, request: KafkaRequest) -> kafka.DescribeConfigsResponse:
        resources = self._require_ours(request.message.resources)
        asked = messages.DescribeConfigsRequest((self._resource(),))
        refusal = await self._refusal(request, asked, messages.DescribeConfigsResponse(()))
        code, text = (ErrorCode.NONE, None) if refusal is None else (refusal.code, refusal.message)
        results = [DescribeConfigsResult(code, text, one.resource_type, one.resource_name) for one in resources]
        return kafka.DescribeConfigsResponse(results=tuple(results))

    async def _alter(self, request: KafkaRequest) -> kafka.AlterConfigsResponse:
        resources = self._require_ours(request.message.resources)
        faults = [await self._fault(request, [config.name for config in one.configs]) for one in resources]
        rows = zip(resources, faults, strict=True)
        responses = [Altered(*fault, one.resource_type, one.resource_name) for one, fault in rows]
        return kafka.AlterConfigsResponse(responses=tuple(responses))

    async def _incremental_alter(self, request: KafkaRequest) -> kafka.IncrementalAlterConfigsResponse:
        resources = self._require_ours(request.message.resources)
        kept = [[config.name for config in one.configs if config.config_operation != _DELETE] for one in resources]
        faults = [await self._fault(request, names) for names in kept]
        rows = zip(resources, faults, strict=True)
        responses = [AlterConfigsResourceResponse(*fault, one.resource_type, one.resource_name) for one, fault in rows]
        return kafka.IncrementalAlterConfigsResponse(responses=tuple(responses))

    def _require_ours(self, resources: Sequence[Any]) -> Sequence[Any]:
        """Return resources that are all this node. Raises NotOurs."""
        own = [one for one in resources if one.resource_type in {BROKER, BROKER_LOGGER}]
        if not resources or [one.resource_name for one in own] != [str(self.node_id)] * len(resources):
            raise NotOurs
        return resources

    async def _fault(self, request: KafkaRequest, names: Sequence[str]) -> tuple[ErrorCode, str | None]:
        asked = messages.IncrementalAlterConfigsRequest((messages.AlterConfigsResource(self._resource(), ()),))
        refusal = await self._refusal(request, asked, messages.IncrementalAlterConfigsResponse(()))
        if refusal is not None:
            return refusal.code, refusal.message
        other = next((name for name in names if name not in _THROTTLES), None)
        if other is None:
            return ErrorCode.NONE, None
        text = f"node {self.node_id} is the controller, which has no setting {other}: name a broker"
        return ErrorCode.INVALID_REQUEST, text

    async def _refusal(
        self, request: KafkaRequest, asked: messages.Request[Any], answer: messages.Message
    ) -> ApiError | None:
        """Return why the caller may not make a request, None if it may."""
        told = await self.ask(request, asked, partial(_same, answer))
        if isinstance(told, ApiError):
            return told
        [*refused] = told.resources
        return ApiError(refused[0].error, _DENIED) if refused else None

    def _resource(self) -> messages.ConfigResource:
        return messages.ConfigResource(messages.ConfigResourceType.BROKER, str(self.node_id))


async def _same(answer: messages.Message, _asked: object) -> object:
    await trio.lowlevel.checkpoint()
    return answer
