"""The actor that takes events one at a time, in the order in which they came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial
from typing import Generic, Protocol, TypeVar

import trio
from attrs import define, evolve, frozen

from actors.mailbox import Mailbox
from actors.trio_entry import TrioEntry


class Event(Protocol):
    """Something to process; it ends in exactly one of two ways, processed or preempted.

    With a `key`, it says where to look rather than what is new: one of it in the queue is enough, and another one
    is merged into it.
    """

    @property
    def name(self) -> str:
        """The type of event, for statistics: one of a limited number."""

    @property
    def key(self) -> Hashable | None:
        """What the event is about, if one of it in the queue is enough."""

    def preempt(self) -> None:
        """Take notice that the event will not be processed to its end; must not raise.

        Called exactly once, in the trio thread: on an event that was dropped, or whose processing was cancelled or
        failed.
        """


E = TypeVar("E", bound=Event)
E_contra = TypeVar("E_contra", bound=Event, contravariant=True)


class EventObserver(Protocol[E_contra]):
    """Someone who is told of each event; what it raises is a fault of the queue."""

    def started(self, event: E_contra, queued_seconds: float) -> None:
        """Take notice that processing begins."""

    def finished(self, event: E_contra, seconds: float) -> None:
        """Take notice that processing ended, in whatever way."""


@define
class EventStatistics:
    """What events of one name have cost so far. Those that were dropped from the queue do not count."""

    count: int = 0
    queue_seconds_total: float = 0.0
    queue_seconds_max: float = 0.0
    processing_seconds_total: float = 0.0
    processing_seconds_max: float = 0.0


@frozen
class _Queued(Generic[E]):
    event: E
    since: float


class EventQueue(Generic[E]):
    """A queue of events and the loop that processes them one at a time: FIFO, except that some events can wait.

    An exception from `process` or the observer ends `run`: its owner decides what follows, and may run the queue
    again with what is left in it.
    """

    def __init__(
        self,
        process: Callable[[E], Awaitable[None]],
        *,
        observer: EventObserver[E] | None = None,
        capacity: int | None = None,
    ) -> None:
        """Hold at most `capacity` events that can be refused (see `Mailbox`)."""
        self._process = process
        self._observer = observer
        self._mailbox: Mailbox[_Queued[E]] = Mailbox(capacity)
        self._entry = TrioEntry()
        self._running: trio.CancelScope | None = None
        self._statistics: dict[str, EventStatistics] = {}
        self._is_closed = False

    def bind(self) -> None:
        """Let foreign threads put events in, for a queue that was made outside of trio."""
        self._entry.bind()

    def tell(self, event: E, *, later: bool = False) -> bool:
        """Queue an event; False if an equal key is queued, which covers this one, or if the queue is closed.

        An event for `later` lets others pass (see `Mailbox`). May be called from any thread, with the same rules as
        `Mailbox.tell`; raises MailboxFull, in the trio thread only. A closed queue preempts what it is told.
        """
        if not self._entry.is_inside:
            self._entry.run_soon(lambda: self._put(event, partial(self._mailbox.put, later=later)))
            return True
        return self._put(event, partial(self._mailbox.tell, later=later))

    def withdraw(self, event: E) -> None:
        """Preempt a queued event by its own key; an event whose processing has begun is left alone."""
        _preempt(self._mailbox.withdraw(event.key))

    def preempt_and_put(self, event: E, *, cancel_running: bool = False) -> None:
        """Preempt all that is queued and queue `event`; with `cancel_running`, cancel the event that is processed."""
        if self._is_closed:
            event.preempt()
            return
        _preempt(self._mailbox.preempt_and_put(_Queued(event, trio.current_time())))
        if cancel_running and self._running is not None:
            self._running.cancel()

    def close(self) -> None:
        """Preempt all that is queued, and end `run` when the event that is processed has ended."""
        self._is_closed = True
        _preempt(self._mailbox.close())

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process events until closed or cancelled."""
        task_status.started()
        async for queued in self._mailbox:
            await self._process_one(queued)

    def statistics(self) -> dict[str, EventStatistics]:
        """Return a copy of the statistics so far, by event name."""
        return {name: evolve(statistics) for name, statistics in self._statistics.items()}

    def __len__(self) -> int:
        return len(self._mailbox)

    def _put(self, event: E, put: Callable[[_Queued[E], Hashable | None], bool]) -> bool:
        if self._is_closed:
            event.preempt()
            return False
        return put(_Queued(event, trio.current_time()), event.key)

    async def _process_one(self, queued: _Queued[E]) -> None:
        event, began = queued.event, trio.current_time()
        is_processed = False
        try:
            if self._observer is not None:
                self._observer.started(event, began - queued.since)
            with trio.CancelScope() as self._running:
                await self._process(event)
                is_processed = True
        finally:
            self._running = None
            if not is_processed:
                event.preempt()
            ended = trio.current_time()
            self._count(event.name, began - queued.since, ended - began)
            if self._observer is not None:
                self._observer.finished(event, ended - began)

    def _count(self, name: str, queue_seconds: float, processing_seconds: float) -> None:
        total = self._statistics.setdefault(name, EventStatistics())
        total.count += 1
        total.queue_seconds_total += queue_seconds
        total.queue_seconds_max = max(total.queue_seconds_max, queue_seconds)
        total.processing_seconds_total += processing_seconds
        total.processing_seconds_max = max(total.processing_seconds_max, processing_seconds)


def _preempt(dropped: Iterable[_Queued[E]]) -> None:
    for queued in dropped:
        queued.event.preempt()
