"""The values that both znodes and messages carry: partitions, assignments, leadership, brokers.

Pure values, without I/O. Names and sentinels are Kafka's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import repeat
from typing import Final, NamedTuple

from attrs import frozen
from msgspec import Struct

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
LEADER_DURING_DELETE: Final = -2
EPOCH_DURING_DELETE: Final = -2
"""The leader epoch of a StopReplica that takes effect whatever epoch the replica knows (KIP-570)."""

INITIAL_LEADER_EPOCH: Final = 0

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""The topics of Kafka's own, which it tells from others by their names."""

MAX_NUMBER: Final = 2**31 - 1
"""The largest broker id, partition number or epoch: Kafka's messages carry them as int32."""

MAX_RISING_EPOCH: Final = 2**30
"""The largest stored epoch that is accepted. Epochs rise by one, so a larger one was written by mistake, and the next
ones would leave the range."""

MAX_PORT: Final = 65_535
MAX_TEXT: Final = 32_767
"""The longest text, in characters, that Kafka's messages carry."""

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_ID: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")


def is_topic_name(name: str) -> bool:
    """Return whether Kafka allows a topic of this name."""
    return _TOPIC_NAME.fullmatch(name) is not None and name not in {".", ".."}


def is_topic_id(text: str) -> bool:
    """Return whether a text may be a topic's id: not only Kafka's form, but anything fit for a path."""
    return _TOPIC_ID.fullmatch(text) is not None


def number_in(text: str) -> int | None:
    """Return the broker id or partition number in a text; None unless it is in canonical form."""
    number = int(text) if _NUMBER.fullmatch(text) else None
    return number if number is not None and number <= MAX_NUMBER else None


class TopicPartition(NamedTuple):
    """One partition of one topic, ordered by topic name and then by number."""

    topic: str
    partition: int

    @classmethod
    def of_topic(cls, topic: str, numbers: Iterable[int]) -> Iterator[TopicPartition]:
        """Yield partitions of a topic."""
        # Not by the function in Python that a named tuple has: a large cluster has millions of them.
        return map(tuple.__new__, repeat(cls), zip(repeat(topic), numbers))

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OfPartition:
    """A row about one partition, which its fields `topic` and `partition` name."""

    __slots__ = ()

    topic: str
    partition: int

    @property
    def tp(self) -> TopicPartition:
        """The partition that the row is about."""
        return TopicPartition(self.topic, self.partition)


class OfReplicas:
    """A row about a partition's replicas, which its fields `replicas`, `adding_replicas` and `removing_replicas` list.

    While a reassignment is in progress, `replicas` is the target followed by the rest of the original set (KIP-455), so
    that both sets follow from the fields.
    """

    __slots__ = ()

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replica set after the reassignment (Kafka's TRS)."""
        return tuple([r for r in self.replicas if r not in self.removing_replicas])

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        """The replica set before the reassignment (Kafka's ORS), which a cancellation restores."""
        return tuple([r for r in self.replicas if r not in self.adding_replicas])

    @property
    def is_being_reassigned(self) -> bool:
        """Whether a reassignment of this partition is in progress."""
        return bool(self.adding_replicas or self.removing_replicas)


class Stray(NamedTuple):
    """A replica that is no longer in any assignment and that its broker may still have."""

    topic_id: str
    topic: str
    partition: int
    broker_id: int

    @property
    def tp(self) -> TopicPartition:
        """The partition that it was a replica of."""
        return TopicPartition(self.topic, self.partition)

    @property
    def replica(self) -> tuple[TopicPartition, int]:
        """The partition and the broker."""
        return self.tp, self.broker_id


class LeaderRecoveryState(IntEnum):
    """Whether the leader was elected from the ISR, or was elected uncleanly and has not recovered yet (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


@frozen
class ReplicaAssignment(OfReplicas):
    """The brokers that hold a partition, preferred leader first, and those that a reassignment adds and removes."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class LeaderAndIsr(Struct, frozen=True, gc=False):
    """A partition's leadership as stored in its state znode.

    `partition_epoch` is the dataVersion of that znode, `controller_epoch` the epoch of the controller that wrote it.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


NEVER_LED: Final = LeaderAndIsr(NO_LEADER, NO_EPOCH, (), NO_EPOCH, NO_EPOCH)
"""The leadership of a partition whose state has not been created yet."""


class SecurityProtocol(IntEnum):
    """The protocols below Kafka's, with the numbers that its messages give them."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


@frozen
class Listener:
    """An address at which a broker of Kafka's listens, for the clients that use the listener of this name."""

    name: str
    host: str
    port: int
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


@frozen
class BrokerRegistration:
    """A broker as registered in `/brokers/ids/N`. `epoch`, the broker epoch, is the czxid of that znode.

    `host` and `port` are the address for the controller. `listeners` has all addresses of a broker of Kafka's, and is
    empty for one of ours.
    """

    id: int
    host: str
    port: int
    epoch: int
    rack: str | None = None
    storage_id: str | None = None
    listeners: tuple[Listener, ...] = ()

    @property
    def is_kafkas(self) -> bool:
        """Whether the broker speaks Kafka's protocol."""
        return bool(self.listeners)
