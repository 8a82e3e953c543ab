"""The invariants that must hold at every moment of a simulation, checked as events happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import trio
from attrs import define, field, frozen

from simulator.disk import Disk
from simulator.frames import ControlRequest, SettingsRequest
from simulator.kafka.registration import decode_registered
from simulator.linearizability.history import AdminHistory, Verdict
from simulator.safety.announcements import Announcements
from simulator.safety.answers import Answers
from simulator.safety.closed_records import ClosedRecords
from simulator.safety.controllership import Controllership
from simulator.safety.decisions import Decisions
from simulator.safety.deletions import Deletions
from simulator.safety.departures import Departures
from simulator.safety.depositions import Depositions
from simulator.safety.exemptions import Exemptions
from simulator.safety.identities import Identities
from simulator.safety.leadership import IsrProposal, Leaderships
from simulator.safety.ledger import Ledger
from simulator.safety.min_isrs import MinIsrs
from simulator.safety.namesakes import Namesakes
from simulator.safety.new_replicas import NewReplicas
from simulator.safety.numbers import Numbers
from simulator.safety.orders import Orders
from simulator.safety.partitions import Partitions, is_controller
from simulator.safety.placements import on_controllers
from simulator.safety.promises import Before, Promises
from simulator.safety.registrations import Registrations
from simulator.safety.rollouts import Rollouts
from simulator.safety.sessions import Sessions
from simulator.safety.settings import Alterations
from simulator.safety.told import Told
from simulator.safety.unclean import UncleanElections
from simulator.settings import CONTROLLERS, host_of
from simulator.signals import Signals
from simulator.steps import ControllerStep
from simulator.store.durable import Durable
from simulator.trace import Trace
from transport.messages import (
    AlterConfigsResource,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    ElectionType,
    ElectLeadersRequest,
    Record,
    StopReplicaRequest,
)
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Check, Committed, Create, Op

ONE_CONTROLLER = "at most one controller's writes and orders take effect per controller epoch"
LEADERSHIP = "epochs never go down, a leader is in its ISR, an ISR within the replicas"
IDENTITY = "a reassignment keeps its identity until it ends"
DURABLE = "brokers are told only what is durable, and of one leader per leader epoch"
ANNOUNCED = "brokers are told who is alive, and which replicas are offline or new, before what follows from it"
NUMBERED = "each order to a broker has a number of its own, which copies of it share"
DATA = "only brokers hold data"
ACKNOWLEDGED = "a record acknowledged with acks=all is never lost"
ANSWERS = "every request gets exactly one answer"
DEPOSED = "a deposed controller answers no read"
PROMISED = "what an answer reports has happened, or is certain to happen"
LINEARIZABLE = "some sequential order of the requests explains every answer"
DELETION = "a replica's data are deleted only once the cluster can do without them"
DECISIONS = "each decision is one that the model takes"
ROLLOUTS = "a rollout begins what it may begin"
PRODUCER_IDS = "no id of producers is given twice"


@frozen
class Violation(Exception):
    """An invariant did not hold."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


