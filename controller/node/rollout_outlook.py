"""Facts for rollouts that are not in the store: the operator's signals, room, what is copied, the brokers' load.

It is found outside the event queue, which is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import trio
from attrs import define, field

from controller.events import ControllerEvent, CopyingSeen, RoomSeen
from controller.model.context import ControllerContext
from controller.node.rollout_signals import RolloutSignals
from controller.progress.poller import ProgressPoller
from controller.rollout.adapting import SECONDS
from transport.host import Host
from transport.metadata import TopicPartition


@define
class RolloutOutlook:
    """Looks around for the current rollout. `tell` queues an event."""

    tell: Callable[[ControllerEvent], object]
    host: Host
    _signals: RolloutSignals = field(init=False)
    _next_pace: float = field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        """Share the queue."""
        self._signals = RolloutSignals(self.tell, self.host)

    def look(self, nursery: trio.Nursery, context: ControllerContext, progress: ProgressPoller) -> None:
        """Look at what brokers told last, and have the signals asked."""
        rollout = context.rollouts.current
        if rollout is None:
            return
        self._signals.look(nursery, context)
        self._tell_room(context, progress)
        if rollout.stored.settings.adapts and progress.answers:
            self._look_at_pace(progress)

    def hear(self, context: ControllerContext, progress: ProgressPoller) -> None:
        """Tell the room that moves wait to hear of, as soon as a broker has answered, or has not for too long."""
        if context.rollouts.awaited & (progress.disks.keys() | progress.untold):
            self._tell_room(context, progress)

    def _tell_room(self, context: ControllerContext, progress: ProgressPoller) -> None:
        told = ((broker, disk.free, disk.largest) for broker, disk in progress.disks.items())
        lacking = _lacking(context.rollouts.flying, progress)
        # Told even if it is nothing, so that nothing is taken to be known that was told long ago.
        self.tell(RoomSeen(tuple(sorted(told)), lacking, tuple(sorted(progress.untold))))

    def _look_at_pace(self, progress: ProgressPoller) -> None:
        """Tell how brokers get on, as often as a throttle may change."""
        if trio.current_time() < self._next_pace:
            return
        self._next_pace = trio.current_time() + SECONDS
        silent = tuple(sorted(broker for broker, seconds in progress.answers.items() if seconds == math.inf))
        longest = max((seconds for seconds in progress.answers.values() if seconds < math.inf), default=0.0)
        rate = progress.progress.total_rate()
        self.tell(CopyingSeen(longest, silent, None if rate is None else round(rate)))


def _lacking(flying: Iterable[TopicPartition], progress: ProgressPoller) -> tuple[tuple[TopicPartition, int], ...]:
    """Return the bytes that moves in flight lack, of those for which all brokers have told them."""
    now, followed = trio.current_time(), progress.progress
    copies = {tp: followed.copies(tp, now) for tp in flying if tp in followed.moves}
    told = {tp: each for tp, each in copies.items() if all(copy.bytes_left is not None for copy in each)}
    return tuple((tp, sum(copy.bytes_left or 0 for copy in each)) for tp, each in told.items())
