"""The memory that a large event leaves behind, which is given back to the system once the controller is at rest.

Python frees what an event needed, but the C library keeps most of it: a process that has created and deleted as much as
it holds stays at twice its size.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf
from typing import Final

import trio
from attrs import define, field

from controller.channels.broker_channels import BrokerChannels
from controller.events import ControllerEvent
from controller.model.context import ControllerContext
from controller.observation.instruments import Instrument

LARGE_SECONDS: Final = 0.25
"""An event that takes as long is large."""

QUIET_SECONDS: Final = 10.0
"""The controller is at rest if it has had no event for so long."""


@define
class FreedMemory(Instrument):
    """Once the controller has been at rest for a while after a large event, lets the context shrink and gives back."""

    give_back: Callable[[], None]
    _context: ControllerContext | None = field(default=None, init=False)
    _is_due: bool = field(default=False, init=False)
    _wait: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    """Ends when the controller has been at rest for long enough."""

    def took_office(self, context: ControllerContext, channels: BrokerChannels) -> None:  # noqa: ARG002
        """Remember the context."""
        self._context = context

    def left_office(self) -> None:
        """Forget the context."""
        self._context = None

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:  # noqa: ARG002
        """Wait for the end of the event."""
        self._wait.deadline = inf

    def finished(self, event: ControllerEvent, seconds: float) -> None:  # noqa: ARG002
        """Wait for a while if this event, or one before it, was large."""
        self._is_due = self._is_due or seconds >= LARGE_SECONDS
        if self._is_due:
            self._wait.deadline = trio.current_time() + QUIET_SECONDS

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """Give memory back after each large event within the block."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run)
            yield
            nursery.cancel_scope.cancel()

    async def _run(self) -> None:
        while True:
            with self._wait:
                await trio.sleep_forever()
            self._is_due, self._wait = False, trio.CancelScope()
            if self._context is not None:
                self._context.compact()
            self.give_back()
