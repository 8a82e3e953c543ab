"""Brokers that start, fail, change their address, or come back as another incarnation (KAFKA-7235)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from attrs import evolve, field, frozen

from controller.handlers import deletion, kafka_brokers, leadership, reassignments, storage, strays
from controller.handlers.metadata import all_topics
from controller.model import choosing, registrations
from controller.model.context import ControllerContext
from controller.model.descriptions import describe_deletions, describe_led
from controller.model.facts import BrokerGone, BrokerRegistered, BrokersKeptOut, BrokerUnusable, ReplicasMoved
from controller.model.reassignment import beginners
from controller.model.rounds import Publication, Rounds, Step, TellLeaderAndIsr, TellMetadata, apply, children, read
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.kafka.registration import decode_registration, found_listeners, is_controllers
from transport.log import get_logger
from transport.messages import PartitionState
from transport.metadata import NEVER_LED, NO_EPOCH, BrokerRegistration, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import FORBIDDEN, Znode

log = get_logger(__name__)


def broker_change(context: ControllerContext) -> Rounds[None]:
    """Compare the registrations with the context, and handle new, bounced and dead brokers in this order.

    A broker with a registration that cannot be used is none of these, as long as its incarnation is the same.
    """
    found = yield from read_brokers(context)
    registered = {broker.id: broker for broker in found.usable}
    known = registrations.alive(context)
    bounced = [b for id_, b in registered.items() if registrations.has_restarted(context, id_, b.epoch)]
    new = [b for id_, b in registered.items() if id_ not in context.brokers and b not in bounced]
    replaced = [one for one in found.unusable if registrations.has_restarted(context, one.broker_id, one.epoch)]
    there = {*registered, *(one.broker_id for one in found.unusable)}
    dead = [id_ for id_ in sorted(known) if id_ not in there]
    yield from note_unusable(context, [one for one in found.unusable if one not in replaced])
    # Brokers that lost their data must leave the ISRs before any election, or one of them could win it.
    if context.closed.brokers:
        # A state that was closed to us may be open by now, and list one of them.
        yield from leadership.adopt(context, context.in_phase(PartitionPhase.NEW))
    admission = yield from storage.admit(context, [*new, *bounced])
    empty, kept_out = admission.lost, admission.kept_out
    yield from apply("brokers", [Step(facts=(BrokersKeptOut(kept_out),))] if kept_out != context.closed.brokers else [])
    shut_out = [broker.id for broker in new if broker.id in kept_out and context.is_unaddressable(broker.id)]
    new = [broker for broker in new if broker.id not in kept_out]
    # A bounced broker may be the only member of an ISR. It is alive and has all records, so nobody is elected from
    # outside an ISR before it has started.
    yield from brokers_started(context, new, empty, only_cleanly=bool(bounced or replaced))
    # A bounced broker first fails, because its old incarnation has stopped leading and following, and then starts.
    ended = [*(broker.id for broker in bounced), *(one.broker_id for one in replaced)]
    yield from brokers_failed(context, ended, only_cleanly=True)
    # The new incarnation leads and follows nothing before it has an address.
    yield from note_unusable(context, replaced)
    yield from brokers_started(context, [broker for broker in bounced if broker.id not in kept_out], empty)
    if replaced:
        yield from leadership.bring_online(context)
    if bounced:
        # The unclean elections that remained may have been all that moves waited for.
        yield from reassignments.finish_ready(context, context.partitions_on(b.id for b in (*new, *bounced)))
    # A repaired registration of a broker that lost its data: until that is written, the broker counts as dead.
    yield from brokers_failed(context, [*dead, *shut_out])
    yield from _brokers_moved(context, registered.values())
    yield from kafka_brokers.keep_registration(context)


def broker_modifications(context: ControllerContext, broker_id: int) -> Rounds[None]:
    """Read a live broker's endpoint and rack again. A registration that was set aside may have been repaired."""
    found = yield from _read_registrations(context, [broker_id])
    if broker_id not in context.brokers:
        if found.usable or found.unusable:
            yield from broker_change(context)
        return
    yield from _brokers_moved(context, found.usable)
    # A new incarnation is left to `broker_change`.
    epoch = context.brokers[broker_id].epoch
    yield from note_unusable(context, [one for one in found.unusable if one.epoch in (epoch, NO_EPOCH)])


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
            moved += [now] if now != known or broker.id in context.unusable else []
    if not moved:
        return
    for broker in moved:
        log.info("a broker moved", broker=broker.id, host=broker.host, port=broker.port, rack=broker.rack)
    yield from apply("brokers", [Step(facts=tuple(BrokerRegistered(broker) for broker in moved))])
    yield from apply("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])


@frozen
class Registrations:
    """The registrations that were found, without those of controllers."""

    usable: list[BrokerRegistration] = field(factory=list)
    unusable: list[BrokerUnusable] = field(factory=list)


def note_unusable(context: ControllerContext, found: Sequence[BrokerUnusable]) -> Rounds[None]:
    """Take registrations that cannot be used for what they are: their brokers are alive.

    Brokers are sent the live brokers again if some of these have no address: of such a Kafka broker, they learn
    the listeners that it has.
    """
    news = [one for one in found if context.unusable.get(one.broker_id) != one]
    for one in news:
        has_address = one.broker_id in context.brokers
        then = (
            "its last usable registration stays in effect" if has_address else "it keeps what it leads, without orders"
        )
        log.error("a live broker's registration cannot be used", broker=one.broker_id, fault=one.fault, then=then)
    yield from apply("brokers", [Step(facts=tuple(news))] if news else [])
    if any(one.broker_id not in context.brokers for one in news):
        yield from apply("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])


def read_brokers(context: ControllerContext) -> Rounds[Registrations]:
    """Read all registrations, and watch the list and each of them."""
    names = yield from children(paths.BROKER_IDS, watch=True)
    return (yield from _read_registrations(context, sorted(paths.numbers(names))))


def _read_registrations(context: ControllerContext, ids: Sequence[int]) -> Rounds[Registrations]:
    znodes = yield from read((paths.broker(id_) for id_ in ids), watch=True)
    found = Registrations()
    for id_, znode in zip(ids, znodes, strict=True):
        if znode is None or is_controllers(id_, znode.data):
            continue
        try:
            found.usable.append(_decode(context, id_, znode))
        except formats.UndecodableZnode as fault:
            found.unusable.append(_unusable(id_, znode, str(fault)))
    return found


def _unusable(broker_id: int, znode: Znode, fault: str) -> BrokerUnusable:
    epoch = NO_EPOCH if znode == FORBIDDEN else znode.stat.czxid
    rack, listeners = found_listeners(broker_id, znode.data)
    return BrokerUnusable(broker_id, epoch, fault, rack, listeners)


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
    reached = [id_ for id_ in ids if context.is_unaddressable(id_)]
    yield from apply("brokers", [Step(facts=tuple(BrokerRegistered(broker) for broker in brokers))])
    states = dict(zip(context.leadership, describe_led(context), strict=True))
    here = context.partitions_on(ids)
    back = tuple(states[tp] for tp in here if tp in states)
    # The others were told that these replicas are offline, and a replica may stay outside the ISR for long.
    others = tuple(id_ for id_ in sorted(context.brokers) if id_ not in ids)
    news = TellMetadata(others, back, context.live_brokers())
    everything = yield from _everything(context, ids, states.values())
    yield from apply("metadata", [Step(publications=(news, everything))])
    # Strays are deleted before brokers hear of a topic of the same name: a broker refuses two replicas of one name.
    yield from strays.pursue(context, ids)
    told = tuple(orders_of_all(context, back, ids, empty))
    yield from apply(
        "resend", [Step(tuple(here), facts=tuple(_online(context, ids)), publications=told)] if here else []
    )
    yield from leadership.bring_online(context, only_cleanly=only_cleanly)
    yield from _shrink_held(context, reached)
    moving = [tp for tp in context.reassigning if not set(ids).isdisjoint(_awaited(context, tp))]
    yield from reassignments.advance(context, moving)
    yield from deletion.resume(context, ids)


def _shrink_held(context: ControllerContext, leaders: Collection[int]) -> Rounds[None]:
    """Take replicas out of the ISRs of leaders that were unaddressable when these replicas died or failed."""
    if not leaders:
        return
    led = [tp for tp in context.partitions_on(leaders) if context.leadership.get(tp, NEVER_LED).leader in leaders]
    shrinking: dict[tuple[int, ...], list[TopicPartition]] = defaultdict(list)
    for tp in led:
        shrinking[choosing.unserved(context, tp)].append(tp)
    for gone, tps in shrinking.items():
        if gone:
            yield from leadership.replace_offline(context, tps, gone)


def _awaited(context: ControllerContext, tp: TopicPartition) -> tuple[int, ...]:
    """Return the brokers that a move may be waiting for: its target, and a leader that had no address."""
    return *context.assignment(tp).target_replicas, context.leadership.get(tp, NEVER_LED).leader


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
    yield from apply("metadata", [Step(publications=(everything,))])
    held = [state for state in states if broker_id in state.replicas]
    again = tuple(orders_of_all(context, held, [broker_id], ()))
    yield from apply("resend", [Step(tuple([state.tp for state in held]), publications=again)] if held else [])


def resend_deletions(
    context: ControllerContext, broker_id: int, broker_epoch: int, gone: Sequence[PartitionState]
) -> Rounds[None]:
    """Tell a broker incarnation of Kafka's again that partitions are gone, except those that have come back since.

    It keeps a partition until it hears of the deletion, and the deletion may be over.
    """
    left = tuple(state for state in gone if state.tp not in context.leadership)
    if left and context.is_registered(broker_id, broker_epoch):
        yield from apply("metadata", [Step(publications=(TellMetadata((broker_id,), left),))])


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
    has_held = any(map(context.is_unaddressable, ids))
    yield from apply("brokers", [Step(facts=tuple(BrokerGone(id_) for id_ in ids))])
    # ISRs of leaders that were unaddressable may still have members that died before.
    gone = registrations.dead(context) if has_held else ids
    # Followers of a new leader must know the live brokers first (KAFKA-4443, KAFKA-13225).
    yield from apply("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])
    tps = context.partitions_on(ids)
    yield from leadership.replace_offline(context, tps, gone, only_cleanly=only_cleanly)
    # An unclean election may leave exactly those replicas in the ISR that a move waits for.
    yield from reassignments.finish_ready(context, tps)
    yield from deletion.resume(context, ())
