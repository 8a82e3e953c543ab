"""trio as a guest of an asyncio event loop: async code for trio inside an asyncio program.

trio allows one guest run per thread, so all users in an event loop share one: the first starts it, and it ends with the
last. asyncio sees only one awaitable per user.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from weakref import WeakKeyDictionary

import trio
from attrs import define, field


async def run_in_trio(work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` in trio, from a task of asyncio; cancelling that task cancels it and waits for its end."""
    await _GuestRun.of(asyncio.get_running_loop()).run(work)


@define(eq=False)
class _GuestRun:
    """The trio guest run of one event loop, which exists while it has users."""

    loop: asyncio.AbstractEventLoop
    _users: int = field(default=0, init=False)
    _nursery: trio.Nursery | None = field(default=None, init=False)
    _ready: asyncio.Event = field(factory=asyncio.Event, init=False)
    _ended: asyncio.Future[None] | None = field(default=None, init=False)
    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    """Held while the run starts or ends, so that it never does both."""

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> _GuestRun:
        """Return the guest run of a loop, which may not have been started yet."""
        if loop not in _GUEST_RUNS:
            _GUEST_RUNS[loop] = cls(loop)
        return _GUEST_RUNS[loop]

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` in trio; cancelling the caller cancels it and waits for its end."""
        self._users += 1
        try:
            await self._start()
            await self._run_in_trio(work)
        finally:
            self._users -= 1
            await asyncio.shield(self._end())

    async def _start(self) -> None:
        async with self._turn:
            if self._ended is not None:
                return
            self._ended = self.loop.create_future()
            trio.lowlevel.start_guest_run(
                self._host_nursery,
                run_sync_soon_threadsafe=self.loop.call_soon_threadsafe,
                done_callback=self._done,
                host_uses_signal_set_wakeup_fd=True,
            )
            await self._ready.wait()

    async def _host_nursery(self) -> None:
        async with trio.open_nursery() as self._nursery:
            self._ready.set()
            await trio.sleep_forever()

    def _done(self, _outcome: object) -> None:
        assert self._ended is not None, "the run was started"
        self._ended.set_result(None)

    async def _run_in_trio(self, work: Callable[[], Awaitable[None]]) -> None:
        assert self._nursery is not None, "the run is ready"
        result: asyncio.Future[None] = self.loop.create_future()
        scope = trio.CancelScope()

        async def supervised() -> None:
            try:
                with scope:
                    await work()
            except Exception as error:  # noqa: BLE001  it is raised in the asyncio task that waits
                result.set_exception(error)
            else:
                result.set_result(None)

        self._nursery.start_soon(supervised)
        try:
            await asyncio.shield(result)
        except asyncio.CancelledError:
            scope.cancel()
            await asyncio.wait([result])
            raise

    async def _end(self) -> None:
        async with self._turn:
            if self._users or self._ended is None or self._nursery is None:
                return
            self._nursery.cancel_scope.cancel()
            # A loop that ends cancels its remaining tasks, this one included. trio must end first all the same.
            while not self._ended.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([self._ended])
            self._ended = None
            self._ready.clear()


_GUEST_RUNS: WeakKeyDictionary[asyncio.AbstractEventLoop, _GuestRun] = WeakKeyDictionary()
