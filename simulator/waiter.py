"""A place where one task waits until it is woken, which costs less than an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import trio
from attrs import define


@define(eq=False)
class Waiter:
    """The one task that waits here, if any."""

    task: trio.lowlevel.Task | None = None

    async def wait(self) -> None:
        """Wait until woken."""
        self.task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abandon)

    def wake(self) -> None:
        """Wake the task, if any."""
        if self.task is not None:
            trio.lowlevel.reschedule(self.task)
            self.task = None

    def _abandon(self, raise_cancel: Callable[[], NoReturn]) -> trio.lowlevel.Abort:
        del raise_cancel
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED
