"""The snapshots of the page: what it shows of the controller and, while this one is in office, of the cluster."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

import msgspec
from attrs import define, field, frozen

from controller.monitoring.measurements import Measurements
from controller.monitoring.page.brokers import BrokersView, count_leaders, view_of_brokers
from controller.monitoring.page.decisions import DecisionRow, row_of
from controller.monitoring.page.moves import MovesView, view_of_moves
from controller.monitoring.page.partitions import PartitionsView, view_of_partitions
from controller.monitoring.page.rollouts import RolloutRow, rows_of_rollouts
from controller.node.office import Office
from controller.node.service import ControllerService

_NOTHING: Final[tuple[int, Mapping[int, int]]] = (-1, {})


@frozen
class ControllerView:
    """This controller: whether it is the active one, and what it waits for."""

    id: int
    is_active: bool
    is_ready: bool
    status: str
    session: str
    epoch: int | None
    events_waiting: int
    quarantined: int


@frozen
class ClusterView:
    """The cluster as the active controller knows it."""

    topics: int
    partitions: int
    topics_being_deleted: int
    brokers: BrokersView
    at_risk: PartitionsView
    moves: MovesView
    rollouts: tuple[RolloutRow, ...]


@frozen
class Snapshot:
    """Everything on the page; there is no cluster on a standby."""

    controller: ControllerView
    cluster: ClusterView | None
    decisions: tuple[DecisionRow, ...]


@define
class Snapshots:
    """Takes snapshots of a service. It reads memory between events, and never enters the queue."""

    service: ControllerService
    measurements: Measurements
    _led: tuple[int, Mapping[int, int]] = field(default=_NOTHING, init=False)
    """The number of decisions when leaders were counted, and the counts."""

    def stamp(self) -> Hashable | None:
        """Return what differs when a snapshot would; None while moves go on, whose progress only a snapshot shows."""
        service, office, channels = self.service, self.service.office, self.measurements.channels
        if office is not None and (office.context.reassigning or office.context.rollouts.current):
            return None
        waiting = 0 if channels is None else sum(channels.queue_sizes().values())
        return service.decisions.recorded, service.queue_size(), waiting, self._controller(office)

    async def take(self) -> bytes:
        """Return a snapshot as JSON."""
        office = self.service.office
        cluster = None if office is None or not office.is_loaded else await self._cluster(office)
        decisions = tuple(map(row_of, self.service.decisions.latest()))
        return msgspec.json.encode(Snapshot(self._controller(office), cluster, decisions))

    def _controller(self, office: Office | None) -> ControllerView:
        service, readiness = self.service, self.service.readiness()
        return ControllerView(
            service.config.controller_id,
            office is not None,
            readiness.is_ready,
            readiness.reason,
            service.store.state.value,
            None if office is None else office.won.epoch,
            service.queue_size(),
            service.quarantine_size(),
        )

    async def _cluster(self, office: Office) -> ClusterView | None:
        context, counts = office.context, self.measurements.partitions
        led = await self._leaders(office)
        moves = await view_of_moves(context, office.progress.progress, self.service.host.now_ms())
        if counts is None or counts.context is not context:
            return None  # the office ended, or another began meanwhile
        return ClusterView(
            len(context.topics),
            len(context.leadership),
            len(context.deletions),
            view_of_brokers(context, office.channels, led),
            view_of_partitions(counts),
            moves,
            rows_of_rollouts(context),
        )

    async def _leaders(self, office: Office) -> Mapping[int, int]:
        recorded = self.service.decisions.recorded
        if self._led[0] != recorded:
            self._led = recorded, await count_leaders(office.context)
        return self._led[1]
