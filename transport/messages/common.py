"""The parts that several messages share."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from transport.errors import ErrorCode
from transport.metadata import LeaderAndIsr, OfPartition, OfReplicas, ReplicaAssignment, TopicPartition

R_co = TypeVar("R_co", covariant=True)


MAX_LISTED_PARTITIONS: Final = 100_000
"""The most partitions that a request of administrators or brokers may list."""

MAX_LISTED_TOPICS: Final = 10_000
"""The most topics, or topics and brokers, that a request of administrators may list."""


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message, or a part of one: on the wire the array of its fields, in order.

    Messages are immutable trees, so the cycle collector (`gc`) need not search them: among the millions of objects of a
    large cluster it took most of the time of reading an answer.
    """


class Request(Message, Generic[R_co], frozen=True):
    """A message that is answered by one response of type R_co."""

    max_listed: ClassVar[int | None] = None
    """The most entries in each of its lists; None means no limit. A client with more entries sends `parts`."""

    @property
    def least_version(self) -> int:
        """The lowest version of its api at which a server understands it; one of a lower version would misread it."""
        return 0

    def parts(self) -> list[Self]:
        """Split the request into requests within `max_listed`."""
        lists, limit = self.lists(), self.max_listed
        longest = max(map(len, lists.values()), default=0)
        if limit is None or longest <= limit:
            return [self]
        cuts = [slice(start, start + limit) for start in range(0, longest, limit)]
        fields = [{name: entries[cut] for name, entries in lists.items()} for cut in cuts]
        return [replace(self, **part) for part in fields]

    def listed(self) -> int:
        """Return the number of entries in all lists together."""
        return sum(map(len, self.lists().values()))

    def lists(self) -> dict[str, tuple[Any, ...]]:
        """Return its lists, by the names of the fields."""
        return {name: value for name, value in asdict(self).items() if isinstance(value, tuple)}


class PartitionState(OfPartition, OfReplicas, Message, frozen=True):
    """The state of one partition as brokers receive it.

    `leader` is -1 for none and -2 while the topic is being deleted. `partition_epoch` is the version of the partition's
    state znode. At the end of a reassignment, `isr` may briefly have members outside `replicas` (KAFKA-9672).
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
        """Combine the contents of a partition's znodes."""
        topic, number = tp
        recovery = leadership.leader_recovery_state
        return cls(
            topic,
            topic_id,
            number,
            leadership.controller_epoch,
            leadership.leader,
            leadership.leader_epoch,
            leadership.isr,
            leadership.partition_epoch,
            assignment.replicas,
            assignment.adding_replicas,
            assignment.removing_replicas,
            int(recovery) if recovery else 0,
            offline_replicas,
        )

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is missing from the ISR; those that a reassignment adds need not be there yet."""
        return not set(self.origin_replicas) <= set(self.isr)


class BrokerEndpoint(Message, frozen=True):
    """The address of a broker or a controller."""

    id: int
    host: str
    port: int
    rack: str | None = None


class PartitionError(OfPartition, Message, frozen=True):
    """The outcome for one partition of a request about several."""

    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
