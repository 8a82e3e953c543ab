"""The reference service of a simulated broker, whose replicas can be kept from fetching and out of the ISR."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from attrs import field, frozen

from broker.kit import BrokerHandle
from broker.reference.leadership import Leadership
from broker.reference.logs import Logs
from broker.reference.service import ReferenceService
from transport.messages import PartitionState
from transport.metadata import TopicPartition


@frozen
class Neglect:
    """Duties that a broker neglects, whatever it is ordered; they outlive its process."""

    unfetched: dict[TopicPartition, None] = field(factory=dict)
    """The partitions that it does not fetch."""

    kept_out: dict[TopicPartition, Collection[int]] = field(factory=dict)
    """The followers that it keeps out of ISRs where it leads."""


class SimulatedService(ReferenceService):
    """A reference service that neglects some of its duties."""

    def __init__(self, handle: BrokerHandle, logs: Logs, neglect: Neglect) -> None:
        super().__init__(handle, logs, partial(_PartialLeadership, neglect.kept_out))
        self._neglect = neglect

    async def become_follower(self, state: PartitionState, *, is_new: bool) -> None:
        """Follow a partition's leader, but fetch nothing of a neglected partition."""
        await super().become_follower(state, is_new=is_new)
        if state.tp in self._neglect.unfetched:
            self.stop_fetching(state.tp)

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
        kept_out = self._kept_out.get(self.state.tp)
        return tuple(member for member in wanted if member not in kept_out) if kept_out else wanted