@define
class Safety:
    """Checks every commit, order, acknowledgement and change of a log, and reports the first violation."""

    trace: Trace
    on_violation: Callable[[], None]
    """Called at the first violation."""

    unclean_by_default: bool = False
    """Whether the controllers' setting allows a replica outside the ISR to lead."""

    min_isr_by_default: int = 1
    """The controllers' own min.insync.replicas."""

    is_kafkas: bool = False
    """Whether the brokers are Apache Kafka's."""

    deletes_topics: bool = True
    """Whether the controllers' settings let topics be deleted."""

    durable: Durable = field(init=False)
    """Set before the first commit."""

    disks: dict[int, Disk] = field(factory=dict, init=False)
    """The brokers' disks."""

    exempt: Exemptions = field(factory=Exemptions, init=False)
    """Rows that are not checked."""

    signals: Signals = field(factory=Signals, init=False)
    """The signals by which operators hold rollouts up."""

    history: AdminHistory = field(init=False)
    """The requests of administrators and the commits, to be checked at the end."""

    violation: Violation | None = field(default=None, init=False)
    decisions: Decisions = field(init=False)
    """The model beside the controllers, which is told what they read, receive and decide."""

    _names: dict[str, str] = field(factory=dict, init=False)
    """The name of each topic that has existed, by its id."""

    _partitions: Partitions = field(init=False)
    told: Told = field(init=False)
    """The orders that brokers have been sent."""

    settings: Alterations = field(init=False)
    """The settings and how administrators have asked to alter them."""

    sessions: Sessions = field(factory=Sessions, init=False)
    """The controllers whose sessions have ended."""

    depositions: Depositions = field(init=False)
    """The controllers that are no longer in office."""

    announcements: Announcements = field(init=False)
    departures: Departures = field(init=False)
    """The partitions that are gone."""

    closed_records: ClosedRecords = field(init=False)
    """What must not follow from records that stay, or cannot be written."""

    _new_replicas: NewReplicas = field(init=False)
    _numbers: Numbers = field(factory=Numbers, init=False)
    _registrations: Registrations = field(factory=Registrations, init=False)
    _controllership: Controllership = field(factory=Controllership, init=False)
    _leaderships: Leaderships = field(factory=Leaderships, init=False)
    _orders: Orders = field(init=False)
    _identities: Identities = field(init=False)
    _answers: Answers = field(factory=Answers, init=False)
    _deletions: Deletions = field(init=False)
    _promises: Promises = field(init=False)
    _ledger: Ledger = field(init=False)
    rollouts: Rollouts = field(init=False)
    _unclean: UncleanElections = field(init=False)

    def __attrs_post_init__(self) -> None:
        decode = decode_registered if self.is_kafkas else formats.decode_broker
        self.depositions = Depositions(self._controllership)
        self.sessions.on_event = self.depositions.changed
        self.history = AdminHistory(self.exempt, self.depositions.may_be_stale)
        self._partitions = Partitions(self.exempt)
        self._orders, self._identities = Orders(self.exempt), Identities(self.exempt)
        self._unclean = UncleanElections(self.unclean_by_default)
        self.settings = Alterations(self.exempt)
        self.told = Told(self.exempt)
        self.closed_records = ClosedRecords(self.exempt, self._controllership)
        namesakes = Namesakes(self._partitions, self.is_kafkas)
        self._new_replicas = NewReplicas(self.disks, self.told, self.exempt, self.is_kafkas)
        self.departures = Departures(self._controllership)
        self._deletions = Deletions(self._partitions, self._registrations)
        self._promises = Promises(self._partitions, self._controllership, self.deletes_topics)
        self.decisions = Decisions(
            self._partitions,
            self._controllership,
            self._promises,
            MinIsrs(self.min_isr_by_default),
            namesakes,
            decode,
            self._storage_id,
            frozenset(CONTROLLERS if self.is_kafkas else ()),
        )
        self.announcements = Announcements(self.exempt, self._registrations, namesakes, self.decisions.has_kept_out)
        self._ledger = Ledger(self.disks, self._partitions, self._registrations)
        self.rollouts = Rollouts(self._partitions, self.signals)

    def _storage_id(self, broker_id: int) -> str | None:
        return self.durable.storage_id(broker_id)

    def report(self, invariant: str, text: str) -> None:
        """Record a violation; only the first counts."""
        if self.violation is None:
            self.violation = Violation(invariant, text)
            self.trace.add("violation", "", str(self.violation))
            self.trace.end()
            self.on_violation()

    def committed(self, host: str, ops: Sequence[Op], committed: Committed) -> None:
        """Check a commit by a host's session, or by the store itself if `host` is "", right after it took effect."""
        self._controllers_wrote(host, ops)
        before = self._controllership.holder
        self._judge(ONE_CONTROLLER, self._controllership.committed(host, ops, self.durable))
        self.depositions.committed(host, ops, before)
        self._judge(IDENTITY, self._identities.committed(ops, self.durable))
        self._judge(DELETION, self.closed_records.committed(host, ops, committed.zxid))
        self._unclean.committed(ops, self.durable)
        self.history.committed(host, ops, self.durable)
        self._judge(PROMISED, self.settings.committed(host, ops, self.durable))
        self._promises.committed(ops, self.durable)
        for broker_id in self._registrations.committed(ops):
            self._deletions.registered(broker_id)
            self._registered(broker_id)
        changes = self._partitions.take(host, ops, self.durable)
        for change in changes:
            self._judge(ONE_CONTROLLER, self._controllership.changed(change))
            self._judge(LEADERSHIP, self._leaderships.changed(change))
            if not self.exempt.has(paths.broker_config(None)):
                self._judge(ACKNOWLEDGED, self._unclean.changed(change))
            if change.after is not None:
                self._names[change.after.topic_id] = change.tp.topic
            self._orders.changed(change)
            self.departures.changed(change, committed.zxid)
            self.announcements.changed(change, trio.current_time())
            self._new_replicas.changed(change, trio.current_time())
            self._deletions.changed(change)
            self._promises.changed(change)
            self._judge(ACKNOWLEDGED, self._ledger.changed(change))
        self._judge(ROLLOUTS, self.rollouts.committed(host, ops, changes, self.durable))
        # Last, because the other invariants say better what is wrong.
        self._judge(DECISIONS, self.decisions.committed(host, ops, changes, self.durable))

    def _controllers_wrote(self, host: str, ops: Sequence[Op]) -> None:
        """Record what becomes of topics that were changed by hand."""
        for op in ops if is_controller(host) else ():
            if isinstance(op, Check):
                continue
            if op.path == paths.CONTROLLER_EPOCH:
                self.exempt.took_office()
            elif op.path.startswith(f"{paths.TOPICS}/"):
                name, _, below = op.path.removeprefix(f"{paths.TOPICS}/").partition("/")
                if not below:
                    self.exempt.written_back(name)
                elif isinstance(op, Create):
                    self.exempt.started(name)

    def delivered(self, source: str, destination: str, connection_id: int, chunk: bytes) -> None:
        """Check a frame that its receiver takes from the network."""
        fault = self._answers.delivered(source, destination, connection_id, chunk)
        if fault is not None:
            self.report(ANSWERS, fault)
        self._judge(DEPOSED, self.depositions.delivered(source, destination, connection_id, chunk))

    def began_event(self, controller_id: int, event: str, *, is_in_office: bool) -> None:
        """Check what a controller leaves behind that ends an event and begins the next."""
        self._judge(ONE_CONTROLLER, self.sessions.began_event(controller_id, event))
        self._judge(DECISIONS, self.decisions.began_event(controller_id, is_in_office=is_in_office))

    def stepped(self, step: ControllerStep) -> bool:
        """Check a step of a controller; a watcher of `Steps`."""
        self._judge(ONE_CONTROLLER, self.sessions.stepped(step))
        self.announcements.stepped(step)
        return False

    def asked(self, request: object) -> None:
        """Record a request of a broker or an administrator, as a controller takes it from the network."""
        self.rollouts.asked(request)
        if isinstance(request, AlterPartitionRequest):
            self._leaderships.asked(request)
        elif isinstance(request, ControlledShutdownRequest):
            self._registrations.shutting_down(request.broker_id)
        elif isinstance(request, ElectLeadersRequest):
            self._unclean.asked(request)
        elif isinstance(request, SettingsRequest):
            self.settings.asked(request)

    def ordered(self, controller_host: str, broker_id: int, request: ControlRequest) -> None:
        """Check an order of a controller, as the broker takes it from the network."""
        self._judge(ONE_CONTROLLER, self._controllership.ordered(controller_host, request))
        # Kafka's orders have no numbers.
        if self.is_kafkas:
            self._judge(DATA, on_controllers(broker_id, request, self.exempt))
        else:
            self._judge(NUMBERED, self._numbers.ordered(broker_id, request))
        if isinstance(request, StopReplicaRequest):
            self._deletions.ordered(broker_id, request)
            self._judge(DELETION, self.closed_records.ordered(broker_id, request, self.durable))
            self._orders.stopped(broker_id, request)
        else:
            self._judge(DURABLE, self._orders.ordered(broker_id, request))
        channel = self.told.admit(broker_id, request, self._controllership.elected_at(request.controller_epoch))
        if channel is not None:
            self._judge(ANNOUNCED, self.announcements.told(broker_id, channel, request, trio.current_time()))
            self._judge(ANNOUNCED, self._new_replicas.ordered(broker_id, channel, request))
            channel.obey(request)

    def acknowledged(self, tp: TopicPartition, base_offset: int, values: Sequence[bytes]) -> None:
        """Record that a producer received an acknowledgement, with acks=all, of these records."""
        self._judge(ACKNOWLEDGED, self._ledger.acknowledged(tp, base_offset, values))

    def appended(self, broker_id: int, tp: TopicPartition, topic_id: str, base: int, records: Sequence[Record]) -> None:
        """Check the records that a broker appended to a log."""
        self._judge(ACKNOWLEDGED, self._ledger.appended(broker_id, tp, topic_id, base, records))

    def truncated(self, broker_id: int, tp: TopicPartition, topic_id: str, end_offset: int) -> None:
        """Check the offset at which a broker truncated a log."""
        self._judge(ACKNOWLEDGED, self._ledger.truncated(broker_id, tp, topic_id, end_offset))

    def deleted(self, broker_id: int, tp: TopicPartition, topic_id: str) -> None:
        """Check a replica whose data a broker has just deleted, as ordered."""
        self._judge(DELETION, self._deletions.deleted(broker_id, tp, topic_id))

    def producer_ids_given(self, block: range) -> None:
        """Check a block of ids that a broker was given."""
        self._judge(PRODUCER_IDS, self.closed_records.given(block))

    # --- what answers promise -----------------------------------------------------------------------------------

    def before(self) -> Before:
        """Return the state before a request, to check the answer against."""
        return self._promises.before()

    def deletion_answered(self, before: Before, name: str) -> None:
        """Check the answer that the deletion of a topic is certain."""
        self._judge(PROMISED, self._promises.deletion_answered(before, name))

    def election_answered(
        self, before: Before, kind: ElectionType, tp: TopicPartition, order: tuple[int, ...] | None = None
    ) -> None:
        """Check the answer that a leader was elected; if an `order` was given, the first of it."""
        self._judge(PROMISED, self._promises.election_answered(before, kind, tp, order))

    def settings_answered(self, since: int, item: AlterConfigsResource) -> None:
        """Check the answer that settings are altered, to a request made after that number of alterations."""
        self._judge(PROMISED, self.settings.granted(since, item))

    def cancel_answered(self, before: Before, tp: TopicPartition) -> None:
        """Check the answer that a move is cancelled."""
        self._judge(PROMISED, self._promises.cancel_answered(before, tp))

    def relieved(self, before: Before, broker_id: int) -> None:
        """Check the answer that a broker shutting down leads no partition that another replica could lead."""
        self._judge(PROMISED, self._promises.relieved(before, broker_id))

    # --- after the last fault -----------------------------------------------------------------------------------

    def losses(self) -> tuple[int, int]:
        """Return the number of unclean elections, and the number of acknowledged records that they lost."""
        return self._ledger.unclean_elections, self._ledger.written_off

    def is_unclean_allowed(self, topic: str) -> bool:
        """Return whether settings certainly allow a replica outside the ISR to lead partitions of a topic."""
        return not self.exempt.has(paths.broker_config(None)) and self._unclean.is_allowed(topic)

    def proposed_isrs(self, tp: TopicPartition) -> tuple[IsrProposal, ...]:
        """Return the ISRs that controllers were asked for, each once, in order."""
        return self._leaderships.proposed(tp)

    def name_of(self, topic_id: str) -> str | None:
        """Return the name of the topic that has or had an id, which tools may have removed from its znode."""
        return self._names.get(topic_id)

    def has_held_office(self, controller_id: int) -> bool:
        """Return whether a controller has ever been in office."""
        return self._controllership.has_held(host_of(controller_id))

    def undead(self) -> list[str]:
        """Return the topics that were marked for deletion and still exist."""
        topics = {name: self.durable.topic(name) for name, _ in self._promises.doomed}
        doomed = [(name, topic) for name, topic in topics.items() if topic and not self.exempt.has_topic(name)]
        return [name for name, topic in doomed if (name, topic.topic_id or "") in self._promises.doomed]

    def lost(self) -> list[str]:
        """Return the acknowledged records that a member of the ISR lacks, once the faults are over."""
        return list(self._ledger.lost())

    def judge_history(self) -> Verdict:
        """Check the answers to administrators, and return what became of their histories."""
        verdict = self.history.judge()
        self._judge(LINEARIZABLE, verdict.faults)
        return verdict

    def _registered(self, broker_id: int) -> None:
        znode = self.durable.tree.read(paths.broker(broker_id))
        if znode is not None:
            self.told.registered(broker_id, znode.stat.czxid)

    def _judge(self, invariant: str, faults: Iterable[str]) -> None:
        for fault in faults:
            self.report(invariant, fault)
