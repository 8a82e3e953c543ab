"""The answers to Kafka's administrators about users of SCRAM, and about features, of which there are none."""

from __future__ import annotations

from typing import Final

from attrs import define

from controller.node.kafka_admin import Ask
from transport.errors import ApiError, ErrorCode, Fault
from transport.kafka import messages as kafka
from transport.kafka.feature_requests import update_features_answer
from transport.kafka.scram_requests import alter_users_answer, judge_users
from transport.kafka.server import Handlers, KafkaRequest
from transport.messages.features import UpdateFeaturesRequest
from transport.messages.users import AlterScramUsersRequest

_WITHOUT_WORDS: Final = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.NOT_CONTROLLER}
"""The refusals of a whole request to which Kafka adds no message."""


@define
class KafkaUsers:
    """Changes users for those who may. `ask` passes a request through the event queue in the name of its caller."""

    ask: Ask

    def handlers(self) -> Handlers:
        """Return the answers by their requests."""
        return {
            kafka.AlterUserScramCredentialsRequest: self._alter,
            kafka.UpdateFeaturesRequest: self._update_features,
        }

    async def _alter(self, request: KafkaRequest) -> kafka.AlterUserScramCredentialsResponse:
        message: kafka.AlterUserScramCredentialsRequest = request.message
        faults, changes = judge_users(message)
        answer = await self.ask(request, AlterScramUsersRequest(changes))
        if isinstance(answer, ApiError):
            return alter_users_answer(message, ApiError(answer.code) if answer.code in _WITHOUT_WORDS else answer)
        outcomes: dict[str, Fault | None] = {**faults, **dict(answer.users)}
        return alter_users_answer(message, outcomes)

    async def _update_features(self, request: KafkaRequest) -> kafka.UpdateFeaturesResponse:
        answer = await self.ask(request, UpdateFeaturesRequest())
        refusal = answer if isinstance(answer, ApiError) else None
        return update_features_answer(request.message, request.header.version, refusal)
