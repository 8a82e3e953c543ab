"""A latch with which one task makes another look again."""

from __future__ import annotations

import trio


class Wakeup:
    """Wakes the one task that waits, or the next one to wait. Several calls of `set` cause one wake-up."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def set(self) -> None:
        """Wake the waiting task."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until `set` has been called since the last return."""
        await self._event.wait()
        self._event = trio.Event()
