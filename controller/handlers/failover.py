"""Failover: a new controller loads the cluster and restores its order (reference: Kafka's onControllerFailover)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final

from controller.handlers import (
    config_changes,
    deletion,
    deletion_markers,
    leader_elections,
    leadership,
    notifications,
    reassignment_requests,
    reassignment_znodes,
    reassignments,
    rollout_plans,
    storage,
    strays,
)
from controller.handlers.brokers import broker_change, note_unusable, orders_of_all, read_brokers
from controller.handlers.configs import read_min_isrs
from controller.handlers.metadata import all_topics
from controller.handlers.topics import load_topics, refresh_topics, start_added, topic_change
from controller.model import registrations
from controller.model.choosing import decide_all
from controller.model.context import ControllerContext
from controller.model.deletion_progress import is_done
from controller.model.descriptions import describe_deletions, describe_led
from controller.model.facts import BrokerGone, BrokerRegistered, BrokersKeptOut, PartitionsFound
from controller.model.rounds import Loaded, Rounds, Step, TellMetadata, apply, children, lists, read, read_ahead
from controller.model.state_machines import PartitionPhase, ReplicaPhase, Row
from transport.metadata import LeaderAndIsr, TopicPartition
from transport.store import paths

READ_AT_ONCE: Final = 10_000
"""The number of partition states that are read before they are applied to the context."""


def failover(context: ControllerContext, new_ids: Iterable[str]) -> Rounds[None]:
    """Load everything, send brokers the live brokers and then their replicas, and resume what was in progress."""
    yield from config_changes.watch_changes(context)
    yield from notifications.clear(context, paths.LOG_DIR_EVENT_NOTIFICATION)
    yield from notifications.clear(context, paths.ISR_CHANGE_NOTIFICATION)
    found = yield from read_brokers(context)
    brokers = found.usable
    yield from apply("brokers", [Step(facts=tuple(BrokerRegistered(broker) for broker in brokers))])
    yield from note_unusable(context, found.unusable)
    names = yield from children(paths.TOPICS, watch=True)
    stray_names, rollout_names = yield from lists([paths.STRAYS, paths.ROLLOUTS])
    yield from strays.load_named(context, stray_names)
    yield from load_topics(context, names, new_ids, ahead=READ_AT_ONCE)
    yield from strays.judge_older(context)
    yield from _trace(context, (yield from _load_states(context)))
    yield from read_min_isrs(context, names)
    # Brokers must know the live brokers before any LeaderAndIsr that names a leader (KAFKA-4443).
    yield from apply("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])
    yield from reassignment_znodes.load(context, set(names) - set(context.topics))
    yield from deletion.begin(context, (yield from deletion_markers.read_marked(context)))
    admission = yield from storage.admit(context, brokers)
    yield from _keep_out(context, admission.kept_out)
    # Strays are deleted before brokers hear of a topic of the same name: a broker refuses two replicas of one name.
    yield from strays.pursue(context)
    yield from _start_replicas(context, admission.lost)
    # A broker with a registration that cannot be used is alive: it keeps what it leads, and its place in ISRs.
    dead = registrations.dead(context)
    yield from leadership.replace_offline(context, context.partitions_on(dead), dead)
    yield from rollout_plans.load(context, rollout_names)
    begun = yield from reassignment_requests.requested_in_store(context)
    yield from reassignments.advance(context, [tp for tp in context.reassigning if tp not in begun])
    yield from leader_elections.requested_in_store(context)
    yield from deletion.resume(context, context.brokers)
    yield from deletion.complete(context, [name for name in context.deletions if is_done(context, name)])


def _keep_out(context: ControllerContext, broker_ids: Collection[int]) -> Rounds[None]:
    """Take brokers that must not start for dead."""
    if broker_ids:
        gone = [BrokerGone(broker_id) for broker_id in sorted(broker_ids)]
        yield from apply("brokers", [Step(facts=(*gone, BrokersKeptOut(frozenset(broker_ids))))])
        yield from apply("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])


def look_again(context: ControllerContext, new_ids: Iterable[str]) -> Rounds[None]:
    """Read brokers and topics after a time without watches, and watch them again.

    Partition states are not read: a broker that changes one announces it below `/isr_change_notification`.
    """
    yield from broker_change(context)
    known = list(context.topics)
    yield from refresh_topics(context, known)
    yield from start_added(context, known)
    # Topics that were set aside are retried as if they were new.
    yield from topic_change(context, new_ids)


def _load_states(context: ControllerContext) -> Rounds[dict[TopicPartition, int]]:
    """Load the partition states; return the zxid of the last change of each that is moving or has just moved.

    The states are read in parts, so that not all znodes are in memory at once. A part is read while the one before is
    applied, the first one while the topics are.
    """
    tps, moving = context.partitions(), _moving(context)
    zxids: dict[TopicPartition, int] = {}
    parts = [tps[start : start + READ_AT_ONCE] for start in range(0, len(tps), READ_AT_ONCE)]
    for part, (now, then) in zip(parts, pairwise(chain(map(paths.partition_states, parts), ([],))), strict=True):
        znodes = yield from read(now)
        yield from read_ahead(then)
        leaderships = yield from leadership.decode_states(context, part, znodes)
        found = PartitionsFound(part, leaderships, initial_rows(context, part, leaderships))
        yield from apply("observed", [Step(tuple(part), facts=(found,))])
        there = zip(part, znodes, strict=True) if moving else ()
        zxids.update((tp, znode.stat.mzxid) for tp, znode in there if znode is not None and tp in moving)
    return zxids


def initial_rows(
    context: ControllerContext, tps: Sequence[TopicPartition], leaderships: Sequence[LeaderAndIsr | None]
) -> list[Row]:
    """Return the initial states of known partitions, whose leaderships the context does not have, and of replicas.

    A partition is New without leadership, Online with a live leader, and otherwise Offline.
    """
    leaders = [None if state is None else state.leader for state in leaderships]
    led_by = dict(zip(tps, leaders, strict=True))

    def row(tp: TopicPartition) -> Row:
        leader, replicas = led_by[tp], context.assignment(tp).replicas
        online = context.online(tp, replicas)
        phase = PartitionPhase.NEW
        if leader is not None:
            phase = PartitionPhase.ONLINE if registrations.may_go_on(context, tp, leader) else PartitionPhase.OFFLINE
        alive = {*online, *filter(context.is_unaddressable, replicas)}
        return phase, tuple([ReplicaPhase.ONLINE if r in alive else ReplicaPhase.OFFLINE for r in replicas])

    return decide_all(context, tps, row, leaders)


def _moving(context: ControllerContext) -> dict[TopicPartition, None]:
    """Return the partitions that are moving or have just moved."""
    return dict.fromkeys((*context.reassigning, *(stray.tp for stray in context.strays)))


def _trace(context: ControllerContext, zxids: Mapping[TopicPartition, int]) -> Rounds[None]:
    """Put partitions that are moving or have just moved into the commit trace, for readers that span a failover."""
    moving = [tp for tp in _moving(context) if tp in context.leadership]
    topics = yield from read(paths.topic(tp.topic) for tp in moving)
    for tp, topic in zip(moving, topics, strict=True):
        yield Loaded(tp, max(zxids[tp], 0 if topic is None else topic.stat.mzxid))


def _start_replicas(context: ControllerContext, empty: Collection[int]) -> Rounds[None]:
    """Send every live broker its replicas, as new to those that are `empty`."""
    states = describe_led(context)
    told = orders_of_all(context, states, context.brokers, empty)
    yield from apply("resend", [Step(tuple(context.leadership), publications=tuple(told))])
    # The last controller's messages about deleted topics may not have reached every broker.
    every_topic = yield from all_topics(context)
    everything = (*states, *describe_deletions(context))
    yield from apply("metadata", [Step(publications=(TellMetadata(None, everything, topics=every_topic),))])
