"""Answers to Metadata, in the form and with the errors of Kafka's brokers in ZooKeeper mode.

- In version 0 an empty list of topics stands for all, and replicas on brokers that are not alive are left out.
- From version 12 on, topics may be named by their ids. If one of them is, names do not count.
- Ids are no secret. The existence of a name that a client may not describe is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from attrs import field, frozen

from transport.errors import ApiError, ErrorCode
from transport.kafka.messages import MetadataRequest, MetadataResponse
from transport.kafka.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from transport.kafka.orders import Node
from transport.messages import PartitionState
from transport.metadata import INTERNAL_TOPICS, NO_LEADER, Listener, is_topic_name

_TELLS_MISSING_LISTENERS: Final = 6
_TAKES_IDS: Final = 12


@frozen
class Nodes:
    """The nodes of a cluster that are alive, as clients at a listener see them."""

    listener: str
    all: Sequence[Node]
    at: Mapping[int, Listener] = field(init=False)
    """The addresses at the listener, by the ids of the nodes that have one."""

    @at.default
    def _find(self) -> Mapping[int, Listener]:
        return {node.id: at for node in self.all for at in node.listeners if at.name == self.listener}

    @cached_property
    def live(self) -> frozenset[int]:
        """The ids of all nodes, whether or not they have an address at the listener."""
        return frozenset(node.id for node in self.all)

    def racks(self) -> Mapping[int, str | None]:
        """Return the racks of the nodes that have an address at the listener."""
        return {node.id: node.rack for node in self.all if node.id in self.at}

    def brokers(self) -> tuple[MetadataResponseBroker, ...]:
        """Return the nodes that have an address at the listener."""
        racks = self.racks()
        return tuple(MetadataResponseBroker(id_, at.host, at.port, racks[id_]) for id_, at in self.at.items())


@frozen
class Wanted:
    """The topics that a client asks for."""

    names: tuple[str, ...] = ()
    are_all: bool = False
    """Whether it asks for all of them, so that `names` has none."""

    ids: Mapping[str, str] = field(factory=dict)
    """The ids by the names of topics, if it asks by ids."""

    unknown_ids: tuple[str, ...] = ()


def wanted_topics(message: MetadataRequest, version: int, name_of: Callable[[str], str | None]) -> Wanted:
    """Return what a client asks for; `name_of` returns the name of the topic with an id. Raises ApiError."""
    if message.topics is None or (version == 0 and not message.topics):
        return Wanted(are_all=True)
    ids = [topic.topic_id for topic in message.topics if topic.topic_id]
    names = dict.fromkeys(topic.name for topic in message.topics)
    if version < _TAKES_IDS and (ids or None in names):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if ids:
        found = {topic_id: name_of(topic_id) for topic_id in ids}
        known = {name: topic_id for topic_id, name in found.items() if name is not None}
        unknown = tuple(topic_id for topic_id, name in found.items() if name is None)
        return Wanted(tuple(known), ids=known, unknown_ids=unknown)
    if None in names:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Wanted(tuple(name for name in names if name is not None))


def refused(message: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    """Return the answer to a request that is refused as a whole."""
    topics = [MetadataResponseTopic(code, topic.name or "", topic.topic_id) for topic in message.topics or ()]
    return MetadataResponse(topics=tuple(topics))


def unknown_ids(topic_ids: Iterable[str]) -> list[MetadataResponseTopic]:
    """Return what is said of ids that no topic has."""
    return [MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id) for topic_id in topic_ids]


def hidden_topic(name: str, topic_id: str | None) -> MetadataResponseTopic:
    """Return what is said of a topic that the client may not describe; with an id if it was asked for by that."""
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return MetadataResponseTopic(denied, name) if topic_id is None else MetadataResponseTopic(denied, None, topic_id)


def missing_topic(name: str, operations: int) -> MetadataResponseTopic:
    """Return what is said of a name that no topic has."""
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(
        error, name, is_internal=name in INTERNAL_TOPICS, topic_authorized_operations=operations
    )


def topic_metadata(
    name: str, topic_id: str, states: Iterable[PartitionState], nodes: Nodes, version: int, operations: int
) -> MetadataResponseTopic:
    """Return what is said of a topic with partitions in these states."""
    return MetadataResponseTopic(
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=tuple([_partition(state, nodes, version) for state in states]),
        topic_authorized_operations=operations,
    )


def _partition(state: PartitionState, nodes: Nodes, version: int) -> MetadataResponsePartition:
    replicas, isr = state.replicas, state.isr
    if version == 0:
        replicas = tuple(one for one in replicas if one in nodes.at)
        isr = tuple(one for one in isr if one in nodes.at)
    error = ErrorCode.NONE
    if state.leader not in nodes.at:
        is_live = state.leader in nodes.live and version >= _TELLS_MISSING_LISTENERS
        error = ErrorCode.LISTENER_NOT_FOUND if is_live else ErrorCode.LEADER_NOT_AVAILABLE
    elif len(replicas) + len(isr) < len(state.replicas) + len(state.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error,
        state.partition,
        state.leader if state.leader in nodes.at else NO_LEADER,
        state.leader_epoch,
        replicas,
        isr,
        state.offline_replicas,
    )
