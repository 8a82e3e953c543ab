"""Brokers that start, fail, change their address, or come back as another incarnation (KAFKA-7235)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from attrs import evolve

from controller.handlers import deletion, kafka_brokers, leadership, reassignments, storage, strays
from controller.handlers.metadata import all_topics
from controller.model.context import ControllerContext
from controller.model.descriptions import describe_deletions, describe_led
from controller.model.facts import BrokerGone, BrokerRegistered, ReplicasMoved
from controller.model.reassignment import beginners
from controller.model.rounds import Publication, Rounds, Step, TellLeaderAndIsr, TellMetadata, change, children, read
from controller.model.state_machines import ReplicaPhase
from transport.kafka.registration import decode_registration, is_controllers
from transport.log import get_logger
from transport.messages import PartitionState
from transport.metadata import BrokerRegistration
from transport.store import formats, paths
from transport.store.protocol import Znode

log = get_logger(__name__)


def broker_change(context: ControllerContext) -> Rounds[None]:
    """Compare the registrations with the context, and handle new, bounced and dead brokers in this order."""
    registered = {broker.id: broker for broker in (yield from read_brokers(context))}
    new = [broker for id_, broker in registered.items() if id_ not in context.brokers]
    bounced = [b for id_, b in registered.items() if id_ in context.brokers and b.epoch > context.brokers[id_].epoch]
    dead = [id_ for id_ in sorted(context.brokers) if id_ not in registered]
    # Brokers that lost their data must leave the ISRs before any election, or one of them could win it.
    empty = yield from storage.admit(context, [*new, *bounced])
    # A bounced broker may be the only member of an ISR. It is alive and has all records, so nobody is elected from
    # outside an ISR before it has started.
    yield from brokers_started(context, new, empty, only_cleanly=bool(bounced))
    # A bounced broker first fails, because its old incarnation has stopped leading and following, and then starts.
    yield from brokers_failed(context, [broker.id for broker in bounced], only_cleanly=True)
    yield from brokers_started(context, bounced, empty)
    if bounced:
        # The unclean elections that remained may have been all that moves waited for.
        yield from reassignments.finish_ready(context, context.partitions_on(b.id for b in (*new, *bounced)))
    yield from brokers_failed(context, dead)
    yield from _brokers_moved(context, registered.values())
    yield from kafka_brokers.keep_registration(context)


def broker_modifications(context: ControllerContext, broker_id: int) -> Rounds[None]:
    """Read a live broker's endpoint and rack again. A registration that was set aside may have been repaired."""
    found = yield from _read_registrations(context, [broker_id])
    if broker_id in context.brokers:
        yield from _brokers_moved(context, found)
    elif found:
        yield from broker_change(context)


