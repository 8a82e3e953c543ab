"""The orders of a controller to brokers of Kafka's, as ours: what `transport.kafka.orders` does, backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from simulator.settings import CONTROLLERS
from transport.kafka import messages as kafka
from transport.kafka.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrTopicState
from transport.kafka.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataTopicState,
)
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    PartitionState,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import TopicPartition

LISTENER: Final = "PLAINTEXT"
"""The listener of all brokers and controllers."""

TopicIdOf = Callable[[TopicPartition], str]
"""Returns the topic id of the log that a broker has of a partition; "" if it has none."""


def leader_and_isr(message: kafka.LeaderAndIsrRequest) -> LeaderAndIsrRequest:
    """Return a LeaderAndIsr as ours."""
    partitions = [_led(topic, state) for topic in message.topic_states for state in topic.partition_states]
    return LeaderAndIsrRequest(message.controller_id, message.controller_epoch, message.broker_epoch, tuple(partitions))


def update_metadata(message: kafka.UpdateMetadataRequest) -> UpdateMetadataRequest:
    """Return an UpdateMetadata as ours. A controller that is not announced has the port 0."""
    nodes = [_endpoint(broker) for broker in message.live_brokers]
    unknown = BrokerEndpoint(message.controller_id, "", 0)
    controller = next((node for node in nodes if node.id == message.controller_id), unknown)
    partitions = [_known(topic, state) for topic in message.topic_states for state in topic.partition_states]
    return UpdateMetadataRequest(
        message.controller_id,
        message.controller_epoch,
        message.broker_epoch,
        controller,
        tuple(sorted((node for node in nodes if node.id not in CONTROLLERS), key=lambda node: node.id)),
        tuple(partitions),
    )


def stop_replica(message: kafka.StopReplicaRequest, topic_id_of: TopicIdOf) -> StopReplicaRequest:
    """Return a StopReplica as ours. It has no topic ids: it stops whatever the broker has under that name."""
    partitions = [
        StopReplicaPartition(
            topic.topic_name,
            topic_id_of(TopicPartition(topic.topic_name, state.partition_index)),
            state.partition_index,
            state.leader_epoch,
            state.delete_partition,
        )
        for topic in message.topic_states
        for state in topic.partition_states
    ]
    return StopReplicaRequest(message.controller_id, message.controller_epoch, message.broker_epoch, tuple(partitions))


def as_told(state: PartitionState) -> PartitionState:
    """Return a state without what an UpdateMetadata of Kafka's does not say."""
    return replace(state, adding_replicas=(), removing_replicas=(), leader_recovery_state=0)


def _led(topic: LeaderAndIsrTopicState, state: LeaderAndIsrPartitionState) -> LeaderAndIsrPartition:
    return LeaderAndIsrPartition(
        PartitionState(
            topic.topic_name,
            topic.topic_id,
            state.partition_index,
            state.controller_epoch,
            state.leader,
            state.leader_epoch,
            state.isr,
            state.partition_epoch,
            state.replicas,
            state.adding_replicas,
            state.removing_replicas,
            state.leader_recovery_state,
        ),
        state.is_new,
    )


def _known(topic: UpdateMetadataTopicState, state: UpdateMetadataPartitionState) -> PartitionState:
    return PartitionState(
        topic.topic_name,
        topic.topic_id,
        state.partition_index,
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        state.isr,
        state.zk_version,
        state.replicas,
        offline_replicas=state.offline_replicas,
    )


def _endpoint(broker: UpdateMetadataBroker) -> BrokerEndpoint:
    at = next((each for each in broker.endpoints if each.listener == LISTENER), None)
    return BrokerEndpoint(broker.id, "" if at is None else at.host, 0 if at is None else at.port, broker.rack)
