"""Nodes of a cluster of Kafka's for an admin client: each answers from a table, and remembers the questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio
from attrs import define, field

from transport.kafka import messages as kafka
from transport.kafka.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from transport.kafka.schema import Message
from transport.kafka.server import KafkaRequest, serve_stream
from transport.network import TcpNetwork
from transport.security.sasl import SaslServer

M = TypeVar("M", bound=Message)
HOST = "127.0.0.1"

Answer = Message | Callable[[Any], Message | None]
"""A response, or what returns one to a request; None ends the connection."""


@define(eq=False)
class ScriptedNode:
    """A node that listens at a free port."""

    id: int
    answers: dict[type[Message], Answer] = field(factory=dict)
    sasl: SaslServer | None = None
    asked: list[Any] = field(factory=list, init=False)
    port: int = field(default=0, init=False)
    connections: int = field(default=0, init=False)

    def questions(self, kind: type[M]) -> list[M]:
        """Return the requests of a kind, in the order of their arrival."""
        return [request for request in self.asked if isinstance(request, kind)]

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve a connection."""
        self.connections += 1
        await serve_stream(stream, dict.fromkeys(self.answers, self._take), sasl=self.sasl)

    async def _take(self, request: KafkaRequest) -> Message:
        await trio.lowlevel.checkpoint()
        self.asked.append(request.message)
        answer = self.answers[type(request.message)]
        response = answer(request.message) if callable(answer) else answer
        if response is None:
            raise trio.BrokenResourceError
        return response


@define(eq=False)
class ScriptedNodes:
    """The nodes of a cluster, and the partitions that they show."""

    nodes: dict[int, ScriptedNode]
    controller: int = 1
    topics: list[MetadataResponseTopic] = field(factory=list)
    cluster_id: str | None = None

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """The addresses of all nodes."""
        return [(HOST, node.port) for node in self.nodes.values()]

    def metadata(self, request: kafka.MetadataRequest) -> kafka.MetadataResponse:
        """Return what every node says of the cluster."""
        brokers = tuple(MetadataResponseBroker(one.id, HOST, one.port, f"r{one.id}") for one in self.nodes.values())
        wanted = None if request.topics is None else {topic.name for topic in request.topics}
        topics = tuple(topic for topic in self.topics if wanted is None or topic.name in wanted)
        return kafka.MetadataResponse(
            brokers=brokers, cluster_id=self.cluster_id, controller_id=self.controller, topics=topics
        )

    def show(self, topic: str, *replicas: tuple[int, ...], isr: tuple[int, ...] = ()) -> None:
        """Show a topic with these replicas, whose first ones lead."""
        partitions = tuple(
            MetadataResponsePartition(0, number, brokers[0], 5, brokers, isr or brokers)
            for number, brokers in enumerate(replicas)
        )
        self.topics[:] = [one for one in self.topics if one.name != topic]
        self.topics.append(MetadataResponseTopic(0, topic, "", partitions=partitions))


@asynccontextmanager
async def scripted_nodes(
    *ids: int, answers: Mapping[type[Message], Answer] | None = None, sasl: SaslServer | None = None
) -> AsyncIterator[ScriptedNodes]:
    """Run nodes until the end of the block; all of them have these answers, and those about the cluster.

    With `sasl`, clients have to log in.
    """
    cluster = ScriptedNodes({id_: ScriptedNode(id_, dict(answers or {}), sasl) for id_ in ids}, ids[0])
    async with trio.open_nursery() as nursery:
        for node in cluster.nodes.values():
            node.answers.setdefault(kafka.MetadataRequest, cluster.metadata)
            node.answers.setdefault(kafka.ListPartitionReassignmentsRequest, kafka.ListPartitionReassignmentsResponse())
            node.port = await nursery.start(TcpNetwork().serve, node.serve, HOST, 0)
        yield cluster
        nursery.cancel_scope.cancel()
