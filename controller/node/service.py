"""The controller as a running service: the event queue, its sources, and the office that it may hold.

Every store change, every request and every broker response becomes an event of one queue. The office (context,
channels, round runner) exists only while this controller is active and is discarded with it. After a fault, or a store
request with an unknown outcome, the controller gives up the office, so that memory never disagrees with the store: the
next controllership, ours or another's, loads everything anew.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Final

import trio
from attrs import define, field

from actors import Backoff, EventQueue, EventStatistics
from controller import events
from controller.channels.broker_channels import BrokerChannels
from controller.channels.broker_responses import BrokerResponses
from controller.config import ControllerConfig
from controller.handlers.failover import failover, look_again
from controller.handlers.leadership import ControllerMoved
from controller.model.context import ControllerContext
from controller.model.election_results import Standby, Won
from controller.model.kafka_brokers import KafkaBrokers
from controller.node import admission, alarms, controller_election, dispatch
from controller.node.admission import Authorizer
from controller.node.alarms import PendingAlarms
from controller.node.answers import Answers
from controller.node.candidacy import Candidacy, candidacy_of
from controller.node.collector import paused_collector
from controller.node.contact import Contact
from controller.node.controller_election import ForeignCluster
from controller.node.kafka_node import KafkaNode
from controller.node.office import Office, Readiness, judge_readiness
from controller.node.quarantine import QUARANTINE_SECONDS, Quarantine, name_of, refuse
from controller.node.rollout_outlook import RolloutOutlook
from controller.node.round_runner import RoundRunner
from controller.node.standing import Standing
from controller.node.store_changes import StoreChanges
from controller.node.waiting_requests import WaitingRequests, join
from controller.node.watches import LOOKS
from controller.observation.commit_trace import CommitTrace
from controller.observation.decisions import Decisions
from controller.observation.event_log import EventLog
from controller.observation.instruments import Instrument, Instruments
from controller.observation.observer import Observer
from controller.progress.poller import ProgressPoller
from controller.progress.report import Totals
from controller.progress.tracker import Moves
from transport import messages
from transport.errors import ApiError
from transport.host import Host
from transport.kafka.orders import Node
from transport.log import get_logger
from transport.network import Network
from transport.store.cluster_id import ClusterId
from transport.store.commit import Fenced
from transport.store.formats import UndecodableZnode
from transport.store.protocol import MetadataStore, SessionChanged, SessionState, StoreError, StoreEvent, WatchFired
from transport.wire import serve

log = get_logger(__name__)

RESIGN_TIMEOUT: Final = 5.0


@define
class ControllerService:
    """One controller, active or on standby. Call `run` in a trio nursery."""

    config: ControllerConfig
    store: MetadataStore
    network: Network
    host: Host
    observer: Observer
    trace: CommitTrace
    instrument: Instrument = field(factory=Instrument)
    authorizer: Authorizer = admission.allow_all
    endpoint: messages.BrokerEndpoint = field(init=False)
    """The advertised address; set once the controller listens."""

    port: int = field(default=0, init=False)
    """The port of the listener; set once the controller listens."""

    metrics_port: int | None = field(default=None, init=False)
    """The port of the monitoring endpoint; None while there is none."""

    decisions: Decisions = field(init=False)
    node: Node | None = field(default=None, init=False)
    """The controller as brokers of Apache Kafka are told of it; None if the brokers are ours."""

    _nursery: trio.Nursery = field(init=False)
    _office: Office | None = field(default=None, init=False)
    _standby: Standby | None = field(default=None, init=False)
    """The reason for which this one stands by: the controller in office, or that it may not stand."""

    _candidacy: Candidacy = field(init=False)
    _queue: EventQueue[events.ControllerEvent] = field(init=False)
    _answers: Answers = field(init=False)
    _event_log: EventLog = field(init=False)
    _instruments: Instruments = field(init=False)
    _standing: Standing = field(init=False)
    _quarantine: Quarantine = field(factory=Quarantine, init=False)
    _changes: StoreChanges = field(init=False)
    _contact: Contact = field(init=False)
    _alarms: PendingAlarms = field(init=False)
    _outlook: RolloutOutlook = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.decisions = Decisions(self.host.now_ms)
        self._event_log = EventLog(self.decisions)
        self._instruments = Instruments((self._event_log, self.instrument))
        self._contact = Contact(self.store, self.config.zookeeper_session_timeout_ms / 1000)
        joins = partial(join, self._quarantine)
        is_barrier = attrgetter("is_barrier")
        self._queue = EventQueue(self._process, observer=self._instruments, joins=joins, is_barrier=is_barrier)
        sources = WaitingRequests(self._queue), self._quarantine, lambda: self._office, ClusterId(self.store)
        self._answers = Answers(self.config, self.host, self.trace, *sources)
        self._changes = StoreChanges(self._queue.tell, self._quarantine)
        self._alarms = PendingAlarms(self._queue.tell)
        self._outlook = RolloutOutlook(self._queue.tell, self.host)
        self._standing = Standing(Backoff(0.1, 10.0, jitter=self.host.rng.random))
        self._candidacy = candidacy_of(self.config, self.host, self.network)

    @property
    def is_active(self) -> bool:
        """Whether this controller believes itself to be the active one."""
        return self._office is not None

    @property
    def office(self) -> Office | None:
        """The office of the active controller, for those who look from outside; None on a standby."""
        return self._office

    def readiness(self) -> Readiness:
        """Return whether this controller is ready: connected, and either active and loaded or standing by."""
        return judge_readiness(self.store.state, self._office, self._standby)

    def queue_size(self) -> int:
        """Return the number of waiting events."""
        return len(self._queue)

    @property
    def is_idle(self) -> bool:
        """Whether no event waits, and none is being processed."""
        return self._queue.is_idle

    def hold_events(self) -> None:
        """Process no further event until `release_events`, so that tests can change things in between."""
        self._queue.hold()

    def release_events(self) -> None:
        """Resume processing events."""
        self._queue.release()

    def quarantine_size(self) -> int:
        """Return the number of topics and requests in quarantine after repeated faults."""
        return len(self._quarantine)

    async def moves(self) -> Totals:
        """Return the combined progress of all moves; empty totals on a standby."""
        return Totals() if self._office is None else await self._office.progress.totals()

    # --- what feeds the queue -----------------------------------------------------------------------------------

    def tell(self, event: events.ControllerEvent) -> None:
        """Queue an event; for embedders and tests that script events."""
        self._queue.tell(event)

    def statistics(self) -> dict[str, EventStatistics]:
        """Return the number and the cost of the events processed, by event name."""
        return self._queue.statistics()

    async def answer(self, request: messages.Request[object]) -> object:
        """Answer a request (see `Answers`). Raises ApiError."""
        return await self._answers.answer(request)

    def _store_changed(self, event: StoreEvent) -> None:
        match event:
            case WatchFired(path=path):
                self._changes.fired(path)
            case SessionChanged(state=SessionState.SUSPENDED):
                self._contact.lost()
            case SessionChanged(state=SessionState.EXPIRED):
                # The running event is cancelled: if it waits for the connection, it must not continue.
                self._queue.preempt_and_put(events.SessionEnded(), cancel_running=True)
                self._contact.decided()
            case SessionChanged(state=SessionState.CONNECTED):
                self._contact.decided()
                # Watches may have been lost with the connection, so only reading again shows what has changed. Requests
                # that come from now on wait for all of it.
                for each in (events.Reload(), *(LOOKS if self._office is not None else ())):
                    self._changes.queue(each)

    # --- the queue's task ---------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[ControllerService] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve, stand for election and process events until cancelled, then resign. Reports started once it listens.

        Raises OSError, in an exception group, if the address is in use.
        """
        async with trio.open_nursery() as self._nursery:
            where, admit = (self.config.host, self.config.port), admission.admitting(self.authorizer)
            listening = partial(serve, self.network, self._answers.handlers(), *where, admit=admit, gives_up=True)
            self.port = await self._nursery.start(listening)
            advertised = self.config.advertised(self.config.host, self.port)
            self.endpoint = messages.BrokerEndpoint(self.config.controller_id, *advertised)
            kafka_node = KafkaNode(self.config, self.answer, self.authorizer, self.store, lambda: self._office)
            self.node = await kafka_node.start(self._nursery, self.network)
            self._nursery.start_soon(self._contact.look_for_pauses)
            task_status.started(self)
            await self._run_queue()

    async def _run_queue(self) -> None:
        unsubscribe = self.store.subscribe(self._store_changed)
        self._queue.tell(events.Elect())
        try:
            await self._queue.run()
        finally:
            unsubscribe()
            self._queue.close()
            with trio.CancelScope(shield=True):
                await self._resign()

    async def _process(self, event: events.ControllerEvent) -> None:
        try:
            await self._process_safely(event)
        except (Fenced, ControllerMoved) as moved:
            log.warning("deposed", controller=self.config.controller_id, reason=str(moved))
            self._leave(event)
            self._stand_again()
        except StoreError as error:
            log.warning("metadata store failed: loading again", during=event.name, error=str(error))
            self._leave(event)
            self._stand_again()
        except ForeignCluster as foreign:
            log.error("not standing for election", reason=str(foreign))
            self._stand_again()
        except Exception:
            log.exception("resigning after a fault", during=event.name)
            self._blame(event)
            event.preempt()
            await self._resign()
            self._stand_again()

    async def _process_safely(self, event: events.ControllerEvent) -> None:
        self.observer.processing(event.name)
        if self._office is not None and not isinstance(event, events.SessionEnded):
            # A read sent now would fail and cost the office. If the session expires, that ends the wait.
            await self._contact.until_decided()
        match event:
            case events.SessionEnded():
                self._leave(event)
            case events.Elect():
                await self._elect()
            case events.Reload():
                await self._look_again(event)
            case events.BrokerChange() | events.BrokerModifications() if self._office is None:
                # The listeners of brokers may have been the reason not to stand.
                await self._elect()
            case _ if self._office is None:
                event.preempt()
            case _ if event.subject in self._quarantine:
                refuse(event)
            case _:
                if not self._contact.is_certain:
                    await self._office.confirm()
                await self._handle(self._office, event)

    def _blame(self, event: events.ControllerEvent) -> None:
        if self._quarantine.fault(event.subject, trio.current_time()):
            self._nursery.start_soon(self._release, event)

    async def _release(self, event: events.ControllerEvent) -> None:
        """End a quarantine when its time is up, and queue an event about the subject again."""
        await trio.sleep(QUARANTINE_SECONDS)
        self._quarantine.release(event.subject)
        log.info("no longer set aside", subject=name_of(event.subject))
        if not isinstance(event, events.RequestEvent):
            self._queue.tell(event)

    async def _handle(self, office: Office, event: events.ControllerEvent) -> None:
        try:
            rounds = dispatch.rounds_for(office.context, event, self.host)
            result = await office.runner.run(event.name, rounds, self._event_log.event_id)
        except ApiError as refusal:
            result = refusal
        except BaseException:
            if isinstance(event, events.RequestEvent):
                event.answer(events.cut_off())
            raise
        if isinstance(event, events.RequestEvent):
            event.answer(result)
        if isinstance(result, Moves):
            office.progress.follow(result)
            self._outlook.hear(office.context, office.progress)
        for follow_up in dispatch.follow_ups(office.context, event, result, office.caught_up):
            # What waits for a barrier waits for the rest of its work, too.
            if self._queue.tell(follow_up, later=not follow_up.is_barrier, goes_on=True):
                self._event_log.calls_for(follow_up)
        self._alarms.set(self._nursery, alarms.alarms(office.context, event))
        if isinstance(event, events.RolloutLook):
            self._outlook.look(self._nursery, office.context, office.progress)

    # --- the office ---------------------------------------------------------------------------------------------

    async def _elect(self) -> None:
        if self._office is None and not self._standing.may_stand(trio.current_time()):
            return
        await controller_election.register_endpoint(self.store, self.endpoint)
        if self._office is None:
            await self._candidacy.require_kind(self.store)
        held = None if self._office is None else self._office.won
        try:
            outcome = await self._candidacy.elect(self.store, held)
        except UndecodableZnode as damage:
            raise ForeignCluster(f"{damage}: nobody is elected until that znode is repaired or deleted") from damage
        match outcome:
            case Standby(controller_id=other):
                self._standby = outcome
                if self._office is not None:
                    log.warning("deposed", controller=self.config.controller_id, by=other, reason=outcome.reason)
                    self._leave(events.Elect())
            case Won() if self._office is None or self._office.won != outcome:
                await self._take_office(outcome)

    async def _look_again(self, event: events.Reload) -> None:
        """Stand for election or, still in office after a lost connection, read and watch again all that was watched.

        If a read was in flight when the connection was lost, the office has already been given up. Commits are
        resolved by reading again (see `transport.store.commit`).
        """
        office = self._office
        await self._elect()
        if office is None or self._office is not office:
            return
        log.info("still in office after a lost connection", controller=self.config.controller_id)
        rounds = look_again(office.context, dispatch.new_ids(self.host))
        await office.runner.run(event.name, rounds, self._event_log.event_id)
        self._alarms.set(self._nursery, alarms.alarms(office.context, event))

    async def _take_office(self, won: Won) -> None:
        if self._office is not None:
            self._office.close()
        kafka = KafkaBrokers(() if self.node is None else self.node.listeners)
        responses = BrokerResponses(self.tell, self.config.kafka)
        context = ControllerContext(self.endpoint, won.epoch, won.version, config=self.config, kafka=kafka)
        told = self.endpoint, won.epoch, responses.take, self.node, responses.release_seen
        channels = BrokerChannels(self._nursery, self.network, self.host, self.config, *told)
        self._instruments.took_office(context, channels)
        log.info("elected", controller=self.config.controller_id, epoch=won.epoch)
        runner = RoundRunner(self.store, context, channels, self.observer, self._instruments)
        progress = ProgressPoller(self._nursery, self.network, self.host, f"controller-{self.endpoint.id}")
        self._office = office = Office(won, context, channels, runner, progress, self._contact)
        # Almost all that it makes lasts as long as the office.
        with paused_collector(keeps=True):
            await runner.run("Failover", failover(context, dispatch.new_ids(self.host)), self._event_log.event_id)
        office.is_loaded = True
        brokers, count = sorted(context.brokers), len(context.partition_phases)
        log.info("in office", controller=self.config.controller_id, brokers=brokers, partitions=count)
        self._alarms.set(self._nursery, alarms.first_alarms(context))

    def _leave(self, event: events.ControllerEvent) -> None:
        """Give up the office without writing to the store; if `event` is a request, it is answered."""
        event.preempt()
        self._standby = None
        if self._office is not None:
            self._office.close()
            self._office = None
            self._instruments.left_office()
            self._queue.preempt_and_put(events.Elect())

    async def _resign(self) -> None:
        office, self._office = self._office, None
        if office is None:
            return
        office.close()
        self._instruments.left_office()
        with trio.move_on_after(RESIGN_TIMEOUT):
            try:
                await self._candidacy.resign(self.store, office.won)
                log.info("resigned", controller=self.config.controller_id, epoch=office.won.epoch)
            except StoreError as error:
                log.warning("could not resign: the session has to expire", error=str(error))

    def _stand_again(self) -> None:
        """Stand for election after a back-off that does not delay other events.

        Without a connection no back-off is scheduled: Reload stands for election when the connection is back.
        """
        self._standby = None
        if self.store.state is SessionState.CONNECTED:
            at = self._standing.failed(trio.current_time())
            self._nursery.start_soon(self._alarms.tell_at, at, events.Elect())
