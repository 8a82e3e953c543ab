"""A simulated network with two hosts, for the network tests."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import trio
import trio.testing
from attrs import define, field
from trio.abc import Clock
from trio.testing import MockClock

from simulator.alarms import VirtualClock
from simulator.network.network import SimulatedNetwork

PORT = 9092
SOON = 1e-9
"""On virtual time, this much time passes only once every task is blocked."""

DELIVERIES = list[tuple[float, str, str, int, bytes]]


def now() -> float:
    """Return the time in seconds, excluding waits for `SOON`."""
    return round(trio.current_time(), 6)


@define
class Net:
    """Host `b` listens, and host `a` connects; `deliveries` are the chunks that the observer saw."""

    nursery: trio.Nursery
    seed: int = 0
    deliveries: DELIVERIES = field(factory=list)
    network: SimulatedNetwork = field(init=False)
    accepted: list[trio.abc.Stream] = field(factory=list)
    listening: trio.CancelScope = field(factory=trio.CancelScope)

    def __attrs_post_init__(self) -> None:
        self.network = SimulatedNetwork(random.Random(self.seed), self._observe)

    async def listen(self, host: str = "b") -> None:
        await self.nursery.start(self._serve, host)

    async def pair(self) -> tuple[trio.abc.Stream, trio.abc.Stream]:
        """Return a new connection's end at `a` and its end at `b`."""
        stream = await self.network.at("a").connect("b", PORT)
        await trio.sleep(SOON)  # until the handler runs
        return stream, self.accepted[-1]

    async def _serve(self, host: str, *, task_status: trio.TaskStatus[int]) -> None:
        with trio.CancelScope() as self.listening:
            await self.network.at(host).serve(self._keep, host, PORT, task_status=task_status)

    async def _keep(self, stream: trio.abc.Stream) -> None:
        self.accepted.append(stream)
        await trio.sleep_forever()

    def _observe(self, source: str, destination: str, connection_id: int, chunk: bytes) -> None:
        self.deliveries.append((now(), source, destination, connection_id, chunk))


def make_clock(name: str) -> Clock:
    """Make the clock of simulations, or the one of users' own tests."""
    return VirtualClock(lambda: False) if name == "VirtualClock" else MockClock(autojump_threshold=0)


CLOCKS = ("VirtualClock", "MockClock")


async def received(stream: trio.abc.Stream, chunks: int) -> list[tuple[float, bytes]]:
    """Receive this many chunks, each with the time at which it arrived."""
    received = []
    for _ in range(chunks):
        data = bytes(await stream.receive_some())
        received.append((now(), data))
    return received


async def expect_none(stream: trio.abc.Stream, seconds: float) -> None:
    assert await hangs(stream.receive_some, seconds)


async def hangs(what: Callable[[], Awaitable[object]], seconds: float = 1000.0) -> bool:
    with trio.move_on_after(seconds) as scope:
        await what()
    return scope.cancelled_caught
