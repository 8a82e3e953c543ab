"""The table of Kafka's apis: the messages of each."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from attrs import frozen

from transport.kafka import messages
from transport.kafka.schema import Message


@frozen
class KafkaApi:
    """An api: its request, its response, and the versions that both have."""

    name: str
    request: type[Message]
    response: type[Message]

    @property
    def key(self) -> int:
        """The number that stands for the api on the wire."""
        return self.request.api_key


def _apis() -> tuple[KafkaApi, ...]:
    names = [name.removesuffix("Request") for name in vars(messages) if name.endswith("Request")]
    return tuple(
        KafkaApi(name, getattr(messages, f"{name}Request"), getattr(messages, f"{name}Response")) for name in names
    )


KAFKA_APIS: Final = MappingProxyType({api.key: api for api in _apis()})
"""The apis by key."""
