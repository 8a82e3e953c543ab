"""A latch between tasks: something happened, look again."""

from __future__ import annotations

import trio


class Wakeup:
    """Wakes the one task that waits, or that comes to wait next. Many calls of `set` make one wake-up."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def set(self) -> None:
        """Wake the waiter."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until `set` was called since the last return."""
        await self._event.wait()
        self._event = trio.Event()
