"""Requests that wait in the event queue: limits on their number and waiting time, and their priorities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio
from attrs import define, field

from actors import EventQueue
from controller.events import ControllerEvent, ProposalsEvent, RequestEvent, event_of, not_controller
from controller.node import admission
from controller.node.quarantine import Quarantine
from transport.errors import ApiError, ErrorCode
from transport.messages import Request

MAX_WAITING_REQUESTS: Final = 1000
"""The most requests that may wait; applies separately to requests of brokers and to all others."""

MAX_WAITING_ENTRIES: Final = 1_000_000
"""The most topics, partitions and brokers that waiting requests may list in total.

Applies separately to requests of brokers and to all others.
"""


PATIENCE_SECONDS: Final = 0.1
"""The time after which a read is no longer held up by events, and after which it is tried again."""

Early = Callable[[Request[object]], Awaitable[object | None]]
"""Answers a request before its turn; returns None if that is not possible now."""


def join(quarantine: Quarantine, event: ControllerEvent, later: ControllerEvent) -> bool:
    """Let proposals of leaders be decided with those before them, but one by one where a fault is to show its cause."""
    if not (isinstance(event, ProposalsEvent) and isinstance(later, ProposalsEvent)):
        return False
    is_wary = quarantine.is_wary(trio.current_time()) or event.subject in quarantine or later.subject in quarantine
    return not is_wary and event.take_in(later)


@define
class WaitingRequests:
    """The requests not answered yet. A request leaves the queue when its caller no longer waits for the answer.

    Events of the cluster and requests of brokers are processed before requests of administrators.
    """

    _queue: EventQueue[ControllerEvent]
    _counts: Counter[bool] = field(factory=Counter, init=False)
    """The number of waiting requests: of brokers (True) and of others (False)."""

    _entries: Counter[bool] = field(factory=Counter, init=False)
    """The number of entries listed by waiting requests, under the same keys."""

    async def answer(self, request: Request[object], early: Early | None = None) -> object:
        """Answer a request through the queue; one that waits for long keeps its place while `early` is tried.

        Raises ApiError: retriable if too many wait or the queue moves too slowly, INVALID_REQUEST for a waiting time
        out of range.
        """
        seconds, event = admission.patience(request), event_of(request)
        with self._counted(request):
            if not self._queue.tell(event, later=not isinstance(request, admission.OF_BROKERS)):
                raise not_controller()
            try:
                with trio.move_on_after(seconds):
                    return await self._first_answer(event, early)
                # The queue may have answered at the last moment, so wait for whichever reply was set first.
                event.reply.set(admission.too_late())
                return await event.reply.wait()
            finally:
                self._queue.withdraw(event)

    async def _first_answer(self, event: RequestEvent, early: Early | None) -> object:
        """Return the answer of the queue, or that of `early` if it comes first. Raises ApiError."""
        while early is not None:
            with trio.move_on_after(PATIENCE_SECONDS):
                return await event.reply.wait()
            # A change that has been answered may be known only once a barrier has had its turn.
            answer = None if self._queue.has_barrier else await early(event.request)
            if answer is not None:
                event.reply.set(answer)
        return await event.reply.wait()

    @contextmanager
    def _counted(self, request: Request[object]) -> Iterator[None]:
        """Count a request until it is answered.

        Raises ApiError(THROTTLING_QUOTA_EXCEEDED) if a limit is reached. Requests of brokers have their own limits.
        """
        kind, listed = isinstance(request, admission.OF_BROKERS), request.listed()
        if self._counts[kind] >= MAX_WAITING_REQUESTS or self._entries[kind] + listed > MAX_WAITING_ENTRIES:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many requests wait for the controller: try again")
        self._counts[kind] += 1
        self._entries[kind] += listed
        try:
            yield
        finally:
            self._counts[kind] -= 1
            self._entries[kind] -= listed
