"""The answers of a controller to clients that take it for any node of the cluster, and ask it who else there is.

It says what it tells brokers, and so what they answer. Topics that do not exist are never created here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from attrs import define, frozen
from trio.lowlevel import checkpoint

from controller.node.admission import Authorizer, topic
from controller.node.office import Office
from transport.acls import CLUSTER, Operation, Resource
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka, topic_metadata
from transport.kafka.authorized_operations import NOT_ASKED, authorized_operations
from transport.kafka.codec import packed
from transport.kafka.messages.describe_cluster_response import DescribeClusterBroker
from transport.kafka.relay import NotOurs
from transport.kafka.server import Handlers, KafkaRequest
from transport.kafka.topic_metadata import Nodes, Wanted
from transport.messages import PartitionState
from transport.metadata import NO_LEADER
from transport.wire.errors import CodecError, ConnectionBroken

SLICE: Final = 500
"""The number of topics and partitions that are described before other tasks get their turns."""

NOT_IN_OFFICE: Final = "this controller is not in office, or loads the cluster"

_BROKERS: Final = 1
_ENDPOINTS: Final = {_BROKERS: "BROKER", 2: "CONTROLLER"}
"""The kinds of nodes that DescribeCluster is about."""

May = Callable[[Operation, Resource], bool]


@define
class KafkaMetadata:
    """Answers clients at a listener. `office` returns the office that the controller holds, if any.

    `passes_on` returns whether a broker can be asked instead, given the key and the version of a request.
    """

    listener: str
    office: Callable[[], Office | None]
    authorizer: Authorizer
    cluster_id: Callable[[], Awaitable[str | None]]
    passes_on: Callable[[int, int], bool]

    def handlers(self) -> Handlers:
        """Return the answers by their requests.

        They raise ConnectionBroken without an office. That of Metadata raises NotOurs if a broker may create a topic.
        """
        return {kafka.DescribeClusterRequest: self._describe_cluster, kafka.MetadataRequest: self._metadata}

    async def _metadata(self, request: KafkaRequest) -> kafka.MetadataResponse:
        message: kafka.MetadataRequest = request.message
        office, version = await self._require_office(), request.header.version
        nodes = Nodes(self.listener, office.channels.nodes())
        may: May = partial(self.authorizer, request.caller)
        found = _Topics(office, nodes, version, may, has_operations=message.include_topic_authorized_operations)
        try:
            wanted = topic_metadata.wanted_topics(message, version, found.name_of)
        except ApiError as refusal:
            return topic_metadata.refused(message, refusal.code)
        may_create = message.allow_auto_topic_creation and self.passes_on(message.api_key, version)
        if may_create and any(not found.exists(name) for name in wanted.names):
            raise NotOurs
        asks = message.include_cluster_authorized_operations
        return kafka.MetadataResponse(
            brokers=nodes.brokers(),
            cluster_id=await self.cluster_id(),
            controller_id=office.context.controller.id,
            topics=tuple(await found.describe(wanted)),
            cluster_authorized_operations=_of_cluster(may) if asks else NOT_ASKED,
        )

    async def _describe_cluster(self, request: KafkaRequest) -> kafka.DescribeClusterResponse:
        message: kafka.DescribeClusterRequest = request.message
        if message.endpoint_type != _BROKERS:
            return _of_other_nodes(message.endpoint_type)
        office = await self._require_office()
        nodes = Nodes(self.listener, office.channels.nodes())
        racks, own = nodes.racks(), office.context.controller.id
        asks = message.include_cluster_authorized_operations
        return kafka.DescribeClusterResponse(
            cluster_id=await self.cluster_id() or "",
            controller_id=own if own in nodes.at else NO_LEADER,
            brokers=tuple(DescribeClusterBroker(id_, at.host, at.port, racks[id_]) for id_, at in nodes.at.items()),
            cluster_authorized_operations=_of_cluster(partial(self.authorizer, request.caller)) if asks else NOT_ASKED,
        )

    async def _require_office(self) -> Office:
        """Return the office once it is certain that it is held. Raises ConnectionBroken."""
        office = self.office()
        if office is None or not office.is_loaded or not await office.is_held() or self.office() is not office:
            raise ConnectionBroken(NOT_IN_OFFICE)
        return office


@frozen
class _Topics:
    """The topics that a client asks for, as it sees them. Brokers do not know partitions that were never led."""

    office: Office
    nodes: Nodes
    version: int
    may: May
    has_operations: bool

    def name_of(self, topic_id: str) -> str | None:
        """Return the name of the topic that brokers know by an id."""
        name = self.office.context.topic_names.get(topic_id) if self.office.channels.have_topic_ids() else None
        return name if name is not None and self.exists(name) else None

    def exists(self, name: str) -> bool:
        """Return whether brokers know a topic."""
        context = self.office.context
        return any(tp in context.leadership for tp in context.partitions([name]))

    async def describe(self, wanted: Wanted) -> list[Any]:
        """Return all that is said of the topics that a client asks for."""
        told: list[Any] = [*topic_metadata.unknown_ids(wanted.unknown_ids)]
        described = 0
        for name in list(self.office.context.topics) if wanted.are_all else wanted.names:
            if self.may(Operation.DESCRIBE, topic(name)):
                states = self._states(name)
                if states:
                    told += self._known(name, states)
                elif not wanted.are_all:
                    told.append(topic_metadata.missing_topic(name, self._operations(name)))
                described += len(states)
            elif not wanted.are_all:
                told.append(topic_metadata.hidden_topic(name, wanted.ids.get(name)))
            described += 1
            if described >= SLICE:
                described = 0
                await checkpoint()
        return told

    def _states(self, name: str) -> list[PartitionState]:
        context = self.office.context
        return [context.describe(tp) for tp in context.partitions([name]) if tp in context.leadership]

    def _known(self, name: str, states: list[PartitionState]) -> list[Any]:
        topic_id = self.office.context.topic_id(name) if self.office.channels.have_topic_ids() else ""
        told = topic_metadata.topic_metadata(name, topic_id, states, self.nodes, self.version, self._operations(name))
        try:
            return [packed(told, kafka.MetadataResponse, self.version)]
        except CodecError:
            # Brokers cannot be told of this topic either.
            return []

    def _operations(self, name: str) -> int:
        return authorized_operations(topic(name), self.may) if self.has_operations else NOT_ASKED


def _of_cluster(may: May) -> int:
    return authorized_operations(CLUSTER, may) if may(Operation.DESCRIBE, CLUSTER) else 0


def _of_other_nodes(kind: int) -> kafka.DescribeClusterResponse:
    """Return the refusal to describe other nodes than brokers."""
    if kind not in _ENDPOINTS:
        text = f"Unsupported endpoint type {kind}"
        return kafka.DescribeClusterResponse(error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=text)
    text = (
        f"The request was sent to an endpoint of type {_ENDPOINTS[_BROKERS]}, but we wanted an endpoint of type"
        f" {_ENDPOINTS[kind]}"
    )
    return kafka.DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=text)
