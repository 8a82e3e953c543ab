"""Replicas on offline log directories: their logs are unusable although their broker is alive (KIP-112).

A broker reports an unusable log by answering LeaderAndIsr with KAFKA_STORAGE_ERROR, and a usable one by accepting it. A
broker that loses a directory announces that below `/log_dir_event_notification`. The controller then sends it its
replicas again, and learns from the answer which of them it cannot use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.handlers import leadership, notifications, reassignments
from controller.handlers.brokers import orders_of_all
from controller.handlers.metadata import publish
from controller.model.context import ControllerContext
from controller.model.descriptions import describe_led
from controller.model.facts import Fact, LogDirOffline, LogDirOnline, ReplicasMoved
from controller.model.rounds import Rounds, Step, apply
from controller.model.state_machines import ReplicaPhase
from transport.log import get_logger
from transport.metadata import TopicPartition
from transport.store import formats, paths

log = get_logger(__name__)


def log_dir_event_notification(context: ControllerContext) -> Rounds[None]:
    """Send brokers that lost a log directory their replicas again, with unchanged epochs."""
    entries, brokers = yield from notifications.load(paths.LOG_DIR_EVENT_NOTIFICATION, formats.decode_log_dir_event)
    ids = [broker_id for broker_id in sorted(set(brokers)) if broker_id in context.brokers]
    for broker_id in ids:
        log.error("a broker lost a log directory: asking which replicas it can use", broker=broker_id)
    states = describe_led(context, context.partitions_on(ids))
    # A replica without data so far may start in another directory.
    told = tuple(orders_of_all(context, states, ids, ()))
    yield from apply("resend", [Step(tuple([state.tp for state in states]), publications=told)] if told else [])
    yield from notifications.remove(entries)


def leader_and_isr_answered(
    context: ControllerContext,
    broker_id: int,
    epochs: tuple[int, int],
    outcomes: Mapping[tuple[str, TopicPartition], bool],
) -> Rounds[None]:
    """Take replicas that a broker cannot use offline, and bring those that it can use again back online.

    `outcomes` says by topic id and partition whether the replica is usable. `epochs` are the broker epoch and the
    controller epoch of the answers; answers of another incarnation or to another controllership are ignored.
    """
    broker_epoch, controller_epoch = epochs
    if controller_epoch != context.epoch or not context.is_registered(broker_id, broker_epoch):
        return
    # Meanwhile a replica may have left the broker, or its topic may be a new one of the same name. The replicas of a
    # topic that is being deleted do not come back online.
    here = {
        tp: is_usable
        for (topic_id, tp), is_usable in outcomes.items()
        if broker_id in context.assignment(tp).replicas
        and context.topic_id(tp.topic) == topic_id
        and tp.topic not in context.deletions
    }
    failed = [tp for tp, is_usable in here.items() if not is_usable and context.is_served(tp, broker_id)]
    recovered = [tp for tp, is_usable in here.items() if is_usable and not context.is_served(tp, broker_id)]
    yield from _take_offline(context, failed, broker_id)
    yield from _use_again(context, recovered, broker_id)


def _take_offline(context: ControllerContext, tps: Sequence[TopicPartition], broker_id: int) -> Rounds[None]:
    for tp in tps:
        log.error("a replica is offline: its broker cannot use its log", partition=str(tp), broker=broker_id)
    yield from apply("log dirs", [Step((tp,), facts=(LogDirOffline((tp, broker_id)),)) for tp in tps])
    if tps:
        yield from leadership.replace_offline(context, tps, [broker_id])
        yield from reassignments.finish_ready(context, tps)


def _use_again(context: ControllerContext, tps: Sequence[TopicPartition], broker_id: int) -> Rounds[None]:
    for tp in tps:
        log.info("a replica is online again", partition=str(tp), broker=broker_id)
    if tps:
        begun = context.replica_phases.those_on(broker_id, tps)
        usable: list[Fact] = [LogDirOnline((tp, broker_id)) for tp in tps]
        online = ReplicasMoved.on(broker_id, begun, ReplicaPhase.ONLINE)
        yield from apply("log dirs", [Step(tuple(tps), facts=(*usable, online))])
        yield from publish(context, tps)
        yield from leadership.bring_online(context)
        yield from reassignments.advance(context, [tp for tp in tps if tp in context.reassigning])
