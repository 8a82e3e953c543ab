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


@define
class WaitingRequests:
    """The requests that are not answered yet; each leaves the queue when nobody waits for its answer any more.

    What happens in the cluster, and what brokers ask, goes before what administrators ask.
    """

    _queue: EventQueue[ControllerEvent]
    _counts: Counter[bool] = field(factory=Counter, init=False)
    """How many of brokers (True), and how many others."""

    async def answer(self, request: Request[object]) -> object:
        """Answer a request through the queue.

        Raises ApiError: retriable if too many wait or the queue moves too slowly, INVALID_REQUEST for a time that
        nobody can wait.
        """
        seconds, is_of_broker = admission.patience(request), isinstance(request, admission.OF_BROKERS)
        event = RequestEvent(request)
        with self._counted(is_of_broker=is_of_broker):
            if not self._queue.tell(event, later=not is_of_broker):
                raise not_controller()
            try:
                with trio.move_on_after(seconds):
                    return await event.reply.wait()
                event.reply.set(admission.too_late())
                return await event.reply.wait()
            finally:
                self._queue.withdraw(event)

    @contextmanager
    def _counted(self, *, is_of_broker: bool) -> Iterator[None]:
        """Count a request until it is answered. Those of brokers do not suffer from too many others."""
        if self._counts[is_of_broker] >= MAX_WAITING_REQUESTS:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many requests wait for the controller: try again")
        self._counts[is_of_broker] += 1
        try:
            yield
        finally:
            self._counts[is_of_broker] -= 1
