"""The reference service of a simulated broker, whose replicas can be kept from fetching and out of the ISR."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import trio
from attrs import define, field

from broker.kit import BrokerHandle
from broker.reference.leadership import Leadership
from broker.reference.logs import Logs
from broker.reference.service import ReferenceService
from simulator.quiet_logs import InjectedFault
from transport.errors import ApiError, ErrorCode
from transport.messages import PartitionState, StopReplicaPartition
from transport.metadata import TopicPartition


@define
class Neglect:
    """Duties that a broker neglects, whatever it is ordered; they outlive its process."""

    unfetched: dict[TopicPartition, None] = field(factory=dict)
    """The partitions that it does not fetch."""

    kept_out: dict[TopicPartition, Collection[int]] = field(factory=dict)
    """The followers that it keeps out of ISRs where it leads."""

    refused: dict[TopicPartition, ErrorCode] = field(factory=dict)
    """The partitions of which it carries out no order, and the error that it answers."""

    raising: dict[tuple[TopicPartition, str], int | None] = field(factory=dict)
    """The orders in which its service raises, and how many times more; None means each time."""

    hesitation: float = 0.0
    """The additional seconds that each partition of an order takes."""

    has_lost_orders: bool = field(default=False, init=False)
    """Whether the running process has refused an order that is not repeated."""


class SimulatedService(ReferenceService):
    """A reference service that neglects some of its duties."""

    are_orders_repeated = True
    """Whether the controller repeats orders that fail, whatever their error."""

    def __init__(self, handle: BrokerHandle, logs: Logs, neglect: Neglect) -> None:
        super().__init__(handle, logs, partial(_PartialLeadership, neglect.kept_out))
        self._neglect = neglect

    async def become_leader(self, state: PartitionState, *, is_new: bool) -> None:
        """Lead a partition."""
        await self._consider(state.tp, "become_leader")
        await super().become_leader(state, is_new=is_new)

    async def stop_replica(self, partition: StopReplicaPartition) -> None:
        """Stop a replica."""
        await self._consider(partition.tp, "stop_replica")
        await super().stop_replica(partition)

    async def become_follower(self, state: PartitionState, *, is_new: bool) -> None:
        """Follow a partition's leader, but fetch nothing of a neglected partition."""
        await self._consider(state.tp, "become_follower")
        await super().become_follower(state, is_new=is_new)
        if state.tp in self._neglect.unfetched:
            self.stop_fetching(state.tp)

    async def _consider(self, tp: TopicPartition, call: str) -> None:
        """Take time over an order, and perhaps refuse it with an ApiError, or raise InjectedFault."""
        if self._neglect.hesitation:
            await trio.sleep(self._neglect.hesitation)
        error = self._neglect.refused.get(tp)
        if error is not None:
            self._neglect.has_lost_orders |= not self.are_orders_repeated and call != "stop_replica"
            raise ApiError(error, f"the broker refuses orders about {tp}, as a fault")
        if (tp, call) in self._neglect.raising:
            self._raise(tp, call)

    def _raise(self, tp: TopicPartition, call: str) -> None:
        times = self._neglect.raising[tp, call]
        if times is not None:
            del self._neglect.raising[tp, call]
        if times is not None and times > 1:
            self._neglect.raising[tp, call] = times - 1
        raise InjectedFault(f"{call} fails for {tp}")

    def role(self, tp: TopicPartition) -> tuple[int, bool] | None:
        """Return the leader epoch in which a replica leads or follows, and whether it leads; None if neither."""
        replica = self._replicas.get(tp)
        return None if replica is None else (replica.state.leader_epoch, replica.leadership is not None)

    def stop_fetching(self, tp: TopicPartition) -> None:
        """Stop fetching a partition."""
        self._stop_fetching(tp)

    def resume_fetching(self, tp: TopicPartition) -> None:
        """Fetch a partition again, if this broker follows it."""
        replica = self._replicas.get(tp)
        if replica is not None and replica.leadership is None and replica.state.leader >= 0:
            self._fetcher(replica.state.leader).follow(replica)


class _PartialLeadership(Leadership):
    """A leadership that keeps some followers out of the ISR."""

    def __init__(self, kept_out: dict[TopicPartition, Collection[int]], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kept_out = kept_out

    def _wanted_isr(self, high_watermark: int, log_end: int, now: float) -> tuple[int, ...]:
        wanted = super()._wanted_isr(high_watermark, log_end, now)
        # A leader is a member of its ISR: only followers are kept out, also where one of them leads now.
        kept_out = set(self._kept_out.get(self.state.tp, ())) - {self._broker_id}
        return tuple(member for member in wanted if member not in kept_out)
