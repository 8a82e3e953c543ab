"""An actor that processes events one at a time, in order of arrival."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial
from typing import Generic, Protocol, TypeVar

import trio
from attrs import define, evolve, frozen

from actors.mailbox import Barrier, Mailbox
from actors.trio_entry import TrioEntry


class Event(Protocol):
    """Something to process. Each event ends in exactly one of two ways: processed or preempted.

    One that another event took in ends with that event.

    An event with a `key` says where to look rather than what is new there. One such event in the queue is enough:
    further events with an equal key merge into it.
    """

    @property
    def name(self) -> str:
        """The type of event, for statistics: one of a small set."""

    @property
    def key(self) -> Hashable | None:
        """The subject of the event, if one event about it in the queue is enough; else None."""

    def preempt(self) -> None:
        """React to the event not being processed to its end; must not raise.

        Called once, in the trio thread, if the event was dropped, or if its processing was cancelled or failed.
        """


E = TypeVar("E", bound=Event)
E_contra = TypeVar("E_contra", bound=Event, contravariant=True)


class EventObserver(Protocol[E_contra]):
    """Receives notice of each event. An exception that it raises ends the queue."""

    def started(self, event: E_contra, queued_seconds: float) -> None:
        """Note that processing begins."""

    def finished(self, event: E_contra, seconds: float) -> None:
        """Note that processing ended, whether it succeeded or not."""


@define
class EventStatistics:
    """The time that events of one name have taken so far. Dropped events do not count."""

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

    Those that can wait do not pass a barrier that was queued before them.

    An exception from `process` or the observer ends `run`. The owner decides what follows, and may run the queue
    again with the events that remain.
    """

    def __init__(
        self,
        process: Callable[[E], Awaitable[None]],
        *,
        observer: EventObserver[E] | None = None,
        capacity: int | None = None,
        joins: Callable[[E, E], bool] | None = None,
        is_barrier: Callable[[E], bool] = lambda _: False,
    ) -> None:
        """Queue at most `capacity` events; None means no limit (see `Mailbox`).

        `joins` lets an event take in the one that comes right after it, or returns False. An event that was taken in is
        not processed or preempted on its own: it ends with the event that took it in. `is_barrier` returns whether an
        event holds back those that are queued after it for `later`.
        """
        self._process = process
        self._is_barrier = is_barrier
        self._observer = observer
        self._joins = joins
        self._mailbox: Mailbox[_Queued[E]] = Mailbox(capacity)
        self._entry = TrioEntry()
        self._running: trio.CancelScope | None = None
        self._processed: E | None = None
        self._statistics: dict[str, EventStatistics] = {}
        self._is_closed = False

    def bind(self) -> None:
        """Allow other threads to queue events from now on; needed if the queue was made outside trio."""
        self._entry.bind()

    def tell(self, event: E, *, later: bool = False, goes_on: bool = False) -> bool:
        """Queue an event. Return False if an event with an equal key is queued already, or if the queue is closed.

        An event for `later` lets others pass (see `Mailbox`). A barrier that `goes_on` with the event being processed
        holds back all that can wait, as it did before. May be called from any thread, with the same rules as
        `Mailbox.tell`; raises MailboxFull, in the trio thread only. A closed queue preempts the event at once.
        """
        barrier = Barrier.FOR_NONE
        if self._is_barrier(event):
            barrier = Barrier.FOR_ALL if goes_on else Barrier.FOR_LATER
        if not self._entry.is_inside:
            put = partial(self._mailbox.put, later=later, barrier=barrier)
            self._entry.run_soon(lambda: self._put(event, put))
            return True
        return self._put(event, partial(self._mailbox.tell, later=later, barrier=barrier))

    def withdraw(self, event: E) -> None:
        """Preempt the queued event with the key of `event`; an event that is being processed is left alone."""
        _preempt(self._mailbox.withdraw(event.key))

    def preempt_and_put(self, event: E, *, cancel_running: bool = False) -> None:
        """Preempt all queued events and queue `event`; with `cancel_running`, cancel the running event as well."""
        if self._is_closed:
            event.preempt()
            return
        barrier = Barrier.FOR_LATER if self._is_barrier(event) else Barrier.FOR_NONE
        _preempt(self._mailbox.preempt_and_put(_Queued(event, trio.current_time()), barrier=barrier))
        if cancel_running and self._running is not None:
            self._running.cancel()

    def has(self, event: E) -> bool:
        """Return whether an event with the key of `event` is queued."""
        return self._mailbox.has(event.key)

    @property
    def has_barrier(self) -> bool:
        """Whether a barrier is queued, or being processed."""
        is_processed = self._processed is not None and self._is_barrier(self._processed)
        return is_processed or self._mailbox.has_barrier

    def close(self) -> None:
        """Preempt all queued events, and end `run` after the running event."""
        self._is_closed = True
        _preempt(self._mailbox.close())

    def hold(self) -> None:
        """Process no event after the running one, until `release`: events wait."""
        self._mailbox.hold()

    def release(self) -> None:
        """Process events again."""
        self._mailbox.release()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process events until closed or cancelled."""
        task_status.started()
        async for queued in self._mailbox:
            await self._process_one(queued)

    @property
    def is_idle(self) -> bool:
        """Whether no event waits, and none is being processed."""
        return self._running is None and not self._mailbox

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
        self._processed, is_processed = event, False
        try:
            if self._joins is not None:
                takes_in = partial(self._joins, event)
                self._mailbox.take_while(lambda following: takes_in(following.event))
            if self._observer is not None:
                self._observer.started(event, began - queued.since)
            with trio.CancelScope() as self._running:
                await self._process(event)
                is_processed = True
        finally:
            self._running = self._processed = None
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
