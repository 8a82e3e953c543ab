"""A new controller loads the cluster and puts it in order (reference: Kafka's onControllerFailover)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from controller.context import ControllerContext
from controller.facts import BrokerRegistered, Fact, LeadershipWritten, PartitionMoved, ReplicaMoved
from controller.handlers import (
    config_changes,
    deletion,
    deletion_markers,
    leader_elections,
    leadership,
    notifications,
    reassignment_requests,
    reassignments,
    storage,
    strays,
)
from controller.handlers.brokers import read_brokers, resend
from controller.handlers.metadata import all_topics
from controller.handlers.topics import load_topics
from controller.partition_states import PartitionPhase
from controller.replica_states import ReplicaPhase
from controller.rounds import Loaded, Rounds, Step, TellMetadata, change, children, read
from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.protocol import Znode


def failover(context: ControllerContext, new_ids: Iterable[str]) -> Rounds[None]:
    """Load everything, tell brokers who is alive and then what they hold, and go on with what was under way."""
    yield from config_changes.watch_changes()
    yield from notifications.clear(paths.LOG_DIR_EVENT_NOTIFICATION)
    yield from notifications.clear(paths.ISR_CHANGE_NOTIFICATION)
    brokers = yield from read_brokers()
    yield from change("brokers", [Step(facts=tuple(BrokerRegistered(broker) for broker in brokers))])
    names = yield from children(paths.TOPICS, watch=True)
    yield from load_topics(names, new_ids)
    states = yield from _load_states(context)
    yield from strays.load(context)
    yield from _trace(context, states)
    # Who is alive goes out before any LeaderAndIsr that names a leader (KAFKA-4443).
    yield from change("metadata", [Step(publications=(TellMetadata(None, (), context.live_brokers()),))])
    yield from deletion.begin(context, (yield from deletion_markers.read_marked(context)))
    empty = yield from storage.admit(context, brokers)
    yield from _start_replicas(context, empty)
    yield from leadership.bring_online(context)
    yield from strays.pursue(context, context.brokers)
    begun = yield from reassignment_requests.requested_in_store(context)
    yield from reassignments.advance(context, [tp for tp in context.reassigning if tp not in begun])
    yield from leader_elections.requested_in_store(context)
    yield from deletion.resume(context, context.brokers)


def _load_states(context: ControllerContext) -> Rounds[dict[TopicPartition, Znode | None]]:
    tps = context.partitions()
    znodes = yield from read(paths.partition_state(tp) for tp in tps)
    found = yield from leadership.decode_states(context, tps, znodes)
    loaded = dict(found)
    yield from change("observed", [Step((tp,), facts=(LeadershipWritten(tp, state),)) for tp, state in loaded.items()])
    yield from change("observed", [Step((tp,), facts=_first_phases(context, tp)) for tp in tps])
    return dict(zip(tps, znodes, strict=True))


def _first_phases(context: ControllerContext, tp: TopicPartition) -> tuple[Fact, ...]:
    """Partitions without leadership are New, those with a live leader Online, the rest Offline; replicas as alive."""
    known: list[Fact] = [PartitionMoved(tp, PartitionPhase.NEW)]
    if tp in context.leadership:
        alive = context.is_online(tp, context.leadership[tp].leader)
        known.append(PartitionMoved(tp, PartitionPhase.ONLINE if alive else PartitionPhase.OFFLINE))
    for replica in context.assignment(tp).replicas:
        alive = context.is_online(tp, replica)
        known.append(ReplicaMoved((tp, replica), ReplicaPhase.NEW))
        known.append(ReplicaMoved((tp, replica), ReplicaPhase.ONLINE if alive else ReplicaPhase.OFFLINE))
    return tuple(known)


def _trace(context: ControllerContext, states: dict[TopicPartition, Znode | None]) -> Rounds[None]:
    """Put what moves or has just moved into the commit trace: who follows it across a failover misses nothing."""
    moved = (TopicPartition(stray.topic, stray.partition) for stray in context.strays)
    moving = [tp for tp in dict.fromkeys((*context.reassigning, *moved)) if tp in context.leadership]
    topics = yield from read(paths.topic(tp.topic) for tp in moving)
    for tp, topic in zip(moving, topics, strict=True):
        state = states[tp]
        yield Loaded(tp, max(znode.stat.mzxid for znode in (topic, state) if znode is not None))


def _start_replicas(context: ControllerContext, empty: Collection[int]) -> Rounds[None]:
    """Tell every live broker what it holds, new to those that are `empty`; the dead leave the ISRs (KAFKA-3143)."""
    live = sorted(context.brokers)
    everything = (*(context.describe(tp) for tp in context.leadership), *context.describe_deletions())
    yield from change("resend", [resend(context, tp, live, empty) for tp in context.partitions_on(live)])
    # What the last controller said of deleted topics may not have come everywhere.
    every_topic = yield from all_topics(context)
    yield from change("metadata", [Step(publications=(TellMetadata(None, everything, topics=every_topic),))])
    dead = sorted({r for tp in context.partitions() for r in context.assignment(tp).replicas} - set(live))
    yield from leadership.take_offline(context, context.partitions_on(dead), dead)
