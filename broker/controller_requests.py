"""The handlers of the controller's requests: first the fence, then the service, one request at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import trio
from attrs import define, field
from msgspec.structs import replace

from broker.fencing import ControllerFence, HostedReplica, Verdict, judge_leader_and_isr, judge_stop_replica
from broker.metadata_cache import MetadataCache
from broker.registration import Registration
from broker.service import Service
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.messages import (
    NOT_FAILURES,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionError,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from transport.metadata import TopicPartition
from transport.wire import Handlers

P = TypeVar("P")

MAX_REASON: Final = 500
"""The most characters of a service's error that the controller is sent: the broker's log has all of it."""

_log = get_logger(__name__)


@define(eq=False)
class ControllerRequests:
    """The broker's side of the controller's channel.

    A request may be a duplicate, or arrive late on a connection that the controller has abandoned. Requests are
    therefore handled one at a time, and orders that were carried out are answered without calling the service again.
    """

    _service: Service
    _metadata: MetadataCache
    _registration: Registration
    _fence: ControllerFence = field(factory=ControllerFence)
    _hosted: dict[TopicPartition, HostedReplica] = field(factory=dict)
    _one_at_a_time: trio.Lock = field(factory=trio.Lock)

    def handlers(self) -> Handlers:
        """Return the handlers of the controller's requests and of Metadata."""
        return {
            LeaderAndIsrRequest: self.leader_and_isr,
            StopReplicaRequest: self.stop_replica,
            UpdateMetadataRequest: self.update_metadata,
            MetadataRequest: self.metadata,
        }

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Make each partition lead or follow. Raises ApiError if the request is fenced."""
        async with self._one_at_a_time:
            await self._admit(request)
            outcomes = [await _outcome(item.state.tp, self._transition, item) for item in request.partitions]
            return LeaderAndIsrResponse(tuple(outcomes))

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop each partition. Raises ApiError if the request is fenced."""
        async with self._one_at_a_time:
            await self._admit(request)
            outcomes = [await _outcome(item.tp, self._stop, item) for item in request.partitions]
            return StopReplicaResponse(tuple(outcomes))

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Update the metadata of the cluster. Raises ApiError if the request is fenced."""
        async with self._one_at_a_time:
            await self._admit(request)
            self._metadata.update(request)
            await self._service.update_metadata(self._metadata)
            return UpdateMetadataResponse()

    async def _admit(self, request: LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest) -> None:
        # Before its registration, a broker cannot recognise requests for its predecessor at this address.
        await self._registration.until_registered()
        registration = self._registration
        self._fence.admit(request, registration.epoch, is_registering=registration.is_under_way)

    async def forget(self, tps: Iterable[TopicPartition]) -> None:
        """Forget the orders of replicas, so that the next ones reach the service whatever their epochs."""
        async with self._one_at_a_time:
            for tp in tps:
                self._hosted.pop(tp, None)

    async def metadata(self, request: MetadataRequest) -> MetadataResponse:
        """Describe the cluster as this broker knows it."""
        return self._metadata.describe(request)

    async def _transition(self, partition: LeaderAndIsrPartition) -> None:
        state = partition.state
        tp = state.tp
        verdict = judge_leader_and_isr(self._hosted.get(tp), state)
        if verdict is Verdict.KNOWN:
            return
        leads = state.leader == self._registration.broker_id
        obey = self._service.become_leader if leads else self._service.become_follower
        with _faults_of_service():
            await obey(state, is_new=partition.is_new)
        self._hosted[tp] = HostedReplica(state)

    async def _stop(self, partition: StopReplicaPartition) -> None:
        tp = partition.tp
        hosted = self._hosted.get(tp)
        if not judge_stop_replica(hosted, partition):
            return
        with _faults_of_service():
            await self._service.stop_replica(partition)
        if partition.delete:
            self._hosted.pop(tp, None)
        elif hosted is not None:
            epoch = max(hosted.state.leader_epoch, partition.leader_epoch)
            self._hosted[tp] = HostedReplica(replace(hosted.state, leader_epoch=epoch), stopped=True)


@contextmanager
def _faults_of_service() -> Iterator[None]:
    """Let the controller take an error of the service for a failure, never for an order that is stale."""
    try:
        yield
    except ApiError as error:
        if error.code not in NOT_FAILURES:
            raise
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


async def _outcome(tp: TopicPartition, obey: Callable[[P], Awaitable[None]], order: P) -> PartitionError:
    try:
        await obey(order)
    except ApiError as error:
        _log.warning("an order failed", topic=tp.topic, partition=tp.partition, error=str(error))
        return PartitionError(*tp, error.code, error.message[:MAX_REASON])
    except Exception as fault:  # noqa: BLE001  a fault of one partition must not affect the others
        _log.exception("an order failed", topic=tp.topic, partition=tp.partition)
        reason = f"{type(fault).__name__}: {fault}"[:MAX_REASON]
        return PartitionError(*tp, ErrorCode.UNKNOWN_SERVER_ERROR, reason)
    return PartitionError(*tp)
