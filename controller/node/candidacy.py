"""The two ways to stand for election: in a cluster of our own brokers, and among Apache Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from attrs import define, field, frozen

from controller.config import ControllerConfig
from controller.model import kafka_acls, kafka_checks, kafka_office
from controller.model.election_results import Standby, Won
from controller.model.kafka_checks import Weight
from controller.model.kafka_office import Candidate, Claim, GiveUp
from controller.node import controller_election
from controller.node.controller_election import ForeignCluster, create_epoch, is_broker_of_ours
from controller.node.kafka_checks import KafkaChecks
from transport.host import Host
from transport.log import get_logger
from transport.network import Network
from transport.store import paths
from transport.store.formats import UndecodableZnode
from transport.store.kafka_checks import Record, record
from transport.store.kafka_office import Lock, OfficeZnodes, Writer, read_office, registration_of
from transport.store.protocol import (
    ANY_VERSION,
    Check,
    Conflict,
    Create,
    Delete,
    MetadataStore,
    Op,
    Rejected,
    children_of,
)

log = get_logger(__name__)


class Candidacy(Protocol):
    """The rules of one kind of cluster for its controllers."""

    async def require_eligible(self, store: MetadataStore) -> None:
        """Raise ForeignCluster, when a controller starts, if none of ours may ever take office here."""

    async def require_kind(self, store: MetadataStore) -> None:
        """Raise ForeignCluster before an election if there are brokers of another kind."""

    async def elect(self, store: MetadataStore, held: Won | None) -> Won | Standby:
        """Become the controller unless there is one, and watch for the next election; `held` is the office we hold.

        Raises UndecodableZnode, or ForeignCluster if the office is out of our reach.
        """

    async def resign(self, store: MetadataStore, won: Won) -> None:
        """Make room for the next controller of ours, if the epoch is still ours."""


def candidacy_of(config: ControllerConfig, host: Host, network: Network) -> Candidacy:
    """Return the rules for the kind of cluster that the settings name; brokers of Kafka's are reached by `network`."""
    if config.kafka:
        return AmongKafka(config.controller_id, host.now_ms, KafkaChecks(config, network))
    return AmongOurs(config.controller_id, host.now_ms)


@frozen
class AmongOurs:
    """The rules of a cluster of our own brokers."""

    _controller_id: int
    _now_ms: Callable[[], int]

    async def require_eligible(self, store: MetadataStore) -> None:
        """See `Candidacy`."""
        await self.require_kind(store)

    async def require_kind(self, store: MetadataStore) -> None:
        """See `Candidacy`."""
        await controller_election.refuse_foreign(store)

    async def elect(self, store: MetadataStore, held: Won | None) -> Won | Standby:
        """See `Candidacy`."""
        return await controller_election.elect(store, self._controller_id, self._now_ms(), held)

    async def resign(self, store: MetadataStore, won: Won) -> None:
        """See `Candidacy`."""
        await controller_election.resign(store, won)


