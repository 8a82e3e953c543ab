"""Running a controller inside any asyncio program: trio as a guest of the program's event loop.

trio allows one guest run per thread, so all controllers of an event loop share one: the first starts it, and it ends
with the last. asyncio sees only one awaitable per controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import trio
from attrs import define, field

from controller.config import ControllerConfig
from controller.embedding import run
from controller.node.service import ControllerService


async def run_asyncio(
    config: ControllerConfig, *, on_started: Callable[[ControllerService], None] | None = None, **options: Any
) -> None:
    """Run a controller until the awaiting task is cancelled; the cancellation completes after it has resigned.

    `on_started` is called in the event loop's thread once the controller listens. `options` and the exceptions raised
    are those of `klamm.run`.
    """
    guest = _GuestRun.of(asyncio.get_running_loop())
    await guest.run(partial(_run, config, on_started, options))


async def _run(
    config: ControllerConfig, on_started: Callable[[ControllerService], None] | None, options: dict[str, Any]
) -> None:
    async with trio.open_nursery() as nursery:
        service: ControllerService = await nursery.start(partial(run, config, **options))
        if on_started is not None:
            on_started(service)


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
            await self._ended
            self._ended = None
            self._ready.clear()


_GUEST_RUNS: WeakKeyDictionary[asyncio.AbstractEventLoop, _GuestRun] = WeakKeyDictionary()
