"""A queue in front of a task, open to any thread."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import Enum
from itertools import count
from typing import Final, Generic, TypeVar

import trio

from actors.trio_entry import TrioEntry

T = TypeVar("T")

MAX_OVERTAKEN: Final = 16
"""The most items in a row that may pass an item put in for `later`."""

_BEFORE_ALL: Final = -1
"""The number of a barrier for all items: theirs begin at 0."""


class MailboxFull(Exception):
    """The mailbox holds as many items as its capacity allows."""


class MailboxClosed(Exception):
    """The mailbox is closed and empty."""


class Barrier(Enum):
    """Which items for later wait until an item has been received."""

    FOR_NONE = "none"
    FOR_LATER = "those put in after it"
    FOR_ALL = "all that wait or are put in"


class _Unkeyed:
    """A unique key for an item that has none."""


class Mailbox(Generic[T]):
    """A queue from any number of senders to one or more receivers, which may iterate over it until it is closed.

    FIFO, except that items put in for `later` let the others pass, at most `MAX_OVERTAKEN` of them in a row. They never
    pass a barrier that was put in before them, nor one put in for all of them (see `Barrier`).

    A mailbox that was made outside trio must be bound before another thread puts something in. All methods except
    `tell` belong to the trio thread.
    """

    def __init__(self, capacity: int | None = None) -> None:
        """Hold at most `capacity` items; None means no limit, for items that are bounded by their keys."""
        self._capacity = capacity
        self._entry = TrioEntry()
        # Ordered dicts remove the oldest item, or any other by its key, in constant time.
        self._waiting: OrderedDict[Hashable, T] = OrderedDict()
        # Items for later, and barriers, are numbered as they come.
        self._numbers = count()
        self._later: OrderedDict[Hashable, tuple[int, T]] = OrderedDict()
        self._barriers: OrderedDict[Hashable, int] = OrderedDict()
        self._overtaken = 0
        self._receivers = trio.lowlevel.ParkingLot()
        self._is_closed = False
        self.is_held = False
        """Whether receivers wait although there may be items."""

    def hold(self) -> None:
        """Let receivers wait from now on, and items with them, until `release`."""
        self.is_held = True

    def release(self) -> None:
        """Hand the items out again."""
        self.is_held = False
        self._receivers.unpark_all()

    def bind(self) -> None:
        """Allow other threads to put items in from now on."""
        self._entry.bind()

    def tell(
        self, item: T, key: Hashable | None = None, *, later: bool = False, barrier: Barrier = Barrier.FOR_NONE
    ) -> bool:
        """Put an item in. Return False if an item with that key is waiting already, or if the mailbox is closed.

        May be called from any thread. Raises MailboxFull, in the trio thread only. Another thread always gets True,
        because the outcome is not known yet: its item arrives soon, whatever the capacity, and is dropped silently in
        the cases above and after the end of trio.
        """
        if not self._entry.is_inside:
            self._entry.run_soon(lambda: self.put(item, key, later=later, barrier=barrier))
            return True
        if self._accepts(key) and self._capacity is not None and len(self) >= self._capacity:
            raise MailboxFull(f"{self._capacity} are waiting")
        return self.put(item, key, later=later, barrier=barrier)

    def put(
        self, item: T, key: Hashable | None = None, *, later: bool = False, barrier: Barrier = Barrier.FOR_NONE
    ) -> bool:
        """Put an item in as `tell` does, but regardless of the capacity."""
        if not self._accepts(key):
            # The item that waits takes the place of this one.
            if barrier is Barrier.FOR_ALL and self.has(key):
                self._hold_back_all(key)
            return False
        if key is None:
            key = _Unkeyed()
        if later:
            self._later[key] = next(self._numbers), item
        else:
            self._waiting[key] = item
        if barrier is Barrier.FOR_ALL:
            self._hold_back_all(key)
        elif barrier is Barrier.FOR_LATER:
            self._barriers[key] = next(self._numbers)
        self._receivers.unpark()
        return True

    def take_while(self, fits: Callable[[T], bool]) -> None:
        """Remove the items that come next as long as they fit; those put in for `later` do not come next."""
        while self._waiting and fits(next(iter(self._waiting.values()))):
            self._take_first()

    def withdraw(self, key: Hashable) -> list[T]:
        """Remove and return the item with a key, as a list of one or none."""
        self._barriers.pop(key, None)
        if key in self._later:
            return [self._later.pop(key)[1]]
        return [self._waiting.pop(key)] if key in self._waiting else []

    def preempt_and_put(self, item: T, *, barrier: Barrier = Barrier.FOR_NONE) -> list[T]:
        """Replace all waiting items by `item`, and return them, oldest first."""
        dropped = self._take_all()
        self.put(item, barrier=barrier)
        return dropped

    def close(self) -> list[T]:
        """Accept no more items, end the receivers, and return the items that were waiting, oldest first."""
        self._is_closed = True
        self._receivers.unpark_all()
        return self._take_all()

    async def receive(self) -> T:
        """Wait for the next item, and remove and return it. Loses nothing when cancelled. Raises MailboxClosed."""
        await trio.lowlevel.checkpoint()
        while self.is_held or not len(self):
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

    def has(self, key: Hashable) -> bool:
        """Return whether an item with a key is waiting."""
        return key in self._waiting or key in self._later

    @property
    def has_barrier(self) -> bool:
        """Whether a barrier is waiting."""
        return bool(self._barriers)

    def _accepts(self, key: Hashable | None) -> bool:
        return not self._is_closed and (key is None or not self.has(key))

    def _take_next(self) -> T:
        # Items that can wait get their turn when nothing else waits, or after MAX_OVERTAKEN others in a row.
        has_waited = self._overtaken >= MAX_OVERTAKEN and not self._is_held_back()
        if self._later and (has_waited or not self._waiting):
            self._overtaken = 0
            key, (_, item) = self._later.popitem(last=False)
            self._barriers.pop(key, None)
            return item
        self._overtaken = self._overtaken + 1 if self._later else 0
        return self._take_first()

    def _is_held_back(self) -> bool:
        """Return whether a barrier waits that came before all items for later."""
        if not (self._barriers and self._later):
            return False
        first, _ = next(iter(self._later.values()))
        return next(iter(self._barriers.values())) < first

    def _take_first(self) -> T:
        key, item = self._waiting.popitem(last=False)
        self._barriers.pop(key, None)
        return item

    def _hold_back_all(self, key: Hashable) -> None:
        self._barriers[key] = _BEFORE_ALL
        self._barriers.move_to_end(key, last=False)

    def _take_all(self) -> list[T]:
        taken = [*self._waiting.values(), *(item for _, item in self._later.values())]
        for kept in (self._waiting, self._later, self._barriers):
            kept.clear()
        return taken