@define
class AmongKafka:
    """The rules of a cluster of Kafka's brokers; `controller.model.kafka_office` has the decisions."""

    _controller_id: int
    _now_ms: Callable[[], int]
    _checks: KafkaChecks | None = None
    """Compares our settings with the brokers'; None for an election without that."""

    _has_looked_ahead: bool = field(default=False, init=False)
    _said: str = field(default="", init=False)
    """The reason that was logged last, so that it is logged once."""

    _unrecorded_order: int = field(default=0, init=False)
    """The czxid of the order for which it was logged last that findings cannot be recorded."""

    async def require_eligible(self, store: MetadataStore) -> None:
        """See `Candidacy`."""
        await self.require_kind(store)
        try:
            reason = kafka_office.obstacle(await read_office(store))
        except UndecodableZnode as damage:
            raise ForeignCluster(f"the office cannot be judged: {damage}") from damage
        if reason:
            raise ForeignCluster(reason)

    async def require_kind(self, store: MetadataStore) -> None:
        """Raise ForeignCluster for a broker of our own, or one that could not replace us; adopt the brokers' ACLs.

        Only controllers out of office ask; one that is refused keeps no lock of an earlier office from others.
        """
        try:
            await self._require_kind(store)
        except ForeignCluster:
            with suppress(UndecodableZnode):
                await _unlock(store, await read_office(store))
            raise

    async def _require_kind(self, store: MetadataStore) -> None:
        ids = [id_ for id_ in paths.numbers(await children_of(store, paths.BROKER_IDS)) if id_ != self._controller_id]
        found = await store.read([paths.broker(id_) for id_ in ids])
        for id_, znode in zip(ids, found, strict=True):
            if znode is not None and is_broker_of_ours(id_, znode):
                text = f"broker {id_} is one of Klamm's own, and --kafka is for Apache Kafka's: leave out --kafka"
                raise ForeignCluster(text)
        root, epoch, *acls = await store.acls(["/", paths.CONTROLLER_EPOCH, *map(paths.broker, ids)])
        known = {id_: acl for id_, acl in zip(ids, acls, strict=True) if acl is not None}
        if reason := kafka_acls.shut_out(root, known):
            raise ForeignCluster(reason)
        is_protected = kafka_acls.is_protected(epoch, known)
        if is_protected is not None:
            store.protect(set_acl=is_protected)

    async def elect(self, store: MetadataStore, held: Won | None) -> Won | Standby:
        """See `Candidacy`."""
        while True:
            znodes = await read_office(store, watch=True)
            if znodes.epoch is None:
                await create_epoch(store)
                continue
            me = Candidate(self._controller_id, store.session_id, self._now_ms())
            match kafka_office.judge(znodes, me, held):
                case Claim() as claim:
                    outcome = await self._stand(store, znodes, claim)
                    if outcome is not None:
                        return outcome
                case GiveUp() as leaving:
                    if await _leave(store, znodes, leaving):
                        if held is None:
                            self._say(leaving.reason)
                        return Standby(None, leaving.reason)
                case Standby(reason=reason) as standby:
                    self._say(reason)
                    await self._leave_the_brokers(store)
                    await self._look_ahead(store)
                    return standby
                case Won() as won:
                    self._say(kafka_office.obstacle(znodes), "still in office, but no longer for long")
                    return won

    async def _look_ahead(self, store: MetadataStore) -> None:
        """Check our settings once while standing by: an operator learns of a fault, and an election need not ask."""
        if self._checks is None or self._has_looked_ahead:
            return
        self._has_looked_ahead = True
        for finding in await self._checks.before_election(store):
            say = log.info if finding.weight is Weight.LOOK else log.warning
            say("looking ahead to an election", found=str(finding))

    async def _stand(self, store: MetadataStore, znodes: OfficeZnodes, claim: Claim) -> Won | Standby | None:
        """Take office unless our settings forbid it; return None if another write came first.

        A controller that lost an office in this session, and may not stand again, leaves the lock to others. The watch
        on the lock then has it stand once more, without a lock to delete.
        """
        if reason := await self._reason_not_to_stand(store, znodes):
            if not await _unlock(store, znodes):
                return None
            self._say(reason)
            return Standby(_others_controller(znodes), reason)
        try:
            won = await _take(store, claim, self._controller_id)
        except ForeignCluster:
            await _unlock(store, znodes)
            raise
        if won is not None:
            self._said = ""
            if remark := kafka_office.remark(znodes):
                log.warning("in office in spite of this", controller=self._controller_id, found=remark)
        return won

    async def _reason_not_to_stand(self, store: MetadataStore, znodes: OfficeZnodes) -> str:
        """Return what checks of our settings found that forbids to stand, empty if nothing does.

        An operator's order is not carried out on settings that could not be checked, unless it is forced; an office of
        Klamm's that is vacant is taken all the same, because nobody else elects leaders there. What was found for an
        order is recorded for the operator.
        """
        if self._checks is None:
            return ""
        is_ordered, is_forced = kafka_office.is_ordered(znodes), kafka_office.is_forced(znodes)
        findings = await (self._checks.all(store) if is_ordered else self._checks.before_election(store))
        weights = (Weight.DANGER, Weight.UNKNOWN) if is_ordered else (Weight.DANGER,)
        reasons = [] if is_forced else kafka_checks.texts(findings, *weights)
        if is_ordered:
            lines = tuple(map(str, findings))
            await self._record(store, Record(self._controller_id, znodes.order_zxid, bool(reasons), lines))
        if not reasons:
            for finding in findings:
                say = log.info if finding.weight is Weight.LOOK else log.warning
                say("standing for election in spite of this", found=str(finding), forced=is_forced)
        return "; ".join(reasons)

    async def _record(self, store: MetadataStore, found: Record) -> None:
        """Record the findings for an order. If they cannot be recorded, log that once, and go on with the order."""
        try:
            await record(store, found)
        except (Rejected, UndecodableZnode) as fault:
            if found.order_zxid == self._unrecorded_order:
                return
            self._unrecorded_order = found.order_zxid
            cure = (
                "let this controller write its address there, or start it again: an operator reads the findings there"
            )
            log.warning(
                "the findings about an order cannot be recorded", fault=str(fault), found=found.lines, cure=cure
            )

    async def resign(self, store: MetadataStore, won: Won) -> None:
        """Give up the lock, and leave `/controller` as it is: stopping a process is no release."""
        registration = await registration_of(store, self._lock_of(store))
        if not await _did(
            store, [Check(paths.CONTROLLER_EPOCH, won.version), *registration, Delete(paths.OFFICE_LOCK)]
        ):
            return
        others = [id_ for id_ in await children_of(store, paths.KLAMM_CONTROLLERS) if id_ != str(self._controller_id)]
        if not others:
            cure = f"start a controller, or let Kafka's brokers elect one of theirs: {kafka_office.RELEASE}"
            log.warning("Kafka's brokers have no controller now: no other controller of Klamm's stands by", cure=cure)

    async def _leave_the_brokers(self, store: MetadataStore) -> None:
        """Remove a registration that an office of ours in this session has left."""
        registration = await registration_of(store, self._lock_of(store))
        if registration:
            await _did(store, registration)

    def _lock_of(self, store: MetadataStore) -> Lock:
        """Return the lock that we hold or held, as far as it says which registration is ours."""
        return Lock(self._controller_id, store.session_id, ANY_VERSION)

    def _say(self, reason: str, what: str = "not standing for election") -> None:
        if reason and reason != self._said:
            log.warning(what, controller=self._controller_id, reason=reason)
        self._said = reason


