"""Events scheduled for later: retries after a failure, and periodic checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

import trio
from attrs import define, field

from controller import events
from controller.handlers import deletion, failed_replicas, leader_epochs, leader_rebalance, rollout_brakes, strays
from controller.model import registrations
from controller.model.context import ControllerContext
from transport.store import paths

MOVES_PER_SECOND: Final = 2_000
"""The number of moves checked per second, which keeps the checks to a few percent of the event queue's time."""

ASKED_SECONDS: Final = 0.2
"""The delay before brokers are asked for the room that moves wait for, and before their answers are looked at."""

RESEND_SECONDS: Final = 10.0
"""The delay before orders are sent again to a broker that failed to process them."""

FAILED_SECONDS: Final = 0.5
"""The shortest delay before failed replicas are looked at again."""

CLOSED_SECONDS: Final = 60.0
"""The delay before reading topics that are closed to us by an ACL is retried."""

_NOTIFIED: Final[dict[str, events.ControllerEvent]] = {
    paths.ISR_CHANGE_NOTIFICATION: events.IsrChangeNotification(),
    paths.LOG_DIR_EVENT_NOTIFICATION: events.LogDirEventNotification(),
}

Alarm = tuple[float, events.ControllerEvent]
"""A delay in seconds, and the event to queue after it."""


@define
class PendingAlarms:
    """The events that wait for their time. Each is scheduled at most once."""

    tell: Callable[[events.ControllerEvent], object]
    _pending: dict[events.ControllerEvent, None] = field(factory=dict, init=False)

    def set(self, nursery: trio.Nursery, alarms: Sequence[Alarm]) -> None:
        """Schedule events, unless they are scheduled already."""
        for seconds, event in alarms:
            if event not in self._pending:
                self._pending[event] = None
                nursery.start_soon(self.tell_at, trio.current_time() + seconds, event)

    async def tell_at(self, at: float, event: events.ControllerEvent) -> None:
        """Queue an event at a time of trio's clock."""
        await trio.sleep_until(at)
        self._pending.pop(event, None)
        self.tell(event)


def alarms(context: ControllerContext, event: events.ControllerEvent) -> list[Alarm]:
    """Return the events to schedule after `event` has been processed."""
    return [
        *_later(context, event),
        *_look_at_closed_records(context),
        *_look_at_moves(context),
        *_look_at_overtaken(context),
        *_look_at_rollouts(context),
    ]


def _later(context: ControllerContext, event: events.ControllerEvent) -> list[Alarm]:
    match event:
        case events.TopicChange() | events.PartitionModifications() | events.Reload():
            is_marked = not context.closed.early_markers.isdisjoint(context.topics)
            markers = [(0.0, events.TopicDeletion())] if is_marked else []
            return [*markers, *_look_at_closed_topics(context)]
        case events.ReplicasNotDeleted(replicas=replicas):
            seconds = deletion.RETRY_SECONDS
            records = [events.StrayDeletion()] if any(r in context.strays for r in replicas) else []
            topics = [events.TopicDeletion()] if context.deletions else []
            return [(seconds, again) for again in (*records, *topics)]
        case events.ReplicasDeleted() if context.strays and strays.are_recorded(context, event.deletions):
            return [(CLOSED_SECONDS, events.StrayDeletion())]
        case events.TopicsDeleted(names=names) if not context.deletions.keys().isdisjoint(names):
            # A topic without remaining replicas is still here: its znodes could not be removed, or wait for their turn.
            return [(deletion.RETRY_SECONDS, events.TopicDeletion())]
        case events.OrderFailed(broker_id=broker_id, broker_epoch=broker_epoch, gone=gone):
            deletions = [events.DeletionsResend(broker_id, broker_epoch, gone)] if gone else []
            return [(RESEND_SECONDS, again) for again in (events.OrdersResend(broker_id, broker_epoch), *deletions)]
        case events.LeaderAndIsrResponseReceived() | events.FailedReplicasDue():
            return _look_at_failed(context)
        case events.AutoPreferredReplicaLeaderElection(controller_epoch=epoch) if epoch == context.epoch:
            return [(context.config.leader_imbalance_check_interval_seconds, event)]
        case _:
            return []


def first_alarms(context: ControllerContext) -> list[Alarm]:
    """Return the events to schedule for a new controllership."""
    looks = [*_look_at_closed_topics(context), *_look_at_closed_records(context), *_look_at_moves(context)]
    # A look at once: an earlier controller may have left rollouts.
    looks += [(0.0, event) for _, event in _look_at_rollouts(context)]
    if not context.config.auto_leader_rebalance_enable:
        return looks
    rebalance = leader_rebalance.FIRST_SECONDS, events.AutoPreferredReplicaLeaderElection(context.epoch)
    return [rebalance, *looks]


def _look_at_closed_topics(context: ControllerContext) -> list[Alarm]:
    """Return when to retry reading topics closed to us by an ACL: no watch fires when an ACL changes."""
    return [(CLOSED_SECONDS, events.TopicChange())] if context.closed_topics else []


def _look_at_closed_records(context: ControllerContext) -> list[Alarm]:
    """Return when to try again what an ACL keeps from being written, or hides: registrations."""
    closed = context.closed
    is_hidden = any(registrations.is_hidden(context, broker_id) for broker_id in context.unusable)
    brokers = [events.BrokerChange()] if closed.brokers or is_hidden else []
    replicas = [events.StrayDeletion()] if closed.strays else []
    markers = [events.TopicDeletion()] if closed.markers else []
    notices = [_NOTIFIED[parent] for parent in closed.notifications]
    return [(CLOSED_SECONDS, event) for event in (*brokers, *replicas, *markers, *notices)]


def _look_at_failed(context: ControllerContext) -> list[Alarm]:
    """Return when to try failed replicas again; times are rounded, so that few such events wait."""
    due = failed_replicas.next_try(context)
    if due is None:
        return []
    now = trio.current_time()
    at = ceil(max(due, now + FAILED_SECONDS) / FAILED_SECONDS) * FAILED_SECONDS
    return [(at - now, events.FailedReplicasDue(at))]


def _look_at_moves(context: ControllerContext) -> list[Alarm]:
    """Return when to check the moves next, if any are in progress: the more there are, the longer the interval.

    They are checked as well while brokers are asked for their room, and more often while moves wait for the answers.
    """
    moves = len(context.reassigning)
    is_due = moves or context.rollouts.asked
    shortest = ASKED_SECONDS if context.rollouts.awaited else 1.0
    return [(max(shortest, moves / MOVES_PER_SECOND), events.ReassignmentProgress())] if is_due else []


def _look_at_overtaken(context: ControllerContext) -> list[Alarm]:
    """Return when to look at the leaders of Kafka's that may have forgotten a proposal."""
    seconds = leader_epochs.OVERTAKEN_SECONDS
    return [(seconds, events.OvertakenLeader(tp, then)) for tp, then in context.kafka.overtaken.items()]


def _look_at_rollouts(context: ControllerContext) -> list[Alarm]:
    """Return when to look at what holds a rollout up, or has kept it from restoring rates: events do not tell all."""
    is_due = context.rollouts.current is not None or context.rollouts.still_throttled
    return [(rollout_brakes.LOOK_SECONDS, events.RolloutLook())] if is_due else []
