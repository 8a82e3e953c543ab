"""The connection of a controller's channel to one of Kafka's brokers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, cast

from attrs import define

from transport.kafka import messages as kafka, orders
from transport.kafka.client import KafkaConnection
from transport.kafka.codec import encode
from transport.kafka.orders import LEAST_VERSIONS, Node
from transport.kafka.schema import Message
from transport.messages import LeaderAndIsrRequest, Request, StopReplicaRequest, UpdateMetadataRequest
from transport.wire.client import REQUEST_TIMEOUT_SECONDS
from transport.wire.errors import CodecError, UnsupportedApi

R = TypeVar("R")

WITHOUT_TOPIC_IDS: Final[dict[type[Message], int]] = {kafka.LeaderAndIsrRequest: 4, kafka.UpdateMetadataRequest: 6}
"""The highest versions without topic ids, for clusters whose inter.broker.protocol.version is below 2.8 or unknown."""


def encode_order(order: Request[object]) -> bytes:
    """Return an order's bytes in the latest version. Raises CodecError if it cannot be sent to Kafka's brokers."""
    match order:
        case LeaderAndIsrRequest():
            version = kafka.LeaderAndIsrRequest.versions.last
            return encode(orders.leader_and_isr(order, version, ()), version)
        case UpdateMetadataRequest():
            version = kafka.UpdateMetadataRequest.versions.last
            return encode(orders.update_metadata(order, version, ()), version)
        case StopReplicaRequest():
            return encode(orders.stop_replica(order), kafka.StopReplicaRequest.versions.last)
    raise CodecError(f"{type(order).__name__} is not sent to Kafka's brokers")


@define
class BrokerConnection:
    """Sends the orders of a controller to a broker of Kafka's, in the highest versions that both have.

    `nodes` returns the live brokers and the controller as of now, and `has_topic_ids` whether brokers are told the ids
    of topics.
    """

    connection: KafkaConnection
    nodes: Callable[[], Sequence[Node]]
    has_topic_ids: Callable[[], bool] = lambda: True

    async def call(self, request: Request[R], *, timeout: float = REQUEST_TIMEOUT_SECONDS) -> R:  # noqa: ASYNC109
        """Send an order and return its answer; `timeout` is in seconds.

        Raises ApiError if the broker refuses the whole request; UnsupportedApi or CodecError if it cannot be sent to
        this broker; RequestTimedOut or ConnectionBroken if there is no answer.
        """
        return cast("R", await self._call(request, timeout))

    async def close(self) -> None:
        """Close the connection. A call in progress raises ConnectionBroken."""
        await self.connection.close()

    async def _call(self, request: Request[R], seconds: float) -> object:
        send = self.connection.send
        match request:
            case LeaderAndIsrRequest():
                version = self._version(kafka.LeaderAndIsrRequest)
                order = orders.leader_and_isr(request, version, self.nodes())
                answer = await send(order, kafka.LeaderAndIsrResponse, version, timeout=seconds)
                return orders.leader_and_isr_answer(request, answer)
            case UpdateMetadataRequest():
                version = self._version(kafka.UpdateMetadataRequest)
                told = orders.update_metadata(request, version, self.nodes())
                return orders.update_metadata_answer(
                    await send(told, kafka.UpdateMetadataResponse, version, timeout=seconds)
                )
            case StopReplicaRequest():
                version = self._version(kafka.StopReplicaRequest)
                stopped = [
                    await send(each, kafka.StopReplicaResponse, version, timeout=seconds)
                    for each in orders.stop_replicas(request, version)
                ]
                return orders.stop_replica_answer(stopped)
        raise UnsupportedApi(f"{type(request).__name__} is not sent to Kafka's brokers")

    def _version(self, kind: type[Message]) -> int:
        at_most = None if self.has_topic_ids() else WITHOUT_TOPIC_IDS.get(kind)
        version = self.connection.version_of(kind, at_most=at_most)
        if version < LEAST_VERSIONS[kind]:
            raise UnsupportedApi(f"{kind.__name__} of version {version} is too old: brokers must be of 2.4 or later")
        return version
