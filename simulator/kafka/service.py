"""The replicas of a broker of Kafka's: those of the reference broker, with Kafka's rules for the ISR."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from broker.kit import BrokerHandle
from broker.reference.leadership import Leadership, Settled
from simulator.disk import Disk
from simulator.followers import Neglect, SimulatedService
from simulator.kafka.releases import Release
from transport.errors import ApiError, ErrorCode
from transport.messages import AlterPartitionItem, AlterPartitionResult, PartitionState
from transport.metadata import NO_EPOCH, TopicPartition

_FREEZES: Final = ErrorCode.INVALID_REQUEST
"""The answer after which the reference broker would try again; Kafka's waits for the next leader epoch."""

_GIVEN_UP: Final = (
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
)
"""The answers after which a broker that repeats refused proposals does not."""


class KafkaService(SimulatedService):
    """Replicas whose leaders learn of ISRs by the answers to their own proposals and by new leader epochs alone."""

    are_orders_repeated = False

    def __init__(self, handle: BrokerHandle, disk: Disk, neglect: Neglect, release: Release) -> None:
        super().__init__(handle, disk, neglect)
        self._release = release

    def hold(self, state: PartitionState, *, is_new: bool) -> None:
        """Create the log of a replica without leading or following. Raises ApiError if that cannot be done."""
        if state.tp not in self._replicas:
            try:
                self._logs.open(state.tp, state.topic_id, is_new=is_new).close()
            except OSError as error:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def partition_epoch(self, tp: TopicPartition) -> int:
        """Return the version of the ISR that a replica leads with, -1 if it does not lead."""
        replica = self._replicas.get(tp)
        return NO_EPOCH if replica is None or replica.leadership is None else replica.leadership.state.partition_epoch

    def _catch_up(self, replica: object, leadership: Leadership, news: PartitionState | None) -> None:
        """Do nothing: Kafka's brokers adopt no ISR from UpdateMetadata."""

    def _settle(self, item: AlterPartitionItem, result: AlterPartitionResult) -> Settled:
        if self._release.repeats_refused and result.error not in _GIVEN_UP:
            return Settled.TRY_AGAIN if self._is_pending(item) else Settled.DONE
        if result.error is _FREEZES:
            result = replace(result, error=ErrorCode.INVALID_UPDATE_VERSION)
        # An answer about an older state says nothing, and the proposal stays pending.
        is_granted = result.error is ErrorCode.NONE
        if is_granted and (result.leader_epoch != item.leader_epoch or result.partition_epoch < item.partition_epoch):
            return Settled.DONE
        return super()._settle(item, result)

    def _is_pending(self, item: AlterPartitionItem) -> bool:
        replica = self._replicas.get(item.tp)
        return replica is not None and replica.leadership is not None and replica.leadership.is_pending(item)
