"""What all actors are."""

from __future__ import annotations

from typing import Protocol, TypeVar

import trio

M_contra = TypeVar("M_contra", contravariant=True)


class Actor(Protocol[M_contra]):
    """Someone who owns his state and is told what to do with it, by messages that he takes one at a time.

    It is a protocol and no base class, since what actors share is how they are talked to and run. A plain one is a
    `Mailbox` and a loop over it; `EventQueue` and `Channel` are the others.
    """

    def tell(self, message: M_contra) -> object:
        """Leave a message, and do not wait."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take messages until closed or cancelled; one task at a time may run an actor. Faults pass through."""
