"""Replicas on offline log directories: their logs are unusable although their broker is alive (KIP-112).

A broker reports an unusable log by answering LeaderAndIsr with KAFKA_STORAGE_ERROR, and a usable one by accepting it. A
broker that loses a directory announces that below `/log_dir_event_notification`. The controller then sends it its
replicas again, and learns from the answer which of them it cannot use: see `failed_replicas`.
"""

from __future__ import annotations

from controller.handlers import notifications
from controller.handlers.brokers import orders_of_all
from controller.model.context import ControllerContext
from controller.model.descriptions import describe_led
from controller.model.rounds import Rounds, Step, apply
from transport.log import get_logger
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
    yield from notifications.remove(context, paths.LOG_DIR_EVENT_NOTIFICATION, entries)