def _brokers_moved(context: ControllerContext, brokers: Iterable[BrokerRegistration]) -> Rounds[None]:
    """Apply changes in the registrations of known incarnations, and publish them to every broker.

    New incarnations are left to `broker_change`. Within one epoch a broker keeps its storage, so the storage id is not
    updated.
    """
    moved = []
    for broker in brokers:
        known = context.brokers.get(broker.id)
        if known is not None and known.epoch == broker.epoch:
            now = evolve(broker, storage_id=known.storage_id)
            moved += [now] if now != known else []
    if not moved:
        return
    for broker in moved:
        log.info("a broker moved", broker=broker.id, host=broker.host, port=broker.port, rack=broker.rack)
    yield from change("brokers", [Step(facts=tuple(BrokerRegistered(broker) for broker in moved))])
    yield from change("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])


def read_brokers(context: ControllerContext) -> Rounds[list[BrokerRegistration]]:
    """Read all registrations, and watch the list and each of them."""
    names = yield from children(paths.BROKER_IDS, watch=True)
    return (yield from _read_registrations(context, sorted(paths.numbers(names))))


def _read_registrations(context: ControllerContext, ids: Sequence[int]) -> Rounds[list[BrokerRegistration]]:
    found = yield from read((paths.broker(id_) for id_ in ids), watch=True)
    brokers = []
    for id_, znode in zip(ids, found, strict=True):
        if znode is None or is_controllers(id_, znode.data):
            continue
        try:
            brokers.append(_decode(context, id_, znode))
        except formats.UndecodableZnode as fault:
            log.error("broker set aside: its registration cannot be used", broker=id_, fault=str(fault))
    return brokers


def _decode(context: ControllerContext, broker_id: int, znode: Znode) -> BrokerRegistration:
    """Return a registration. Raises UndecodableZnode for a broker of another kind of cluster than ours."""
    data, czxid = znode.data, znode.stat.czxid
    if not context.config.kafka:
        return formats.decode_broker(broker_id, data, czxid)
    if broker_id == context.controller.id:
        raise formats.UndecodableZnode(paths.broker(broker_id), "this is the id of the controller: give it another")
    return decode_registration(broker_id, data, czxid, context.config.orders_listener_name)


def brokers_started(
    context: ControllerContext,
    brokers: Sequence[BrokerRegistration],
    empty: Collection[int],
    *,
    only_cleanly: bool = False,
) -> Rounds[None]:
    """Send new brokers everything and announce them to the others, then elect leaders and resume moves to them.

    `empty` are those that lost their data. With `only_cleanly`, no leader is elected from outside the ISR.
    """
    if not brokers:
        return
    ids = tuple(broker.id for broker in brokers)
    yield from change("brokers", [Step(facts=tuple(BrokerRegistered(broker) for broker in brokers))])
    states = dict(zip(context.leadership, describe_led(context), strict=True))
    here = context.partitions_on(ids)
    back = tuple(states[tp] for tp in here if tp in states)
    # The others were told that these replicas are offline, and a replica may stay outside the ISR for long.
    others = tuple(id_ for id_ in sorted(context.brokers) if id_ not in ids)
    news = TellMetadata(others, back, context.live_brokers())
    everything = yield from _everything(context, ids, states.values())
    yield from change("metadata", [Step(publications=(news, everything))])
    # Strays are deleted before brokers hear of a topic of the same name: a broker refuses two replicas of one name.
    yield from strays.pursue(context, ids)
    told = tuple(orders_of_all(context, back, ids, empty))
    yield from change("resend", [Step(tuple(here), (), tuple(_online(context, ids)), told)] if here else [])
    yield from leadership.bring_online(context, only_cleanly=only_cleanly)
    moving = [tp for tp in context.reassigning if not set(ids).isdisjoint(context.assignment(tp).target_replicas)]
    yield from reassignments.advance(context, moving)
    yield from deletion.resume(context, ids)


def _online(context: ControllerContext, ids: Sequence[int]) -> Iterator[ReplicasMoved]:
    for id_ in ids:
        begun = context.replica_phases.those_on(id_, context.partitions_on([id_]))
        yield ReplicasMoved.on(id_, begun, ReplicaPhase.ONLINE)


def _everything(
    context: ControllerContext, ids: tuple[int, ...], states: Iterable[PartitionState]
) -> Rounds[TellMetadata]:
    """Return all metadata for brokers that may know none of it; `states` are those of all led partitions.

    A broker that only lost its session may have missed the deletion of a topic.
    """
    every_topic = yield from all_topics(context)
    return TellMetadata(ids, (*states, *describe_deletions(context)), context.live_brokers(), every_topic)


def resend_orders(context: ControllerContext, broker_id: int, broker_epoch: int) -> Rounds[None]:
    """Send all metadata to a broker incarnation again, and what it leads and follows.

    It failed to apply an unknown part of one or the other. A Kafka broker may also not have followed leaders that the
    lost metadata named first. What a broker knows already it ignores.
    """
    if not context.is_registered(broker_id, broker_epoch):
        return
    log.info("sending a broker its orders again", broker=broker_id)
    states = describe_led(context)
    everything = yield from _everything(context, (broker_id,), states)
    yield from change("metadata", [Step(publications=(everything,))])
    held = [state for state in states if broker_id in state.replicas]
    again = tuple(orders_of_all(context, held, [broker_id], ()))
    yield from change("resend", [Step(tuple([state.tp for state in held]), publications=again)] if held else [])


def resend_deletions(
    context: ControllerContext, broker_id: int, broker_epoch: int, gone: Sequence[PartitionState]
) -> Rounds[None]:
    """Tell a broker incarnation of Kafka's again that partitions are gone, except those that have come back since.

    It keeps a partition until it hears of the deletion, and the deletion may be over.
    """
    left = tuple(state for state in gone if state.tp not in context.leadership)
    if left and context.is_registered(broker_id, broker_epoch):
        yield from change("metadata", [Step(publications=(TellMetadata((broker_id,), left),))])


def orders_of_all(
    context: ControllerContext, states: Iterable[PartitionState], ids: Collection[int], empty: Collection[int]
) -> list[Publication]:
    """Return the LeaderAndIsr publications for the replicas of partitions on `ids`.

    isNew is set for replicas on `empty` brokers, and for those that a move adds and that have not caught up yet.
    """
    told: list[Publication] = []
    for adding, group in groupby(states, attrgetter("adding_replicas")):
        alike = list(group)
        here = {each: tuple([r for r in each if r in ids]) for each in {state.replicas for state in alike}}
        held = [here[state.replicas] for state in alike]
        if adding or empty:
            begun = [beginners(context.assignment(state.tp), state.isr) for state in alike]
            new = [tuple(r for r in of if r in empty or r in begin) for of, begin in zip(held, begun, strict=True)]
            held = [tuple(r for r in of if r not in first) for of, first in zip(held, new, strict=True)]
            told.append(TellLeaderAndIsr(new, alike, is_new=True))
        told.append(TellLeaderAndIsr(held, alike))
    return told


def brokers_failed(context: ControllerContext, ids: Sequence[int], *, only_cleanly: bool = False) -> Rounds[None]:
    """Elect new leaders for the partitions led by dead brokers, and remove their replicas from the ISRs.

    With `only_cleanly`, no leader is elected from outside the ISR.
    """
    if not ids:
        return
    yield from change("brokers", [Step(facts=tuple(BrokerGone(id_) for id_ in ids))])
    # Followers of a new leader must know the live brokers first (KAFKA-4443, KAFKA-13225).
    yield from change("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])
    tps = context.partitions_on(ids)
    yield from leadership.replace_offline(context, tps, ids, only_cleanly=only_cleanly)
    # An unclean election may leave exactly those replicas in the ISR that a move waits for.
    yield from reassignments.finish_ready(context, tps)
    yield from deletion.resume(context, ())
