"""The knowledge with which a controller decides about one partition."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import field, frozen

from transport.messages import ElectionType


class Standing(Enum):
    """The standing of one replica's broker, as a controller knows it."""

    LIVE = "live"
    LEAVING = "shutting down"
    """Registered, and in a controlled shutdown: it may neither lead nor join an ISR, but still follows."""

    LOGLESS = "cannot use its log"
    """Registered, but the replica's log directory has failed."""

    UNADDRESSABLE = "registered without a usable address"
    """Alive, and sent nothing: it keeps what it leads and its place in ISRs, and cannot be elected."""

    STUCK = "failed to follow"
    """Registered, but its service failed to follow: it may lead only as the last member of the ISR."""

    UNFIT = "failed to lead"
    """Registered, but its service failed to lead: it follows, and may lead only while no other member can."""

    DEAD = "not registered"


@frozen
class Proposal:
    """An ISR that a leader has proposed by AlterPartition."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    recovery: int


@frozen
class Asked:
    """The requests about a partition that a controller may have received."""

    targets: tuple[tuple[int, ...], ...] = ()
    """The replicas that a reassignment or a cancellation asks for."""

    orders: tuple[tuple[int, ...], ...] = ()
    """The orders of replicas whose first is to lead."""

    elections: frozenset[ElectionType] = frozenset()
    proposals: tuple[Proposal, ...] = ()


@frozen
class View:
    """The knowledge of a controller that holds office at `controller_epoch` and processes an event."""

    controller_epoch: int
    event: str
    standings: Mapping[int, Standing]
    """By broker. A broker that is not listed is dead."""

    asked: Asked = field(factory=Asked)
    min_isr: int = 1
    emptied: frozenset[int] = frozenset()
    """The brokers that have come back with another storage."""

    recalled: frozenset[int] = frozenset()
    """The replicas that may still execute an earlier order to delete their data."""

    controllers: frozenset[int] = frozenset()
    """The ids that are those of controllers, whom brokers of Kafka's give replicas."""

    def standing(self, replica: int) -> Standing:
        """Return the standing of a replica."""
        return self.standings.get(replica, Standing.DEAD)

    def is_online(self, replica: int) -> bool:
        """Return whether a replica may lead."""
        return self.standing(replica) is Standing.LIVE

    def holds(self, leader: int) -> bool:
        """Return whether a leader is alive and cannot be sent a later leader epoch, so that none is begun."""
        return self.standing(leader) is Standing.UNADDRESSABLE

    def may_be_assigned(self, replica: int) -> bool:
        """Return whether a broker may be given a replica: it can start it in another log directory."""
        return self.standing(replica) not in (Standing.DEAD, Standing.LEAVING)

    def is_served(self, replica: int) -> bool:
        """Return whether a replica can follow for now, if only until its shutdown ends."""
        return self.standing(replica) in (Standing.LIVE, Standing.LEAVING, Standing.UNFIT)

    def may_join(self, replica: int) -> bool:
        """Return whether a replica may join the ISR: it follows, and is not about to stop."""
        return self.standing(replica) in (Standing.LIVE, Standing.UNFIT)

    def online(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of the replicas that may lead."""
        return tuple(r for r in replicas if self.is_online(r))
