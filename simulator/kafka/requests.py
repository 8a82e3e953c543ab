"""The orders of a controller, carried out as a broker of Kafka's does, by the reference broker's replicas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import trio
from attrs import define, field

from broker.registration import Registration
from simulator.disk import Disk
from simulator.kafka import orders, rules
from simulator.kafka.metadata import KafkaMetadata
from simulator.kafka.releases import PROTOCOL, Release
from simulator.kafka.rules import Known
from simulator.kafka.service import KafkaService
from transport.errors import ApiError, ErrorCode
from transport.kafka import listeners, messages as kafka, releases
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.messages.leader_and_isr_response import LeaderAndIsrPartitionError, LeaderAndIsrTopicError
from transport.kafka.messages.stop_replica_response import StopReplicaPartitionError
from transport.kafka.schema import Message
from transport.messages import LeaderAndIsrPartition, PartitionState, StopReplicaPartition
from transport.metadata import TopicPartition
from transport.wire.errors import CodecError

Handler = Callable[[Any, int], Awaitable[Message]]
"""Answers a request in a version. Raises CodecError for one that ends the connection."""

_TOPIC_IDS_SINCE: Final = 5
"""The version of LeaderAndIsr since which an answer names topics by id."""


async def describe_configs(message: kafka.DescribeConfigsRequest, version: int) -> kafka.DescribeConfigsResponse:
    """Name the protocol of the cluster, and what its listener is for: the settings that a controller needs."""
    del version
    await trio.lowlevel.checkpoint()
    asked = [name for resource in message.resources for name in resource.configuration_keys or ()]
    found = tuple(DescribeConfigsResourceResult(name, _SETTINGS[name]) for name in asked if name in _SETTINGS)
    return kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(configs=found),))


_SETTINGS: Final = {
    releases.PROTOCOL: PROTOCOL,
    listeners.INTER_BROKER_LISTENER: orders.LISTENER,
    listeners.CONTROL_PLANE_LISTENER: None,
    listeners.LISTENERS: f"{orders.LISTENER}://:9092",
}


@define(eq=False)
class KafkaRequests:
    """The requests of the controller to one broker, which are carried out one at a time."""

    release: Release
    service: KafkaService
    disk: Disk
    _metadata: KafkaMetadata
    _registration: Registration
    _controller_epoch: int = field(default=rules.FIRST_CONTROLLER_EPOCH, init=False)
    _known: dict[TopicPartition, Known] = field(factory=dict, init=False)
    _offline: dict[TopicPartition, None] = field(factory=dict, init=False)
    """The replicas whose logs the broker gave up, until it restarts."""

    _one_at_a_time: trio.Lock = field(factory=trio.Lock, init=False)

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handlers of the controller's requests."""
        return {
            kafka.LeaderAndIsrRequest: self.leader_and_isr,
            kafka.StopReplicaRequest: self.stop_replica,
            kafka.UpdateMetadataRequest: self.update_metadata,
            kafka.DescribeConfigsRequest: describe_configs,
        }

    async def forget(self, tps: Iterable[TopicPartition]) -> None:
        """Give up replicas whose logs cannot be used, until the broker restarts."""
        self._offline.update(dict.fromkeys(tps))

    async def leader_and_isr(self, message: kafka.LeaderAndIsrRequest, version: int) -> kafka.LeaderAndIsrResponse:
        """Make replicas lead or follow."""
        async with self._one_at_a_time:
            error = await self._admit(message)
            if error is not ErrorCode.NONE:
                return kafka.LeaderAndIsrResponse(error_code=error.value)
            items = orders.leader_and_isr(message).partitions
            outcomes = [(item.state, await self._outcome(self._transition, item)) for item in items]
        by_topic: dict[str, list[LeaderAndIsrPartitionError]] = {}
        for state, outcome in outcomes:
            key = state.topic_id if version >= _TOPIC_IDS_SINCE else state.topic
            name = "" if version >= _TOPIC_IDS_SINCE else state.topic
            entry = LeaderAndIsrPartitionError(name, state.partition, outcome.value)
            by_topic.setdefault(key, []).append(entry)
        if version < _TOPIC_IDS_SINCE:
            return kafka.LeaderAndIsrResponse(partition_errors=tuple(each for of in by_topic.values() for each in of))
        topics = [LeaderAndIsrTopicError(topic_id, tuple(of)) for topic_id, of in by_topic.items()]
        return kafka.LeaderAndIsrResponse(topics=tuple(topics))

    async def stop_replica(self, message: kafka.StopReplicaRequest, version: int) -> kafka.StopReplicaResponse:
        """Stop replicas."""
        del version
        async with self._one_at_a_time:
            error = await self._admit(message)
            if error is not ErrorCode.NONE:
                return kafka.StopReplicaResponse(error_code=error.value)
            items = orders.stop_replica(message, self.disk.id_of).partitions
            outcomes = [(item, await self._outcome(self._stop, item)) for item in items]
        errors = [StopReplicaPartitionError(item.topic, item.partition, error.value) for item, error in outcomes]
        return kafka.StopReplicaResponse(partition_errors=tuple(errors))

    async def update_metadata(self, message: kafka.UpdateMetadataRequest, version: int) -> kafka.UpdateMetadataResponse:
        """Update the metadata of the cluster."""
        del version
        async with self._one_at_a_time:
            error = await self._admit(message)
            if error is ErrorCode.NONE:
                self._metadata.update(orders.update_metadata(message))
                await self.service.update_metadata(self._metadata)
            return kafka.UpdateMetadataResponse(error_code=error.value)

    async def _admit(self, message: Any) -> ErrorCode:  # noqa: ANN401  any of the three
        await self._registration.until_registered()
        if message.is_kraft_controller:
            raise CodecError("a controller of KRaft's is not one of this broker's")
        epochs = message.broker_epoch, message.controller_epoch
        error = rules.judge_request(*epochs, self._registration.epoch, self._controller_epoch)
        if error is ErrorCode.NONE:
            self._controller_epoch = message.controller_epoch
        return error

    async def _outcome(self, obey: Callable[[Any], Awaitable[ErrorCode]], item: Any) -> ErrorCode:  # noqa: ANN401
        try:
            return await obey(item)
        except ApiError as refusal:
            return refusal.code

    async def _transition(self, item: LeaderAndIsrPartition) -> ErrorCode:
        state, tp = item.state, item.state.tp
        if tp in self._offline or not self.disk.can_open(tp, is_new=item.is_new):
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self._known.get(tp)
        error = rules.judge_leader_and_isr(known, state, self.disk.id_of(tp), self._registration.broker_id)
        if error is not ErrorCode.NONE or self._is_older(known, state):
            return error
        if state.leader == self._registration.broker_id:
            await self.service.become_leader(state, is_new=item.is_new)
        elif self._metadata.broker(state.leader) is not None:
            await self.service.become_follower(state, is_new=item.is_new)
        else:
            # Kafka's broker logs an error, creates the log, and answers that all is well.
            self.service.hold(state, is_new=item.is_new)
            return ErrorCode.NONE
        self._known[tp] = Known(state.topic_id, state.leader_epoch, state.partition_epoch)
        return ErrorCode.NONE

    def _is_older(self, known: Known | None, state: PartitionState) -> bool:
        """Return whether a replica knows a later version of the ISR, so that it stays as it is."""
        if known is None:
            return False
        return state.partition_epoch < max(known.partition_epoch, self.service.partition_epoch(state.tp))

    async def _stop(self, item: StopReplicaPartition) -> ErrorCode:
        known = self._known.get(item.tp)
        if item.tp in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        error = rules.judge_stop_replica(known, item.leader_epoch, takes_equal=self.release.stops_at_equal_epoch)
        if error is ErrorCode.NONE:
            await self.service.stop_replica(item)
            if item.delete:
                self._known.pop(item.tp, None)
        return error
