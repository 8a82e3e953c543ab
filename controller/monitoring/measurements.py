"""Measurements of a running controller, independent of the format in which they are exported."""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from actors.histogram import Histogram
from controller.channels.broker_channels import BrokerChannels
from controller.events import ControllerEvent
from controller.model.context import ControllerContext
from controller.model.facts import leaderships_in
from controller.monitoring.controller_states import ControllerState, state_of
from controller.monitoring.partition_counts import PartitionCounts
from controller.observation.instruments import Application, Instrument
from transport.metadata import NO_LEADER, LeaderAndIsr, TopicPartition
from transport.store.protocol import MetadataStore, SessionChanged, SessionState, StoreEvent
from transport.store.timed import TimedStore


@define
class Measurements(Instrument):
    """Counters over the life of this process and, while it is in office, the partition counts and channels."""

    partitions: PartitionCounts | None = field(default=None, init=False)
    channels: BrokerChannels | None = field(default=None, init=False)
    state: ControllerState = field(default=ControllerState.IDLE, init=False)
    timers: dict[ControllerState, Histogram] = field(
        factory=lambda: {state: Histogram() for state in ControllerState if state.timer is not None}, init=False
    )
    queue_times: Histogram = field(factory=Histogram, init=False)
    store_requests: Histogram = field(factory=Histogram, init=False)
    unclean_elections: int = field(default=0, init=False)
    sessions: Counter[SessionState] = field(factory=Counter, init=False)
    """The number of times that the metadata store's session entered each state."""

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:
        """Enter the event's state."""
        self.state = state_of(event.name)
        self.queue_times.observe(queued_seconds)

    def finished(self, event: ControllerEvent, seconds: float) -> None:
        """Record the event's duration, and update the counts of what it changed."""
        self.state = ControllerState.IDLE
        timer = self.timers.get(state_of(event.name))
        if timer is not None:
            timer.observe(seconds)
        if self.partitions is not None:
            self.partitions.refresh()

    def took_office(self, context: ControllerContext, channels: BrokerChannels) -> None:
        """Measure a new controllership."""
        self.partitions, self.channels = PartitionCounts(context), channels

    def left_office(self) -> None:
        """Drop the measurements of the cluster, which another controller now manages."""
        self.partitions = self.channels = None

    def applying(self, context: ControllerContext, application: Application) -> None:
        """Note the changes, and count elections of leaders outside the ISR."""
        if self.partitions is None:
            return
        self.partitions.note(application.facts)
        if application.zxid is not None:
            written = leaderships_in(application.facts)
            self.unclean_elections += sum(_is_unclean(context, tp, leadership) for tp, leadership in written)

    def session_changed(self, event: StoreEvent) -> None:
        """Count the state changes of the session."""
        if isinstance(event, SessionChanged):
            self.sessions[event.state] += 1


def measured(store: MetadataStore, measurements: Measurements) -> MetadataStore:
    """Wrap a connected session so that its requests are timed and its states are counted."""
    measurements.sessions[SessionState.CONNECTED] += 1
    store.subscribe(measurements.session_changed)
    return TimedStore(store, measurements.store_requests.observe)


def _is_unclean(context: ControllerContext, tp: TopicPartition, leadership: LeaderAndIsr) -> bool:
    before = context.leadership.get(tp)
    return before is not None and leadership.leader not in (NO_LEADER, *before.isr)
