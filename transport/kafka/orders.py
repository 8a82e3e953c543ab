"""A controller's orders to Kafka's brokers: LeaderAndIsr, UpdateMetadata and StopReplica.

Klamm's requests differ from Kafka's in a few ways, which are bridged here:

- An UpdateMetadata of ours may leave out the live brokers if they have not changed. Kafka's replaces all of them, so
  each request lists them all, with the addresses of all their listeners, and the controller itself.
- An answer to LeaderAndIsr names topics by id from version 5 on.
- A broker answers STALE_CONTROLLER_EPOCH for a partition whose leader epoch it knows already. That is no refusal.
- `number` and `topics` have no counterpart. Kafka's brokers forget a topic only if each of its partitions is sent with
  the leader -2.

The state of a partition has the same bytes for every broker that is sent it in the same version, and is packed once. So
are the topics of an UpdateMetadata, since most of them go to all brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.codec import Packed, packed
from transport.kafka.messages.leader_and_isr_request import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrTopicState,
)
from transport.kafka.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from transport.kafka.messages.stop_replica_response import StopReplicaPartitionError
from transport.kafka.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataTopicState,
)
from transport.kafka.schema import Message
from transport.messages import (
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionState,
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

_HAS_RECOVERY_STATE: Final = 6
_SAYS_WHAT_TO_DELETE: Final = 3
_REMEMBERED: Final = 200_000
_REMEMBERED_LISTS: Final = 10


@frozen
class Node:
    """A broker or a controller as Kafka's brokers know it."""

    id: int
    listeners: tuple[Listener, ...]
    rack: str | None = None


@define
class PackedStates:
    """The bytes of the partition states that were packed last, which other brokers are sent too.

    A state is known by its identity: comparing states would take longer than packing them.
    """

    _packed: dict[tuple[int, type[Message], int, bool], tuple[PartitionState, Packed]] = field(factory=dict, init=False)

    _topics: dict[tuple[int, int, int], tuple[tuple[PartitionState, ...], tuple[Any, ...]]] = field(
        factory=dict, init=False
    )
    """The last lists of states in UpdateMetadata with the bytes of their topics, by version, length and first state."""

    def topics(self, states: tuple[PartitionState, ...], version: int) -> tuple[Any, ...]:
        """Return the bytes in place of the topics of an UpdateMetadata with these states. Raises CodecError."""
        key = version, len(states), id(states[0]) if states else 0
        known = self._topics.get(key)
        # Lists of identical states compare without a look into the states.
        if known is not None and known[0] == states:
            return known[1]
        topics = tuple(
            packed(topic, kafka.UpdateMetadataRequest, version) for topic in self._update_metadata(states, version)
        )
        self._topics[key] = states, topics
        if len(self._topics) > _REMEMBERED_LISTS:
            del self._topics[next(iter(self._topics))]
        return topics

    def leader_and_isr(self, item: LeaderAndIsrPartition, version: int) -> Any:
        """Return the bytes in place of a partition's entry in LeaderAndIsr. Raises CodecError."""
        return self._find(item.state, kafka.LeaderAndIsrRequest, version, is_new=item.is_new)

    def update_metadata(self, state: PartitionState, version: int) -> Any:
        """Return the bytes in place of a partition's entry in UpdateMetadata. Raises CodecError."""
        return self._find(state, kafka.UpdateMetadataRequest, version)

    def _update_metadata(self, states: Iterable[PartitionState], version: int) -> Iterator[UpdateMetadataTopicState]:
        """Yield the topics of an UpdateMetadata."""
        entries: dict[tuple[str, str], list[Any]] = {}
        for state in states:
            entries.setdefault((state.topic, state.topic_id), []).append(self.update_metadata(state, version))
        for topic, of in entries.items():
            yield UpdateMetadataTopicState(*topic, tuple(of))

    def _find(self, state: PartitionState, message: type[Message], version: int, *, is_new: bool = False) -> Packed:
        key = id(state), message, version, is_new
        known = self._packed.get(key)
        # An entry keeps its state alive, so that no other state can have its id meanwhile.
        if known is not None:
            return known[1]
        is_order = message is kafka.LeaderAndIsrRequest
        entity = _leader_and_isr(state, version, is_new=is_new) if is_order else _update_metadata(state)
        entry = packed(entity, message, version)
        self._packed[key] = state, entry
        if len(self._packed) > _REMEMBERED:
            del self._packed[next(iter(self._packed))]
        return entry


