"""What is measured of a running controller, for whoever exports it: nothing here knows how."""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from actors.histogram import Histogram
from controller.channels.broker_channels import BrokerChannels
from controller.events import ControllerEvent
from controller.model import facts
from controller.model.context import ControllerContext
from controller.monitoring.controller_states import ControllerState, state_of
from controller.monitoring.partition_counts import PartitionCounts
from controller.observation.instruments import Application, Instrument
from transport.metadata import NO_LEADER
from transport.store.protocol import MetadataStore, SessionChanged, SessionState, StoreEvent
from transport.store.timed import TimedStore


@define
class Measurements(Instrument):
    """Counters of this process's life, and while it is in office the context and its counts."""

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
    """How often the session of the metadata store went into each state."""

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:
        """Begin to be in the event's state."""
        self.state = state_of(event.name)
        self.queue_times.observe(queued_seconds)

    def finished(self, event: ControllerEvent, seconds: float) -> None:
        """Time the event, and take over what it changed."""
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
        """Measure nothing of a cluster that somebody else is in charge of."""
        self.partitions = self.channels = None

    def applying(self, context: ControllerContext, application: Application) -> None:
        """Note what changes, and count elections of leaders that were not in the ISR."""
        if self.partitions is None:
            return
        self.partitions.note(application.facts())
        if application.zxid is not None:
            self.unclean_elections += sum(_is_unclean(context, fact) for fact in application.facts())

    def session_changed(self, event: StoreEvent) -> None:
        """Count what becomes of the session."""
        if isinstance(event, SessionChanged):
            self.sessions[event.state] += 1


def measured(store: MetadataStore, measurements: Measurements) -> MetadataStore:
    """Return a session that is connected, with its requests timed and its states counted."""
    measurements.sessions[SessionState.CONNECTED] += 1
    store.subscribe(measurements.session_changed)
    return TimedStore(store, measurements.store_requests.observe)


def _is_unclean(context: ControllerContext, fact: facts.Fact) -> bool:
    if not isinstance(fact, facts.LeadershipWritten) or fact.leadership.leader == NO_LEADER:
        return False
    before = context.leadership.get(fact.tp)
    return before is not None and fact.leadership.leader not in before.isr
