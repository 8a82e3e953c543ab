"""One snapshot for all listeners: made at most once a second, only if something changed, and only while some listen.

A listener that takes its time misses snapshots in between and gets the latest. One that does not take what it is sent
is sent away by the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from http import HTTPStatus
from typing import Final

import trio
from attrs import define, field

from transport.http import Headers, Page, Send, Stream
from transport.log import get_logger

MAX_LISTENERS: Final = 16
INTERVAL_SECONDS: Final = 1.0
PAUSE_FACTOR: Final = 9
"""The pause between snapshots as a multiple of the time that one takes."""

ALIVE_SECONDS: Final = 10.0
"""The time without a snapshot after which a listener is told that there is none."""

ALIVE: Final = b"event: alive\ndata:\n\n"
FULL: Final = f"{MAX_LISTENERS} browsers follow this controller already: close one\n".encode()

log = get_logger(__name__)


@define(eq=False)
class Broadcast:
    """The latest snapshot, and those who wait for the next one."""

    stamp: Callable[[], Hashable | None]
    """Returns what differs if a new snapshot would differ; None if that takes a snapshot to know."""

    take: Callable[[], Awaitable[bytes]]
    """Returns a snapshot, a line without an end."""

    _listeners: int = field(default=0, init=False)
    _is_wanted: trio.Event = field(factory=trio.Event, init=False)
    _grown: trio.Event = field(factory=trio.Event, init=False)
    _number: int = field(default=0, init=False)
    _latest: bytes | None = field(default=None, init=False)
    """The last snapshot; None while nobody listens."""

    _stamped: Hashable | None = field(default=None, init=False)

    async def run(self) -> None:
        """Take snapshots until cancelled."""
        while True:
            await self._is_wanted.wait()
            began = trio.current_time()
            await self._renew()
            await trio.sleep(max(INTERVAL_SECONDS, PAUSE_FACTOR * (trio.current_time() - began)))

    def answer(self, headers: Headers) -> Stream | Page:
        """Return the stream of snapshots for one more listener, or why there is none."""
        if self._listeners >= MAX_LISTENERS:
            return Page(FULL, HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)
        return Stream(self._tell, "text/event-stream", headers)

    async def _tell(self, send: Send) -> None:
        # More may have been answered while the heads of their streams were sent.
        if self._listeners >= MAX_LISTENERS:
            return
        self._listeners += 1
        self._is_wanted.set()
        told = -1
        try:
            while True:
                if self._latest is not None and told != self._number:
                    told = self._number
                    await send(self._latest)
                    continue
                with trio.move_on_after(ALIVE_SECONDS) as waiting:
                    await self._grown.wait()
                if waiting.cancelled_caught:
                    await send(ALIVE)
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._is_wanted, self._latest = trio.Event(), None

    async def _renew(self) -> None:
        """Take a snapshot if it may differ from the last one. A fault in it must not cost the controller its office."""
        stamp = self.stamp()
        if self._latest is not None and stamp is not None and stamp == self._stamped:
            return
        try:
            frame = b"data: " + await self.take() + b"\n\n"
        except Exception:
            log.exception("the page cannot be made")
            return
        self._stamped = stamp
        if self._listeners and frame != self._latest:
            self._latest = frame
            self._number += 1
            self._grown.set()
            self._grown = trio.Event()
