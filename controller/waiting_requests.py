"""Requests on their way through the event queue: how many there may be, who goes first, and for how long they wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio
from attrs import define, field

from actors import EventQueue
from controller import admission
from controller.events import ControllerEvent, RequestEvent, not_controller
from transport.errors import ApiError, ErrorCode
from transport.messages import Request

MAX_WAITING_REQUESTS: Final = 1000
"""How many may wait of brokers, and how many of others."""

MAX_WAITING_ENTRIES: Final = 1_000_000
"""How many topics, partitions and brokers those that wait may list together."""


@define
class WaitingRequests:
    """The requests that are not answered yet; each leaves the queue when nobody waits for its answer any more.

    What happens in the cluster, and what brokers ask, goes before what administrators ask.
    """

    _queue: EventQueue[ControllerEvent]
    _counts: Counter[bool] = field(factory=Counter, init=False)
    """How many of brokers (True), and how many others."""

    _entries: Counter[bool] = field(factory=Counter, init=False)
    """How many entries they list."""

    async def answer(self, request: Request[object]) -> object:
        """Answer a request through the queue.

        Raises ApiError: retriable if too many wait or the queue moves too slowly, INVALID_REQUEST for a time that
        nobody can wait.
        """
        seconds, event = admission.patience(request), RequestEvent(request)
        with self._counted(request):
            if not self._queue.tell(event, later=not isinstance(request, admission.OF_BROKERS)):
                raise not_controller()
            try:
                with trio.move_on_after(seconds):
                    return await event.reply.wait()
                event.reply.set(admission.too_late())
                return await event.reply.wait()
            finally:
                self._queue.withdraw(event)

    @contextmanager
    def _counted(self, request: Request[object]) -> Iterator[None]:
        """Count a request until it is answered. Those of brokers do not suffer from too many others."""
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
