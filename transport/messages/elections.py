"""Messages between administrators, brokers and the controller: leader elections."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from transport.messages.common import MAX_LISTED_PARTITIONS, Message, PartitionError, Request
from transport.metadata import OfPartition, TopicPartition


class ElectionType(IntEnum):
    """The type of an election (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class LeaderOrder(OfPartition, Message, frozen=True):
    """A partition and the new order of its replicas, the leader first: a permutation of its replica set."""

    topic: str
    partition: int
    replicas: tuple[int, ...]


class ElectLeadersResponse(Message, frozen=True):
    """An outcome for each partition. If none were requested, those that needed no election are left out."""

    partitions: tuple[PartitionError, ...]


class ElectLeadersRequest(Request[ElectLeadersResponse], frozen=True):
    """Elect leaders for the partitions given, or for all (KIP-183, KIP-460).

    `orders`, since version 1, gives partitions a new order of their replicas and elects the first one, in one commit. A
    partition for which this fails does not change. Orders are valid only for preferred elections; if there are any,
    `partitions` None means none instead of all.
    """

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    election_type: ElectionType
    partitions: tuple[TopicPartition, ...] | None = None
    orders: tuple[LeaderOrder, ...] = ()


class ControlledShutdownResponse(Message, frozen=True):
    """The partitions that the broker still leads and others could lead. Empty means: stop."""

    remaining: tuple[TopicPartition, ...]


class ControlledShutdownRequest(Request[ControlledShutdownResponse], frozen=True):
    """Ask the controller, as a broker that will stop, to move leadership away and to stop its replicas (KIP-49)."""

    broker_id: int
    broker_epoch: int
