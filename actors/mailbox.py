"""A queue in front of a task, which any thread may put into."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

import trio
from attrs import frozen

from actors.trio_entry import TrioEntry

T = TypeVar("T")


class MailboxFull(Exception):
    """As many items are waiting as the mailbox takes."""


class MailboxClosed(Exception):
    """Nothing is waiting, and nothing will come."""


@frozen
class _Waiting(Generic[T]):
    item: T
    key: Hashable | None


class Mailbox(Generic[T]):
    """A FIFO queue between anyone and one or more receivers, which may iterate over it until it is closed.

    A mailbox that was made outside of trio must be bound before a foreign thread puts something in. Everything but
    `tell` is for the trio thread alone.
    """

    def __init__(self, capacity: int | None = None) -> None:
        """Hold at most `capacity` items at a time, or any number, which is for items whose keys bound them."""
        self._capacity = capacity
        self._entry = TrioEntry()
        self._waiting: deque[_Waiting[T]] = deque()
        self._keys: set[Hashable] = set()
        self._receivers = trio.lowlevel.ParkingLot()
        self._is_closed = False

    def bind(self) -> None:
        """Let foreign threads put items in, from now on."""
        self._entry.bind()

    def tell(self, item: T, key: Hashable | None = None) -> bool:
        """Put an item in; False if it was not because one with that key is waiting, or the mailbox is closed.

        May be called from any thread. A foreign one is always told True, for only trio can tell: its item arrives
        soon, is dropped quietly in the cases above and after trio's end, and counts as `put`. Raises MailboxFull, in
        the trio thread only.
        """
        if not self._entry.is_inside:
            self._entry.run_soon(lambda: self.put(item, key))
            return True
        if self._accepts(key) and self._capacity is not None and len(self._waiting) >= self._capacity:
            raise MailboxFull(f"{self._capacity} are waiting")
        return self.put(item, key)

    def put(self, item: T, key: Hashable | None = None) -> bool:
        """Do as `tell`, whatever the capacity: for what cannot be refused."""
        if not self._accepts(key):
            return False
        self._waiting.append(_Waiting(item, key))
        if key is not None:
            self._keys.add(key)
        self._receivers.unpark()
        return True

    def preempt_and_put(self, item: T) -> list[T]:
        """Take out everything that waits, put `item` in, and return what was taken out, oldest first."""
        dropped = self._take_all()
        self.put(item)
        return dropped

    def close(self) -> list[T]:
        """Take nothing more, end the receivers, and return what was waiting, oldest first."""
        self._is_closed = True
        self._receivers.unpark_all()
        return self._take_all()

    async def receive(self) -> T:
        """Wait for the oldest item and take it out; raises MailboxClosed. Loses nothing when cancelled."""
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            if self._is_closed:
                raise MailboxClosed
            await self._receivers.park()
        oldest = self._waiting.popleft()
        self._keys.discard(oldest.key)
        return oldest.item

    def __aiter__(self) -> Mailbox[T]:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.receive()
        except MailboxClosed:
            raise StopAsyncIteration from None

    def __len__(self) -> int:
        return len(self._waiting)

    def _accepts(self, key: Hashable | None) -> bool:
        return not self._is_closed and (key is None or key not in self._keys)

    def _take_all(self) -> list[T]:
        taken = [waiting.item for waiting in self._waiting]
        self._waiting.clear()
        self._keys.clear()
        return taken
