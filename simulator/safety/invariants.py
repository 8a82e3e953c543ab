"""The invariants that must hold at every moment of a simulation, checked as events happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import define, field, frozen

from simulator.disk import Disk
from simulator.frames import ControlRequest, LeadershipRequest
from simulator.safety.answers import Answers
from simulator.safety.controllership import Controllership
from simulator.safety.deletions import Deletions
from simulator.safety.exemptions import Exemptions
from simulator.safety.identities import Identities
from simulator.safety.leadership import Leaderships
from simulator.safety.ledger import Ledger
from simulator.safety.orders import Orders
from simulator.safety.partitions import Partitions
from simulator.safety.promises import Before, Promises
from simulator.safety.registrations import Registrations
from simulator.safety.unclean import UncleanElections
from simulator.store.durable import Durable
from simulator.trace import Trace
from transport.messages import (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    ElectionType,
    Record,
    StopReplicaRequest,
)
from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.protocol import Committed, Op

ONE_CONTROLLER = "at most one controller's writes and orders take effect per controller epoch"
LEADERSHIP = "epochs never go down, a leader is in its ISR, an ISR within the replicas"
IDENTITY = "a reassignment keeps its identity until it ends"
DURABLE = "brokers are told only what is durable, and of one leader per leader epoch"
ACKNOWLEDGED = "a record acknowledged with acks=all is never lost"
ANSWERS = "every request gets exactly one answer"
PROMISED = "what an answer reports has happened, or is certain to happen"
DELETION = "a replica's data are deleted only once the cluster can do without them"


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

    durable: Durable = field(init=False)
    """Set before the first commit."""

    disks: dict[int, Disk] = field(factory=dict, init=False)
    """The brokers' disks."""

    exempt: Exemptions = field(factory=Exemptions, init=False)
    """Rows that are not checked."""

    violation: Violation | None = field(default=None, init=False)
    _partitions: Partitions = field(init=False)
    _registrations: Registrations = field(factory=Registrations, init=False)
    _controllership: Controllership = field(factory=Controllership, init=False)
    _leaderships: Leaderships = field(factory=Leaderships, init=False)
    _orders: Orders = field(init=False)
    _identities: Identities = field(init=False)
    _answers: Answers = field(factory=Answers, init=False)
    _deletions: Deletions = field(init=False)
    _promises: Promises = field(init=False)
    _ledger: Ledger = field(init=False)
    _unclean: UncleanElections = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._partitions = Partitions(self.exempt)
        self._orders, self._identities = Orders(self.exempt), Identities(self.exempt)
        self._unclean = UncleanElections(self.unclean_by_default)
        self._deletions = Deletions(self._partitions, self._registrations)
        self._promises = Promises(self._partitions, self._controllership)
        self._ledger = Ledger(self.disks, self._partitions, self._registrations)

    def report(self, invariant: str, text: str) -> None:
        """Record a violation; only the first counts."""
        if self.violation is None:
            self.violation = Violation(invariant, text)
            self.trace.add("violation", "", str(self.violation))
            self.trace.end()
            self.on_violation()

    def committed(self, host: str, ops: Sequence[Op], committed: Committed) -> None:
        """Check a commit by a host's session, or by the store itself if `host` is "", right after it took effect."""
        del committed
        self._judge(ONE_CONTROLLER, self._controllership.committed(host, ops, self.durable))
        self._judge(IDENTITY, self._identities.committed(ops, self.durable))
        self._unclean.committed(ops, self.durable)
        self._promises.committed(ops, self.durable)
        for broker_id in self._registrations.committed(ops):
            self._deletions.registered(broker_id)
        for change in self._partitions.take(host, ops, self.durable):
            self._judge(ONE_CONTROLLER, self._controllership.changed(change))
            self._judge(LEADERSHIP, self._leaderships.changed(change))
            if not self.exempt.has(paths.broker_config(None)):
                self._judge(ACKNOWLEDGED, self._unclean.changed(change))
            self._orders.changed(change)
            self._deletions.changed(change)
            self._promises.changed(change)
            self._judge(ACKNOWLEDGED, self._ledger.changed(change))

    def delivered(self, source: str, destination: str, connection_id: int, chunk: bytes) -> None:
        """Check a frame that its receiver takes from the network."""
        fault = self._answers.delivered(source, destination, connection_id, chunk)
        if fault is not None:
            self.report(ANSWERS, fault)

    def asked(self, request: LeadershipRequest) -> None:
        """Record a request of a broker or an administrator, as a controller takes it from the network."""
        if isinstance(request, AlterPartitionRequest):
            self._leaderships.asked(request)
        elif isinstance(request, ControlledShutdownRequest):
            self._registrations.shutting_down(request.broker_id)
        else:
            self._unclean.asked(request)

    def ordered(self, controller_host: str, broker_id: int, request: ControlRequest) -> None:
        """Check an order of a controller, as the broker takes it from the network."""
        self._judge(ONE_CONTROLLER, self._controllership.ordered(controller_host, request))
        if isinstance(request, StopReplicaRequest):
            self._deletions.ordered(broker_id, request)
            self._orders.stopped(broker_id, request)
        else:
            self._judge(DURABLE, self._orders.ordered(broker_id, request))

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
        """Return whether settings allow a replica outside the ISR to lead partitions of a topic."""
        return self._unclean.is_allowed(topic)

    def undead(self) -> list[str]:
        """Return the topics that were marked for deletion and still exist."""
        topics = {name: self.durable.topic(name) for name, _ in self._promises.doomed}
        doomed = [(name, topic) for name, topic in topics.items() if topic and not self.exempt.has_topic(name)]
        return [name for name, topic in doomed if (name, topic.topic_id or "") in self._promises.doomed]

    def lost(self) -> list[str]:
        """Return the acknowledged records that a member of the ISR lacks, once the faults are over."""
        return list(self._ledger.lost())

    def _judge(self, invariant: str, faults: Iterable[str]) -> None:
        for fault in faults:
            self.report(invariant, fault)
