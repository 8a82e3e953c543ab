"""The interface that all actors share."""

from __future__ import annotations

from typing import Protocol, TypeVar

import trio

M_contra = TypeVar("M_contra", contravariant=True)


class Actor(Protocol[M_contra]):
    """An owner of state that others talk to only by messages, which it processes one at a time.

    A protocol rather than a base class, because actors share an interface and no code. A plain actor is a `Mailbox`
    and a loop over it; `EventQueue` and `Channel` are the other two.
    """

    def tell(self, message: M_contra) -> object:
        """Leave a message without waiting."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process messages until closed or cancelled, in one task at a time. Exceptions propagate."""
