"""Events scheduled for later: retries after a failure, and periodic checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio
from attrs import define, field

from controller.events import (
    AutoPreferredReplicaLeaderElection,
    ControllerEvent,
    MetadataFailed,
    MetadataResend,
    PartitionModifications,
    ReassignmentProgress,
    Reload,
    ReplicasDeleted,
    ReplicasNotDeleted,
    StrayDeletion,
    TopicChange,
    TopicDeletion,
)
from controller.handlers import deletion, leader_rebalance
from controller.model.context import ControllerContext

MOVES_PER_SECOND: Final = 2_000
"""The number of moves checked per second, which keeps the checks to a few percent of the event queue's time."""

RESEND_SECONDS: Final = 10.0
"""The delay before metadata is sent again to a broker that failed to process it."""

CLOSED_SECONDS: Final = 60.0
"""The delay before reading topics that are closed to us by an ACL is retried."""


@define
class PendingAlarms:
    """The events that wait for their time. Each is scheduled at most once."""

    tell: Callable[[ControllerEvent], object]
    _pending: dict[ControllerEvent, None] = field(factory=dict, init=False)

    def set(self, nursery: trio.Nursery, alarms: Sequence[tuple[float, ControllerEvent]]) -> None:
        """Schedule events, each after its delay in seconds, unless they are scheduled already."""
        for seconds, event in alarms:
            if event not in self._pending:
                self._pending[event] = None
                nursery.start_soon(self.tell_at, trio.current_time() + seconds, event)

    async def tell_at(self, at: float, event: ControllerEvent) -> None:
        """Queue an event at a time of trio's clock."""
        await trio.sleep_until(at)
        self._pending.pop(event, None)
        self.tell(event)


def alarms(context: ControllerContext, event: ControllerEvent) -> list[tuple[float, ControllerEvent]]:
    """Return the events to schedule after `event` has been processed, each with its delay in seconds."""
    return [*_later(context, event), *_look_at_moves(context)]


def _later(context: ControllerContext, event: ControllerEvent) -> list[tuple[float, ControllerEvent]]:
    match event:
        case TopicChange() | PartitionModifications() | Reload():
            return _look_at_closed_topics(context)
        case ReplicasNotDeleted(replicas=replicas):
            seconds = deletion.RETRY_SECONDS
            strays_left: list[ControllerEvent] = [StrayDeletion()] if any(r in context.strays for r in replicas) else []
            topics_left: list[ControllerEvent] = [TopicDeletion()] if context.deletions else []
            return [(seconds, again) for again in (*strays_left, *topics_left)]
        case TopicDeletion() | ReplicasDeleted() if not all(each.left for each in context.deletions.values()):
            # A topic without remaining replicas is still here: its znodes could not be removed.
            return [(deletion.RETRY_SECONDS, TopicDeletion())]
        case MetadataFailed(broker_id=broker_id, broker_epoch=broker_epoch):
            return [(RESEND_SECONDS, MetadataResend(broker_id, broker_epoch))]
        case AutoPreferredReplicaLeaderElection(controller_epoch=epoch) if epoch == context.epoch:
            return [(context.config.leader_imbalance_check_interval_seconds, event)]
        case _:
            return []


def first_alarms(context: ControllerContext) -> list[tuple[float, ControllerEvent]]:
    """Return the events to schedule for a new controllership, each with its delay in seconds."""
    looks = [*_look_at_closed_topics(context), *_look_at_moves(context)]
    if not context.config.auto_leader_rebalance_enable:
        return looks
    rebalance = leader_rebalance.FIRST_SECONDS, AutoPreferredReplicaLeaderElection(context.epoch)
    return [rebalance, *looks]


def _look_at_closed_topics(context: ControllerContext) -> list[tuple[float, ControllerEvent]]:
    """Return when to retry reading topics closed to us by an ACL: no watch fires when an ACL changes."""
    return [(CLOSED_SECONDS, TopicChange())] if context.closed_topics else []


def _look_at_moves(context: ControllerContext) -> list[tuple[float, ControllerEvent]]:
    """Return when to check the moves next, if any are in progress: the more there are, the longer the interval."""
    moves = len(context.reassigning)
    return [(max(1.0, moves / MOVES_PER_SECOND), ReassignmentProgress())] if moves else []
