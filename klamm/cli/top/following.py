"""Looking at a cluster again and again, whatever happens to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import trio
from attrs import define, evolve, field, frozen

from klamm.cli.connect import Cluster
from klamm.cli.rollout.status import JournalView
from klamm.cli.running import trouble_of
from klamm.cli.top.reading import Reader, Reading, open_reader
from klamm.cli.top.rollouts import Rollout, seen
from transport.host import Host

_LOOK_SECONDS: Final = 5.0
"""The time for one look, after which the cluster is shown as not answering."""

_SHARE: Final = 5
"""The pause as a multiple of the time of a look, so that a large cluster is busy with it for a sixth of the time."""

_PATIENCE: Final = 2
"""The number of looks in a row that may fail before the cluster is found anew."""


@frozen
class Look:
    """A reading and its time; `trouble` instead if nothing could be seen."""

    at_ms: int
    reading: Reading | None = None
    plans: tuple[Rollout, ...] = ()
    """The rollouts of the plans that are followed."""

    trouble: str = ""

    @property
    def rollouts(self) -> tuple[Rollout, ...]:
        """All rollouts."""
        return (*(self.reading.rollouts if self.reading else ()), *self.plans)


@define
class Following:
    """Looks at a cluster every `interval` seconds, and tells what it sees."""

    cluster: Cluster
    interval: float
    tell: Callable[[Look], None]
    plans: Sequence[JournalView] = ()
    _open: Callable[[Cluster], AbstractAsyncContextManager[Reader]] = open_reader
    _host: Host = field(factory=Host)
    _wake: trio.Event = field(factory=trio.Event)

    async def first(self) -> Look:
        """Return the first look. Raises what prevents it."""
        async with self._open(self.cluster) as reader:
            return await self._look(reader)

    async def run(self) -> None:
        """Look for ever; what goes wrong is told, and tried again."""
        patient = evolve(self.cluster, timeout=min(self.cluster.timeout, _LOOK_SECONDS))
        while True:
            try:
                async with self._open(patient) as reader:
                    await self._follow(reader)
            except Exception as error:  # noqa: BLE001  it is raised again if the cluster is not its cause
                self._tell_trouble(error)
                await self._pause(self.interval)

    def hurry(self) -> None:
        """Look now instead of after the pause."""
        self._wake.set()

    async def _follow(self, reader: Reader) -> None:
        """Look until that fails twice in a row."""
        failures = 0
        while failures < _PATIENCE:
            began = trio.current_time()
            try:
                self.tell(await self._look(reader))
                failures = 0
            except Exception as error:  # noqa: BLE001  it is raised again if the cluster is not its cause
                self._tell_trouble(error)
                failures += 1
            await self._pause(max(self.interval, _SHARE * (trio.current_time() - began)) if not failures else 1.0)

    async def _look(self, reader: Reader) -> Look:
        reading = await reader.look()
        return Look(self._host.now_ms(), reading, seen(self.plans))

    def _tell_trouble(self, error: Exception) -> None:
        """Tell what went wrong. Raises the error again if it is none that a cluster causes."""
        trouble = trouble_of(error)
        if trouble is None:
            raise error
        self.tell(Look(self._host.now_ms(), None, seen(self.plans), trouble))

    async def _pause(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            await self._wake.wait()
        self._wake = trio.Event()