def _others_controller(znodes: OfficeZnodes) -> int | None:
    """Return the id of Kafka's controller that is in office, None if there is none."""
    holder = znodes.holder
    return None if holder is None or holder.writer is Writer.KLAMM else holder.controller_id


async def _take(store: MetadataStore, claim: Claim, controller_id: int) -> Won | None:
    """Take office; return None if another write came first. Raises ForeignCluster if an ACL is in the way."""
    # Brokers may place replicas on this id as soon as it is in office, and for a while after that.
    record = [paths.CONTROLLER_IDS, paths.controller_id(controller_id)]
    found = await store.read(record)
    missing = [Create(path) for path, znode in zip(record, found, strict=True) if znode is None]
    try:
        await store.multi((*claim.ops, *missing))
    except Conflict:
        return None
    except Rejected as rejected:
        raise ForeignCluster(f"the office cannot be taken: {rejected}") from rejected
    return claim.won


async def _did(store: MetadataStore, ops: Sequence[Op]) -> bool:
    """Commit operations; return False if another write came first."""
    try:
        await store.multi(ops)
    except Conflict:
        return False
    return True


async def _unlock(store: MetadataStore, znodes: OfficeZnodes) -> bool:
    """Delete the lock of an office that our session has lost, if it holds it; return False if another write came first.

    The version of the epoch fences the lock: whoever else holds it by now was elected under a later one.
    """
    lock = znodes.lock
    if lock is None or lock.session_id != store.session_id:
        return True
    fence = Check(paths.CONTROLLER_EPOCH, znodes.epoch_version)
    try:
        return await _did(store, [fence, *await registration_of(store, lock), Delete(paths.OFFICE_LOCK, lock.version)])
    except Rejected as rejected:
        cure = "stop this controller, so that another one can be elected"
        log.warning("the lock of a lost office cannot be deleted", reason=str(rejected), cure=cure)
        return True


async def _leave(store: MetadataStore, znodes: OfficeZnodes, leaving: GiveUp) -> bool:
    """Leave the office; return False if another write came first."""
    if not await _did(store, [*await registration_of(store, znodes.lock), *leaving.ops]):
        return False
    if znodes.holder is None or znodes.holder.writer is not Writer.KLAMM:
        log.error("the office was taken away", reason=leaving.reason)
    return True
