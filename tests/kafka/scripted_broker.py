"""A broker as the controller sees one of Apache Kafka's: it takes every order, and remembers them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio
from attrs import define, field

from tests.kit import kafka_registrations
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.releases import PROTOCOL
from transport.kafka.schema import Message
from transport.kafka.server import KafkaRequest, serve_stream
from transport.metadata import Listener
from transport.network import TcpNetwork
from transport.store.protocol import MetadataStore

M = TypeVar("M", bound=Message)
HOST = "127.0.0.1"


def protocol(version: str) -> kafka.DescribeConfigsResponse:
    """Return what a broker of an inter.broker.protocol.version says of it."""
    config = DescribeConfigsResourceResult(PROTOCOL, version)
    return kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(configs=(config,)),))


ANSWERS: dict[type[Message], Message] = {
    kafka.LeaderAndIsrRequest: kafka.LeaderAndIsrResponse(),
    kafka.StopReplicaRequest: kafka.StopReplicaResponse(),
    kafka.UpdateMetadataRequest: kafka.UpdateMetadataResponse(),
    kafka.DescribeConfigsRequest: protocol("3.9-IV0"),
}


@define
class ScriptedBroker:
    """A broker with two listeners, of which only INTERNAL is one.

    It offers what it answers, and so is taken for one up to 2.8 unless it has more `answers`.
    """

    id: int
    port: int = 0
    answers: Mapping[type[Message], Message] = field(factory=dict)
    orders: list[Any] = field(factory=list)
    versions: list[int] = field(factory=list)
    """Those of the orders."""

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The addresses that it registers."""
        return Listener("INTERNAL", HOST, self.port), Listener("EXTERNAL", "broker.example", 9092)

    async def register(self, store: MetadataStore) -> None:
        """Register it in the session of a store."""
        await kafka_registrations.register(store, self.id, *self.listeners)

    def told(self, kind: type[M]) -> list[M]:
        """Return the orders of a kind, in the order of their arrival."""
        return [order for order in self.orders if isinstance(order, kind)]

    async def listen(self, nursery: trio.Nursery) -> None:
        """Listen until the nursery ends, at any free port the first time."""
        self.port = await nursery.start(TcpNetwork().serve, self.serve, HOST, self.port)

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve a connection."""
        await serve_stream(stream, dict.fromkeys({**ANSWERS, **self.answers}, self._take))

    async def _take(self, request: KafkaRequest) -> Message:
        if not isinstance(request.message, kafka.DescribeConfigsRequest):
            self.orders.append(request.message)
            self.versions.append(request.header.version)
        await trio.lowlevel.checkpoint()
        return {**ANSWERS, **self.answers}[type(request.message)]


@asynccontextmanager
async def scripted_brokers(
    store: MetadataStore, *ids: int, answers: Mapping[type[Message], Message] | None = None
) -> AsyncIterator[list[ScriptedBroker]]:
    """Register brokers that listen until the end of the block."""
    async with trio.open_nursery() as nursery:
        brokers = [ScriptedBroker(broker_id, answers=answers or {}) for broker_id in ids]
        for broker in brokers:
            await broker.listen(nursery)
            await broker.register(store)
        yield brokers
        nursery.cancel_scope.cancel()
