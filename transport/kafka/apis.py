"""The table of Kafka's apis: the messages of each, and the versions that Klamm's servers answer.

Messages are known in all versions up to those of the newest release, so that clients can use them. A controller answers
as controllers in ZooKeeper mode do: a newer version is served once its new fields are answered, and not before.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from attrs import frozen

from transport.kafka import messages
from transport.kafka.schema import Message, Versions

_LAST_SERVED: Final = MappingProxyType(
    {
        "AlterPartitionReassignments": 0,
        "ApiVersions": 4,
        "DescribeCluster": 1,
        "DescribeLogDirs": 4,
        "ListTransactions": 1,
        "Metadata": 12,
        "UpdateFeatures": 1,
    }
)
"""The last versions that servers answer, of the apis with newer ones."""


@frozen
class KafkaApi:
    """An api, by its name and the number that stands for it on the wire."""

    name: str
    key: int

    @property
    def request(self) -> type[Message]:
        """The class of requests, in the versions that responses have too."""
        return self._message("Request")

    @property
    def response(self) -> type[Message]:
        """The class of responses."""
        return self._message("Response")

    @property
    def served(self) -> Versions:
        """The versions that a server with a handler of this api answers."""
        known = self.request.versions
        return Versions(known.first, _LAST_SERVED.get(self.name, known.last))

    def _message(self, direction: str) -> type[Message]:
        kind: type[Message] = getattr(messages, self.name + direction)
        return kind


KAFKA_APIS: Final = MappingProxyType({key: KafkaApi(name, key) for name, key in messages.API_KEYS.items()})
"""The apis by key."""
