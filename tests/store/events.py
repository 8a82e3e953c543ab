"""Waiting for a store's events."""

from __future__ import annotations

import math

import trio

from transport.store.protocol import MetadataStore, SessionChanged, SessionState, StoreEvent, WatchFired, WatchKind

PATIENCE = 20


class Events:
    """The events of a store from now on, in order."""

    def __init__(self, store: MetadataStore) -> None:
        send, self._receive = trio.open_memory_channel[StoreEvent](math.inf)
        store.subscribe(send.send_nowait)

    async def next(self) -> StoreEvent:
        """Return the next event, waiting for it."""
        with trio.fail_after(PATIENCE):
            return await self._receive.receive()

    async def until(self, last: StoreEvent) -> list[StoreEvent]:
        """Return all events up to and including `last`."""
        events = [await self.next()]
        while events[-1] != last:
            events.append(await self.next())
        return events

    async def expect(self, *expected: StoreEvent) -> None:
        """Assert that exactly these are next."""
        assert [await self.next() for _ in expected] == list(expected)


def created(path: str) -> WatchFired:
    return WatchFired(path, WatchKind.CREATED)


def changed(path: str) -> WatchFired:
    return WatchFired(path, WatchKind.CHANGED)


def deleted(path: str) -> WatchFired:
    return WatchFired(path, WatchKind.DELETED)


def children_of(path: str) -> WatchFired:
    return WatchFired(path, WatchKind.CHILDREN)


CONNECTED = SessionChanged(SessionState.CONNECTED)
SUSPENDED = SessionChanged(SessionState.SUSPENDED)
EXPIRED = SessionChanged(SessionState.EXPIRED)
CLOSED = SessionChanged(SessionState.CLOSED)
