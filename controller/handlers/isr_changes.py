"""ISRs that leaders wrote to the store themselves, as in Kafka before AlterPartition (KIP-497)."""

from __future__ import annotations

from controller.handlers import leadership, notifications, reassignments
from controller.handlers.metadata import publish
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds
from transport.store import formats, paths


def isr_change_notification(context: ControllerContext) -> Rounds[None]:
    """Read the partitions that leaders announced again, publish them, and finish moves that have caught up."""
    entries, lists = yield from notifications.load(paths.ISR_CHANGE_NOTIFICATION, formats.decode_partitions)
    named = dict.fromkeys(tp for tps in lists for tp in tps if tp in context.leadership)
    tps = yield from leadership.refresh(context, list(named))
    yield from publish(context, tps)
    # Needed even if other leaders of the cluster use AlterPartition already (KAFKA-10521).
    yield from reassignments.finish_ready(context, tps)
    yield from notifications.remove(context, paths.ISR_CHANGE_NOTIFICATION, entries)
