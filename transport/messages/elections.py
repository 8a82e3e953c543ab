"""Between administrators, brokers and the controller: who is to lead."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from attrs import frozen

from transport.messages.common import MAX_LISTED_PARTITIONS, PartitionError, Request
from transport.metadata import OfPartition


class ElectionType(IntEnum):
    """Which election is asked for (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@frozen
class LeaderOrder(OfPartition):
    """A partition and the order that its replicas are to have, the leader first: a permutation of what it has."""

    topic: str
    partition: int
    replicas: tuple[int, ...]


@frozen
class ElectLeadersResponse:
    """An outcome for each partition; those that needed no election are left out if none were named."""

    partitions: tuple[PartitionError, ...]


@frozen
class ElectLeadersRequest(Request[ElectLeadersResponse]):
    """Elect leaders for the partitions named as (topic, partition), or for all (KIP-183, KIP-460).

    With `orders`, since version 1, the replicas of the partitions that these name are put into a new order, and the
    first of it is elected, in one commit; of a partition for which that cannot be done nothing changes. Orders are for
    preferred elections only, and with them no `partitions` are none, not all.
    """

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    election_type: ElectionType
    partitions: tuple[tuple[str, int], ...] | None = None
    orders: tuple[LeaderOrder, ...] = ()


@frozen
class ControlledShutdownResponse:
    """The partitions, as (topic, partition), that the broker still leads and others could: empty means go."""

    remaining: tuple[tuple[str, int], ...]


@frozen
class ControlledShutdownRequest(Request[ControlledShutdownResponse]):
    """A broker that is about to stop asks to be relieved of what it leads and follows (KIP-49)."""

    broker_id: int
    broker_epoch: int
