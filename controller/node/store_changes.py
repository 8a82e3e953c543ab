"""The events that changes of the store queue. Consecutive changes of topics' znodes become one event.

Others may change many topics at once, and each notification names one znode. An event names what to read, so a topic
may join the one that waits: all are then read together. It joins only if no other change of the store has been notified
in between, so the controller looks at what changed in the order of the notifications. Whatever else waits has no order
with them. A topic that joins passes at most such events, as if its notification had come sooner.

For a minute after a fault, each topic is looked at alone, so that the next fault shows its cause.
"""

from __future__ import annotations

from collections.abc import Callable

import trio
from attrs import define, field

from controller.events import ControllerEvent, PartitionModifications
from controller.node.quarantine import Quarantine
from controller.node.watches import event_for


@define
class StoreChanges:
    """Queues the events of changes with `tell`, which returns whether an event has entered the queue."""

    _tell: Callable[[ControllerEvent], bool]
    _quarantine: Quarantine
    _last: ControllerEvent | None = field(default=None, init=False)

    def fired(self, path: str) -> None:
        """Queue the event of a watch that has fired."""
        event = event_for(path)
        if event is not None:
            self.queue(event)

    def queue(self, event: ControllerEvent) -> None:
        """Queue an event, or let its topic join the one queued last."""
        if not self._joins(event):
            self._last = event if self._tell(event) else None

    def _joins(self, event: ControllerEvent) -> bool:
        last = self._last
        if not (isinstance(event, PartitionModifications) and isinstance(last, PartitionModifications)):
            return False
        if event == last or event.subject in self._quarantine or last.topic in self._quarantine:
            return False
        return not self._quarantine.is_wary(trio.current_time()) and last.more.add(event.topic)
