"""The values that znodes and messages both carry: partitions, assignments, leadership, brokers.

Pure values without I/O. Names and sentinels are Kafka's.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from attrs import frozen

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
LEADER_DURING_DELETE: Final = -2
EPOCH_DURING_DELETE: Final = -2
"""The leader epoch of a StopReplica that is obeyed whatever epoch the replica knows (KIP-570)."""

INITIAL_LEADER_EPOCH: Final = 0


class TopicPartition(NamedTuple):
    """One partition of one topic, ordered by topic name and then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Stray(NamedTuple):
    """A replica that no assignment names any more and that its broker may still have."""

    topic_id: str
    topic: str
    partition: int
    broker_id: int


class LeaderRecoveryState(IntEnum):
    """Whether the leader was elected from the ISR, or uncleanly and has not recovered yet (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


@frozen
class ReplicaAssignment:
    """Which brokers hold a partition, preferred leader first, and what a reassignment adds and removes.

    While a reassignment runs, `replicas` is the target followed by what is left of the original set
    (KIP-455), so that both can be computed back from one value.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """TRS: what the replica set will be when the reassignment is complete."""
        return tuple(r for r in self.replicas if r not in self.removing_replicas)

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        """ORS: what the replica set was before the reassignment began."""
        return tuple(r for r in self.replicas if r not in self.adding_replicas)

    @property
    def is_being_reassigned(self) -> bool:
        """Whether a reassignment of this partition has begun and has not ended."""
        return bool(self.adding_replicas or self.removing_replicas)


@frozen
class LeaderAndIsr:
    """A partition's leadership as its state znode has it.

    `partition_epoch` is the dataVersion of the state znode, `controller_epoch` that of the controller which wrote it.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


@frozen
class BrokerRegistration:
    """A broker as `/brokers/ids/N` announces it. `epoch` is that znode's czxid, the broker epoch."""

    id: int
    host: str
    port: int
    epoch: int
    rack: str | None = None
    storage_id: str | None = None