def _leader_and_isr(state: PartitionState, version: int, *, is_new: bool) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=state.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
        is_new=is_new,
        leader_recovery_state=state.leader_recovery_state if version >= _HAS_RECOVERY_STATE else 0,
    )


def _update_metadata(state: PartitionState) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=state.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.partition_epoch,
        replicas=state.replicas,
        offline_replicas=state.offline_replicas,
    )


# --- requests ---------------------------------------------------------------------------------------------------


def leader_and_isr(
    request: LeaderAndIsrRequest, version: int, nodes: Sequence[Node], states: PackedStates
) -> kafka.LeaderAndIsrRequest:
    """Return the LeaderAndIsr of a request. Raises CodecError if a row of it cannot be packed."""
    entries: dict[tuple[str, str], list[Any]] = {}
    for item in request.partitions:
        entries.setdefault((item.state.topic, item.state.topic_id), []).append(states.leader_and_isr(item, version))
    leaders = {item.state.leader for item in request.partitions}
    live = [node for node in nodes if node.id in leaders and node.listeners]
    return kafka.LeaderAndIsrRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=tuple([LeaderAndIsrTopicState(*topic, tuple(of)) for topic, of in entries.items()]),
        live_leaders=tuple(
            LeaderAndIsrLiveLeader(node.id, node.listeners[0].host, node.listeners[0].port) for node in live
        ),
    )


def update_metadata(
    request: UpdateMetadataRequest, version: int, nodes: Sequence[Node], states: PackedStates
) -> kafka.UpdateMetadataRequest:
    """Return the UpdateMetadata of a request, with all nodes. Raises CodecError if a row of it cannot be packed."""
    return kafka.UpdateMetadataRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=states.topics(request.partitions, version),
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
    """Return the StopReplica of a request, from version 3 on."""
    entries: dict[str, list[StopReplicaPartitionState]] = {}
    for item in request.partitions:
        entry = StopReplicaPartitionState(item.partition, item.leader_epoch, item.delete)
        entries.setdefault(item.topic, []).append(entry)
    return kafka.StopReplicaRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=tuple(StopReplicaTopicState(topic, tuple(of)) for topic, of in entries.items()),
    )


def _live_broker(node: Node) -> UpdateMetadataBroker:
    endpoints = [UpdateMetadataEndpoint(at.port, at.host, at.name, at.protocol) for at in node.listeners]
    return UpdateMetadataBroker(id=node.id, endpoints=tuple(endpoints), rack=node.rack)


# --- answers ----------------------------------------------------------------------------------------------------


def leader_and_isr_answer(request: LeaderAndIsrRequest, answer: kafka.LeaderAndIsrResponse) -> LeaderAndIsrResponse:
    """Return the outcomes of a LeaderAndIsr. Raises ApiError if the broker refused all of it."""
    _require_accepted(answer.error_code)
    names = {item.state.topic_id: item.state.topic for item in request.partitions}
    found = [(names.get(topic.topic_id, ""), error) for topic in answer.topics for error in topic.partition_errors]
    found += [(error.topic_name, error) for error in answer.partition_errors]
    outcomes = [PartitionError(topic, error.partition_index, _outcome(error.error_code)) for topic, error in found]
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
    return [PartitionError(one.topic_name, one.partition_index, ErrorCode(one.error_code)) for one in errors]


def _require_accepted(error_code: int) -> None:
    """Raise ApiError for an order that is refused; Untrusted if an ACL is missing, after which it is not lost."""
    if error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise Untrusted(_NOT_PERMITTED)
    if error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(error_code), "the broker refused the request")


def _outcome(error_code: int) -> ErrorCode:
    """Return the outcome for a partition; a broker that knows its leader epoch already has nothing to do."""
    return ErrorCode.NONE if error_code == ErrorCode.STALE_CONTROLLER_EPOCH else ErrorCode(error_code)
