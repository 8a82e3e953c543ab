"""The checks of a controller's settings against a cluster of Apache Kafka's brokers, without standing for election.

Before each election, what follows from the registrations and from the settings of one broker is checked: seconds count,
and a broker that has confirmed the settings is not asked again in the same incarnation. An operator's order to take
over and `klamm controller check` check all the rest as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import trio
from attrs import define, field

from controller.admin.handover import topics_that_name
from controller.config import ControllerConfig
from controller.model import kafka_acls, kafka_checks, kafka_office
from controller.model.kafka_checks import Finding, Live, Weight
from controller.node.kafka_listeners import kafka_listeners
from transport.addresses import address_text
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.inquiry import ask_listeners, ask_release
from transport.kafka.listeners import BrokerListeners
from transport.kafka.registration import decode_registration, found_listeners, is_controllers
from transport.metadata import BrokerRegistration
from transport.network import Network
from transport.store import paths
from transport.store.fields import UndecodableZnode
from transport.store.kafka_office import read_office
from transport.store.protocol import (
    ANY_VERSION,
    Check,
    Conflict,
    Create,
    MetadataStore,
    Op,
    Rejected,
    Set,
    children_of,
)
from transport.wire import UnsupportedApi, WireError
from transport.wire.errors import Untrusted
from transport.wire.secured import protocol_of

ANSWER_SECONDS: Final = 3.0
"""The time that the brokers have to answer, all at once."""

_ASKED_AT_ONCE: Final = 5
"""The number of brokers that are asked together. The first to answer decides, and while none does, more are asked."""

_MORE_SECONDS: Final = 0.25
"""The pause before the next group of brokers is asked."""

_ORDERS: Final = (kafka.LeaderAndIsrRequest, kafka.StopReplicaRequest, kafka.UpdateMetadataRequest)
_NOWHERE: Final = "/klamm/does-not-exist"
_PROBE: Final = "klamm-check"
_PROBED_TOPICS: Final = 20

Address = tuple[int, str, int]
"""The id of a broker, and where it listens."""


@define
class KafkaChecks:
    """Checks the settings of a controller; `network` has its credentials."""

    config: ControllerConfig
    network: Network
    _confirmed: dict[int, int] = field(factory=dict, init=False)
    """The epochs of the brokers that have confirmed the settings."""

    async def before_election(self, store: MetadataStore) -> list[Finding]:
        """Check what forbids an election, and watch the znodes that it follows from."""
        found = await self._cluster_and_id(store)
        # If no broker answers, an election need not say so: the channels do, as long as that lasts.
        return found or await self._judge_listeners(await self._live(store), silence=Weight.LOOK)

    async def all(self, store: MetadataStore) -> list[Finding]:
        """Check everything. Nothing is changed in the store or on a broker."""
        found = await self._cluster_and_id(store)
        if found:
            return found
        live = await self._live(store)
        found += await self._judge_listeners(live, silence=Weight.UNKNOWN)
        found += kafka_checks.judge_partly_missing(self.config, live)
        found += await self._each_broker([one.registration for one in live if one.registration is not None])
        found += await self._office(store)
        found += await _znodes(store)
        # Brokers may give the same reason with other options.
        by_reason = {(finding.weight, finding.text.partition(": ")[0]): finding for finding in reversed(found)}
        return [finding for finding in dict.fromkeys(found) if finding in by_reason.values()]

    # --- the store ----------------------------------------------------------------------------------------------

    async def _cluster_and_id(self, store: MetadataStore) -> list[Finding]:
        """Check that there is a cluster, and that our id is not that of one of its brokers."""
        id_ = self.config.controller_id
        [cluster_id] = await store.read([paths.CLUSTER_ID], watch=True)
        if cluster_id is None:
            _, _, chroot = self.config.zookeeper_connect.partition("/")
            return [kafka_checks.no_cluster(f"/{chroot}")]
        known, registered = await store.read([paths.controller_id(id_), paths.broker(id_)])
        if registered is not None and not is_controllers(id_, registered.data):
            text = f"id {id_} is that of a live broker: give the controller one that no broker has"
            return [Finding(Weight.DANGER, text)]
        # Brokers may have placed replicas on the id of a controller that was in office. Until it was in office once,
        # each election reads the topics: one of a broker that is down may have been created since the last.
        if known is None and (topics := await topics_that_name(store, {id_})):
            return [kafka_checks.id_of_broker(id_, topics)]
        return []

    async def _live(self, store: MetadataStore) -> list[Live]:
        names = await children_of(store, paths.BROKER_IDS, watch=True)
        ids = [id_ for id_ in paths.numbers(names) if id_ != self.config.controller_id]
        live = []
        for id_, znode in zip(ids, await store.read([paths.broker(id_) for id_ in ids], watch=True), strict=True):
            if znode is None or is_controllers(id_, znode.data):
                continue
            name = self.config.orders_listener_name
            try:
                broker = decode_registration(id_, znode.data, znode.stat.czxid, name)
                live.append(Live(id_, broker, broker.listeners))
            except UndecodableZnode as fault:
                live.append(Live(id_, None, found_listeners(id_, znode.data)[1], str(fault)))
        return live

    async def _office(self, store: MetadataStore) -> list[Finding]:
        """Check whether the office may be taken at all."""
        remark = ""
        try:
            office = await read_office(store)
            obstacle, remark = kafka_office.obstacle(office), kafka_office.remark(office)
        except UndecodableZnode as damage:
            obstacle = f"the office cannot be judged: {damage}"
        ids = paths.numbers(await children_of(store, paths.BROKER_IDS))
        root, *acls = await store.acls(["/", *map(paths.broker, ids)])
        known = {id_: acl for id_, acl in zip(ids, acls, strict=True) if acl is not None}
        reasons = obstacle, kafka_acls.shut_out(root, known)
        dangers = [Finding(Weight.DANGER, reason) for reason in reasons if reason]
        return [*dangers, Finding(Weight.LOOK, remark)] if remark else dangers

    # --- the brokers --------------------------------------------------------------------------------------------

    async def _judge_listeners(self, live: Sequence[Live], *, silence: Weight) -> list[Finding]:
        """Compare our listeners with the registrations, and with the settings of a broker that can be asked."""
        usable = {one.broker_id: one.registration for one in live if one.registration is not None}
        if not live or any(self._confirmed.get(id_) == broker.epoch for id_, broker in usable.items()):
            return []
        if not usable:
            elsewhere = await self._first_answer(self._addresses(live))
            return kafka_checks.judge_registrations(self.config, live, None if elsewhere is None else elsewhere[1])
        answer = await self._first_answer([(broker.id, broker.host, broker.port) for broker in usable.values()])
        if answer is None:
            text = f"no live broker answers at its listener {self.config.orders_listener_name}"
            cure = f"see whether this host reaches {self._where(usable.values())}"
            return [Finding(silence, f"{text} within {ANSWER_SECONDS:g} s: {cure}")]
        return self._judge_answer(usable[answer[0]], answer[1])

    def _judge_answer(self, broker: BrokerRegistration, told: BrokerListeners | None) -> list[Finding]:
        listeners = kafka_listeners(self.config)
        advertised = () if listeners is None else tuple(listener.name for listener in listeners.advertised)
        found = kafka_checks.judge_listeners(self.config, advertised, broker.id, told)
        if not kafka_checks.texts(found, Weight.DANGER, Weight.UNKNOWN):
            self._confirmed[broker.id] = broker.epoch
        return found

    def _addresses(self, live: Iterable[Live]) -> list[Address]:
        """Return where brokers without our listener may tell the name of the right one: with our protocol."""
        ours = protocol_of(self.network)
        return [(one.broker_id, at.host, at.port) for one in live for at in one.listeners if at.protocol is ours]

    def _where(self, brokers: Iterable[BrokerRegistration]) -> str:
        return ", ".join(address_text(broker.host, broker.port) for broker in brokers)

    async def _first_answer(self, addresses: Sequence[Address]) -> tuple[int, BrokerListeners | None] | None:
        """Return the first broker that answers with the settings of its listeners; None if there is none in time."""
        answers: list[tuple[int, BrokerListeners | None]] = []

        async def ask(broker_id: int, host: str, port: int) -> None:
            try:
                async with self._connected(host, port) as connection:
                    answers.append((broker_id, await ask_listeners(connection, broker_id, timeout=ANSWER_SECONDS)))
                    nursery.cancel_scope.cancel()
            except WireError:
                return

        with trio.move_on_after(ANSWER_SECONDS):
            async with trio.open_nursery() as nursery:
                for number, address in enumerate(addresses, 1):
                    nursery.start_soon(ask, *address)
                    if number % _ASKED_AT_ONCE == 0:
                        await trio.sleep(_MORE_SECONDS)
        return answers[0] if answers else None

    def _connected(self, host: str, port: int) -> AbstractAsyncContextManager[KafkaConnection]:
        name = f"controller-{self.config.controller_id}"
        return open_kafka_connection(self.network, host, port, client_id=name, connect_timeout=ANSWER_SECONDS)

    async def _each_broker(self, brokers: Sequence[BrokerRegistration]) -> list[Finding]:
        """Ask each broker: for its release, its settings, and whether it lets this controller in."""
        found: dict[int, list[Finding]] = {}

        async def ask(broker: BrokerRegistration) -> None:
            found[broker.id] = await self._ask(broker)

        async with trio.open_nursery() as nursery:
            for broker in brokers:
                nursery.start_soon(ask, broker)
        return [finding for _, findings in sorted(found.items()) for finding in findings]

    async def _ask(self, broker: BrokerRegistration) -> list[Finding]:
        at = f"broker {broker.id} at {address_text(broker.host, broker.port)}"
        found: list[Finding] = []
        try:
            with trio.fail_after(ANSWER_SECONDS):
                async with self._connected(broker.host, broker.port) as connection:
                    for order in _ORDERS:
                        connection.version_of(order)
                    release = await ask_release(connection, broker.id, timeout=ANSWER_SECONDS)
                    found += self._judge_answer(broker, await ask_listeners(connection, broker.id))
        except UnsupportedApi as old:
            text = f"{at} is of a release that Klamm cannot govern: {old}: brokers from 2.4 to 3.9 are supported"
            return [Finding(Weight.DANGER, text)]
        except Untrusted as refusal:
            return [Finding(Weight.DANGER, f"{at} does not let this controller in: {refusal}: see security.config")]
        except (WireError, trio.TooSlowError) as silence:
            why = str(silence) or f"it does not answer within {ANSWER_SECONDS:g} s"
            return [Finding(Weight.LOOK, f"{at} gets no orders for now: {why}")]
        if others := kafka_checks.other_settings(self.config, release):
            text = f"broker {broker.id} has other settings, by which a controller of Kafka's decides"
            found.append(Finding(Weight.LOOK, f"{text}: {', '.join(others)}"))
        if release.protocol is None and self.config.protocol is None:
            text = f"broker {broker.id} does not tell its inter.broker.protocol.version: set it with"
            found.append(Finding(Weight.LOOK, f"{text} --inter-broker-protocol-version"))
        return found


async def _znodes(store: MetadataStore) -> list[Finding]:
    """Check that the znodes that a controller writes let it do so.

    Each probe is a multi that fails at its last operation, so it changes nothing: the question is whether it fails
    before, because of an ACL.
    """
    epoch, *parents = await store.read([paths.CONTROLLER_EPOCH, *paths.PERSISTENT])
    names = (await children_of(store, paths.TOPICS))[:_PROBED_TOPICS]
    topics = await store.read([paths.topic(name) for name in names])
    probes: dict[str, Op] = {"the chroot": Create(f"/{_PROBE}")}
    if epoch is not None:
        probes[paths.CONTROLLER_EPOCH] = Set(paths.CONTROLLER_EPOCH, epoch.data, ANY_VERSION)
    there = [path for path, znode in zip(paths.PERSISTENT, parents, strict=True) if znode is not None]
    probes |= {path: Create(f"{path}/{_PROBE}") for path in there if path != paths.PRODUCER_IDS}
    for name, znode in zip(names, topics, strict=True):
        if znode is not None:
            probes[paths.topic(name)] = Set(paths.topic(name), znode.data, ANY_VERSION)
    closed = [path for path, op in probes.items() if not await _is_open(store, op)]
    if not closed:
        return []
    text = f"the ACL of {', '.join(closed)} forbids this controller to write: give it the brokers' identity"
    return [Finding(Weight.DANGER, text)]


async def _is_open(store: MetadataStore, op: Op) -> bool:
    """Return whether ACLs allow an operation, without its effect."""
    try:
        await store.multi([op, Check(_NOWHERE, ANY_VERSION)])
    except Conflict:
        return True
    except Rejected:
        return False
    raise AssertionError(f"{_NOWHERE} exists")
