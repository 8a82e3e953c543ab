"""A queue in front of a task, which any thread may put into."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import trio

from actors.trio_entry import TrioEntry

T = TypeVar("T")

MAX_OVERTAKEN: Final = 16
"""The number of items in a row that may pass one that can wait."""


class MailboxFull(Exception):
    """As many items are waiting as the mailbox takes."""


class MailboxClosed(Exception):
    """Nothing is waiting, and nothing will come."""


class _Unkeyed:
    """Stands for the key of an item that has none."""


class Mailbox(Generic[T]):
    """A queue between anyone and one or more receivers, which may iterate over it until it is closed.

    It is FIFO, except that items put in for `later` let the others pass, at most `MAX_OVERTAKEN` of them in a row.
    A mailbox that was made outside of trio must be bound before a foreign thread puts something in.
    Everything but `tell` is for the trio thread alone.
    """

    def __init__(self, capacity: int | None = None) -> None:
        """Hold at most `capacity` items at a time, or any number, which is for items whose keys bound them."""
        self._capacity = capacity
        self._entry = TrioEntry()
        # Ordered, so that taking out the oldest item or any other takes constant time.
        self._waiting: OrderedDict[Hashable, T] = OrderedDict()
        self._later: OrderedDict[Hashable, T] = OrderedDict()
        self._overtaken = 0
        self._receivers = trio.lowlevel.ParkingLot()
        self._is_closed = False

    def bind(self) -> None:
        """Let foreign threads put items in, from now on."""
        self._entry.bind()

    def tell(self, item: T, key: Hashable | None = None, *, later: bool = False) -> bool:
        """Put an item in; False if it was not because one with that key is waiting, or the mailbox is closed.

        May be called from any thread. A foreign one is always told True, for only trio can tell: its item arrives
        soon, is dropped quietly in the cases above and after trio's end, and counts as `put`. Raises MailboxFull, in
        the trio thread only.
        """
        if not self._entry.is_inside:
            self._entry.run_soon(lambda: self.put(item, key, later=later))
            return True
        if self._accepts(key) and self._capacity is not None and len(self) >= self._capacity:
            raise MailboxFull(f"{self._capacity} are waiting")
        return self.put(item, key, later=later)

    def put(self, item: T, key: Hashable | None = None, *, later: bool = False) -> bool:
        """Do as `tell`, whatever the capacity: for what cannot be refused."""
        if not self._accepts(key):
            return False
        waiting = self._later if later else self._waiting
        waiting[_Unkeyed() if key is None else key] = item
        self._receivers.unpark()
        return True

    def withdraw(self, key: Hashable) -> list[T]:
        """Take out the items that wait under a key, and return them."""
        holding = [waiting for waiting in (self._waiting, self._later) if key in waiting]
        return [waiting.pop(key) for waiting in holding]

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
        """Wait for the item whose turn it is and take it out; raises MailboxClosed. Loses nothing when cancelled."""
        await trio.lowlevel.checkpoint()
        while not len(self):
            if self._is_closed:
                raise MailboxClosed
            await self._receivers.park()
        return self._take_next()

    def __aiter__(self) -> Mailbox[T]:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.receive()
        except MailboxClosed:
            raise StopAsyncIteration from None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._later)

    def _accepts(self, key: Hashable | None) -> bool:
        return not self._is_closed and (key is None or (key not in self._waiting and key not in self._later))

    def _take_next(self) -> T:
        is_turn_of_later = not self._waiting or self._overtaken == MAX_OVERTAKEN
        if self._later and is_turn_of_later:
            self._overtaken = 0
            return self._later.popitem(last=False)[1]
        self._overtaken = self._overtaken + 1 if self._later else 0
        return self._waiting.popitem(last=False)[1]

    def _take_all(self) -> list[T]:
        taken = [*self._waiting.values(), *self._later.values()]
        self._waiting.clear()
        self._later.clear()
        return taken
