"""A controller's orders to Kafka's brokers: LeaderAndIsr, UpdateMetadata and StopReplica.

Klamm's requests differ from Kafka's in a few ways, which are bridged here:

- An UpdateMetadata of ours may leave out the live brokers if they have not changed. Kafka's replaces all of them, so
  each request lists them all, with the addresses of all their listeners, and the controller itself.
- An answer to LeaderAndIsr names topics by id from version 5 on.
- A broker answers STALE_CONTROLLER_EPOCH for a partition whose leader epoch it knows already. That is no refusal.
- `number` and `topics` have no counterpart. Kafka's brokers forget a topic only if each of its partitions is sent with
  the leader -2.

What several brokers are sent together, in the same version, is packed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from attrs import frozen

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.leader_and_isr_request import LeaderAndIsrLiveLeader
from transport.kafka.messages.stop_replica_request import StopReplicaTopicV1
from transport.kafka.messages.stop_replica_response import StopReplicaPartitionError
from transport.kafka.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
)
from transport.kafka.packed_states import packed_metadata, packed_orders, packed_stops
from transport.kafka.schema import Message
from transport.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from transport.metadata import Listener
from transport.wire.errors import Untrusted

LEAST_VERSIONS: Final[Mapping[type[Message], int]] = {
    kafka.LeaderAndIsrRequest: 4,
    kafka.UpdateMetadataRequest: 6,
    kafka.StopReplicaRequest: 2,
}
"""The versions of Kafka 2.4. Earlier ones do not group partitions by topic, or do not say which replicas move."""

_NOT_PERMITTED: Final = (
    "the broker does not let us give orders: our principal needs ClusterAction on the cluster, or has to be one of its"
    " super.users"
)

_SAYS_WHAT_TO_DELETE: Final = 3


@frozen
class Node:
    """A broker or a controller as Kafka's brokers know it."""

    id: int
    listeners: tuple[Listener, ...]
    rack: str | None = None


# --- requests ---------------------------------------------------------------------------------------------------


def leader_and_isr(request: LeaderAndIsrRequest, version: int, nodes: Sequence[Node]) -> kafka.LeaderAndIsrRequest:
    """Return the LeaderAndIsr of a request. Raises CodecError if a row of it cannot be packed."""
    topics: Any = packed_orders(request.partitions, version)
    leaders = {item.state.leader for item in request.partitions}
    live = [node for node in nodes if node.id in leaders and node.listeners]
    return kafka.LeaderAndIsrRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=topics,
        live_leaders=tuple(
            LeaderAndIsrLiveLeader(node.id, node.listeners[0].host, node.listeners[0].port) for node in live
        ),
    )


def update_metadata(request: UpdateMetadataRequest, version: int, nodes: Sequence[Node]) -> kafka.UpdateMetadataRequest:
    """Return the UpdateMetadata of a request, with all nodes. Raises CodecError if a row of it cannot be packed."""
    topics: Any = packed_metadata(request.partitions, version)
    return kafka.UpdateMetadataRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=topics,
        live_brokers=tuple(map(_live_broker, nodes)),
    )


def stop_replicas(request: StopReplicaRequest, version: int) -> Iterator[kafka.StopReplicaRequest]:
    """Yield the StopReplicas of a request: before version 3, one for what is deleted, and then one for the rest."""
    if version >= _SAYS_WHAT_TO_DELETE:
        yield stop_replica(request)
        return
    for delete in (True, False):
        entries: dict[str, list[int]] = {}
        for item in request.partitions:
            if item.delete is delete:
                entries.setdefault(item.topic, []).append(item.partition)
        if entries:
            yield kafka.StopReplicaRequest(
                controller_id=request.controller_id,
                controller_epoch=request.controller_epoch,
                broker_epoch=request.broker_epoch,
                delete_partitions=delete,
                topics=tuple(StopReplicaTopicV1(topic, tuple(of)) for topic, of in entries.items()),
            )


def stop_replica(request: StopReplicaRequest) -> kafka.StopReplicaRequest:
    """Return the StopReplica of a request, from version 3 on. Raises CodecError if a row of it cannot be packed."""
    topics: Any = packed_stops(request.partitions)
    return kafka.StopReplicaRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=topics,
    )


def _live_broker(node: Node) -> UpdateMetadataBroker:
    endpoints = [UpdateMetadataEndpoint(at.port, at.host, at.name, at.protocol) for at in node.listeners]
    return UpdateMetadataBroker(id=node.id, endpoints=tuple(endpoints), rack=node.rack)


# --- answers ----------------------------------------------------------------------------------------------------


def leader_and_isr_answer(request: LeaderAndIsrRequest, answer: kafka.LeaderAndIsrResponse) -> LeaderAndIsrResponse:
    """Return the outcomes of a LeaderAndIsr. Raises ApiError if the broker refused all of it."""
    _require_accepted(answer.error_code)
    names = {item.state.topic_id: item.state.topic for item in request.partitions}
    found = [(names.get(topic.topic_id, ""), topic.partition_errors) for topic in answer.topics]
    outcome = cache(_outcome)
    outcomes = [
        PartitionError(name, error.partition_index, outcome(error.error_code))
        for name, errors in found
        for error in errors
    ]
    outcomes += [
        PartitionError(error.topic_name, error.partition_index, outcome(error.error_code))
        for error in answer.partition_errors
    ]
    return LeaderAndIsrResponse(tuple(outcomes))


def update_metadata_answer(answer: kafka.UpdateMetadataResponse) -> UpdateMetadataResponse:
    """Return the answer to an UpdateMetadata. Raises ApiError if the broker refused it."""
    _require_accepted(answer.error_code)
    return UpdateMetadataResponse()


def stop_replica_answer(answers: Iterable[kafka.StopReplicaResponse]) -> StopReplicaResponse:
    """Return the outcomes of the StopReplicas of a request. Raises ApiError if the broker refused all of one."""
    errors: list[PartitionError] = []
    for answer in answers:
        _require_accepted(answer.error_code)
        errors += _errors(answer.partition_errors)
    return StopReplicaResponse(tuple(errors))


def _errors(errors: Iterable[StopReplicaPartitionError]) -> list[PartitionError]:
    outcome = cache(ErrorCode)
    return [PartitionError(one.topic_name, one.partition_index, outcome(one.error_code)) for one in errors]


def _require_accepted(error_code: int) -> None:
    """Raise ApiError for an order that is refused; Untrusted if an ACL is missing, after which it is not lost."""
    if error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise Untrusted(_NOT_PERMITTED)
    if error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(error_code), "the broker refused the request")


def _outcome(error_code: int) -> ErrorCode:
    """Return the outcome for a partition; a broker that knows its leader epoch already has nothing to do."""
    return ErrorCode.NONE if error_code == ErrorCode.STALE_CONTROLLER_EPOCH else ErrorCode(error_code)
