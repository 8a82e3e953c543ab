"""The answers of brokers during one controllership, turned into events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import define, field

from controller.events import (
    BrokerReleaseSeen,
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    OrderFailed,
    ReplicasDeleted,
    ReplicasNotDeleted,
)
from controller.gathered import Outcomes
from transport.errors import ApiError, ErrorCode
from transport.kafka.releases import Release
from transport.log import get_logger
from transport.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionState,
    Request,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)
from transport.metadata import LEADER_DURING_DELETE, Stray, TopicPartition

log = get_logger(__name__)

_STALE: Final = frozenset((ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH))


@define
class BrokerResponses:
    """Turns answers into events, which it passes to `tell`. Each broker has one answer processed at a time."""

    tell: Callable[[ControllerEvent], object]
    are_kafkas: bool = False
    _news: dict[int, LeaderAndIsrResponseReceived] = field(factory=dict, init=False)
    """The event of each broker's latest incarnation, which collects its answers until the event is processed."""

    def take(self, broker_id: int, request: Request[object], response: object) -> None:
        """Process a broker's answer to a request: a response or an ApiError."""
        match request, response:
            case _, ApiError() as error:
                log.warning("broker refused", broker=broker_id, api=type(request).__name__, error=str(response))
                self._refused(broker_id, request, error)
            case LeaderAndIsrRequest(), LeaderAndIsrResponse():
                _log_refusals(broker_id, response)
                self._leader_and_isr(broker_id, request, response)
            case StopReplicaRequest(), StopReplicaResponse():
                _log_refusals(broker_id, response)
                self._stops(broker_id, request, response)
                failed = {item.tp for item in response.partitions if item.error is not ErrorCode.NONE}
                self._deletions(broker_id, request, failed)

    def release_seen(self, broker_id: int, broker_epoch: int, release: Release) -> None:
        """Process what a connection has shown of a broker."""
        self.tell(BrokerReleaseSeen(broker_id, broker_epoch, release))

    def _refused(self, broker_id: int, request: Request[object], error: ApiError) -> None:
        match request:
            case StopReplicaRequest():
                self._deletions(broker_id, request, {item.tp for item in request.partitions})
            case LeaderAndIsrRequest() | UpdateMetadataRequest() if self._is_failure(error):
                gone = _deleted(request) if self.are_kafkas and isinstance(request, UpdateMetadataRequest) else ()
                self.tell(OrderFailed(broker_id, request.broker_epoch, gone))

    def _is_failure(self, error: ApiError) -> bool:
        """Return whether an order is lost. Otherwise it is stale, and a newer one is on its way.

        A broker of ours that fails to lead or follow mostly says so for each partition. It answers INVALID_REQUEST to a
        copy of a request that it obeyed.
        """
        return error.code not in (_STALE if self.are_kafkas else _STALE | {ErrorCode.INVALID_REQUEST})

    def _deletions(self, broker_id: int, request: StopReplicaRequest, failed: set[TopicPartition]) -> None:
        orders = tuple([item for item in request.partitions if item.delete])
        left = tuple([item for item in orders if item.tp in failed]) if failed else ()
        deleted = tuple([item for item in orders if item.tp not in failed]) if failed else orders
        if deleted:
            self.tell(ReplicasDeleted(broker_id, deleted))
        if left:
            replicas = [Stray(item.topic_id, item.topic, item.partition, broker_id) for item in left]
            self.tell(ReplicasNotDeleted(tuple(replicas)))

    def _leader_and_isr(self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> None:
        event = self._event_of(broker_id, request)
        if event.outcomes.gather(broker_id, request, response):
            self.tell(event)

    def _stops(self, broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse) -> None:
        event = self._event_of(broker_id, request)
        if event.outcomes.gather_stops(request, response):
            self.tell(event)

    def _event_of(
        self, broker_id: int, request: LeaderAndIsrRequest | StopReplicaRequest
    ) -> LeaderAndIsrResponseReceived:
        """Return the event of a broker's incarnation; that of an earlier incarnation is replaced."""
        event = self._news.get(broker_id)
        epochs = request.broker_epoch, request.controller_epoch
        if event is None or (event.broker_epoch, event.controller_epoch) != epochs:
            event = LeaderAndIsrResponseReceived(broker_id, *epochs, Outcomes(self.are_kafkas))
            self._news[broker_id] = event
        return event


def _deleted(request: UpdateMetadataRequest) -> tuple[PartitionState, ...]:
    return tuple([state for state in request.partitions if state.leader == LEADER_DURING_DELETE])


def _log_refusals(broker_id: int, response: LeaderAndIsrResponse | StopReplicaResponse) -> None:
    # A look at all outcomes together is faster than one at each: almost always all are good.
    if {item.error for item in response.partitions} <= {ErrorCode.NONE}:
        return
    for item in response.partitions:
        if item.error is not ErrorCode.NONE:
            tp = item.tp
            log.warning("broker refused", broker=broker_id, partition=str(tp), error=item.error.name)
