"""What more than one message carries."""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import frozen

from transport.errors import ErrorCode
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition

R_co = TypeVar("R_co", covariant=True)


class Request(Generic[R_co]):
    """A message that is answered by one response of type R_co."""

    __slots__ = ()


class PackedOnce:
    """A message that many others carry: its encoding is kept in it, apart from its fields, equality and copies."""

    __slots__ = ("packed",)

    packed: bytes


@frozen
class PartitionState(PackedOnce):
    """All that a broker is told about one partition. Packed once, whatever the number of brokers told.

    `leader` is -1 for none and -2 while the topic is being deleted. `partition_epoch` is the version of the
    partition's state znode; `isr` may briefly exceed `replicas` at the end of a reassignment (KAFKA-9672).
    """

    topic: str
    topic_id: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    offline_replicas: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        tp: TopicPartition,
        topic_id: str,
        assignment: ReplicaAssignment,
        leadership: LeaderAndIsr,
        offline_replicas: tuple[int, ...] = (),
    ) -> PartitionState:
        """Join what the znodes of a partition hold."""
        return cls(
            tp.topic,
            topic_id,
            tp.partition,
            leadership.controller_epoch,
            leadership.leader,
            leadership.leader_epoch,
            leadership.isr,
            leadership.partition_epoch,
            assignment.replicas,
            assignment.adding_replicas,
            assignment.removing_replicas,
            int(leadership.leader_recovery_state),
            offline_replicas,
        )


@frozen
class BrokerEndpoint:
    """Where a broker or a controller listens."""

    id: int
    host: str
    port: int
    rack: str | None = None


@frozen
class PartitionError:
    """The outcome for one partition of a request that named several."""

    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
