"""What connections of a simulated network are made of: pipes on paths between machines."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from math import inf
from typing import Final, NoReturn

import trio
from attrs import define, field, frozen

from simulator.alarms import Alarms

MAX_CHUNKS: Final = 256
"""How much may be under way in one direction of a connection before its sender has to wait."""

Observer = Callable[[str, str, int, bytes], None]
"""Called with source, destination, number of the connection and chunk when the receiver takes a chunk."""


@frozen
class Link:
    """What one direction between two hosts is like; all connections between them share it."""

    latency: float = 0.001
    """Seconds that a chunk takes."""

    jitter: float = 0.0
    """Up to so many seconds more, drawn for each chunk. The chunks of a connection keep their order all the same."""

    bytes_per_second: float = inf


@define(eq=False)
class Machine:
    """A host on the network."""

    name: str
    is_up: bool = True
    is_frozen: bool = False
    life: int = 0
    """How often it was cut off."""


@define(eq=False)
class Path:
    """The way from one host to another, which all their connections share."""

    source: Machine
    destination: Machine
    link: Link
    rng: random.Random
    alarms: Alarms
    is_blocked: bool = False
    pipes: dict[Pipe, None] = field(factory=dict)
    """Those that have a receiver, in the order in which they were opened."""

    _free_at: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether what is sent now is kept back."""
        return self.is_blocked or self.source.is_frozen

    def arrival(self, size: int) -> float:
        """Return when so many bytes arrive that leave now; they use up the link's bandwidth."""
        link = self.link
        left = trio.current_time()
        if link.bytes_per_second != inf:
            self._free_at = left = max(left, self._free_at) + size / link.bytes_per_second
        return left + link.latency + (link.jitter * self.rng.random() if link.jitter else 0.0)

    def become(self, link: Link) -> None:
        """Be like another link for what is sent from now on: it does not queue behind what the old one is slow with."""
        if link != self.link:
            self.link, self._free_at = link, 0.0

    def tell(self, news: Callable[[Pipe], None]) -> None:
        """Tell all pipes, in order."""
        for pipe in list(self.pipes):
            news(pipe)


@define(eq=False)
class _Waiter:
    """The one task that waits at an end of a pipe, if any does."""

    task: trio.lowlevel.Task | None = None

    async def wait(self) -> None:
        """Wait until woken."""
        self.task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abandon)

    def wake(self) -> None:
        """Let the task go on."""
        if self.task is not None:
            trio.lowlevel.reschedule(self.task)
            self.task = None

    def _abandon(self, raise_cancel: Callable[[], NoReturn]) -> trio.lowlevel.Abort:
        del raise_cancel
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED


class Ending(Enum):
    """How a pipe ends."""

    CLOSED = auto()
    BROKEN = auto()


class Pipe:
    """One direction of one connection: its sender puts chunks in, its receiver takes them when they are due.

    What the path holds back is kept in order, and leaves when the path holds no longer. The end travels like a chunk,
    behind all of them.
    """

    def __init__(self, path: Path, connection_id: int, observer: Observer) -> None:
        self.connection_id = connection_id
        self._path = path
        self._observer = observer
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._held: deque[bytes] = deque()
        self._opened = b""  # the chunk of which the receiver has had a part
        self._opened_bytes = 0
        self._ending: Ending | None = None
        self._ends_at = inf
        self._is_read = True
        self._receiver = _Waiter()
        self._sender = _Waiter()
        self._alarm_at = inf
        path.pipes[self] = None

    # What the sender calls.

    @property
    def is_full(self) -> bool:
        """Whether the sender has to wait for room."""
        return len(self._arriving) + len(self._held) >= MAX_CHUNKS

    def put(self, chunk: bytes) -> None:
        """Send a chunk; it is lost if nobody receives any more, or if the pipe was ended."""
        if not self._is_read or self._ending is not None:
            return
        if self._path.holds:
            self._held.append(chunk)
        else:
            self._depart(chunk)

    def end(self, ending: Ending) -> None:
        """Send the end, unless it was sent before."""
        if self._ending is None:
            self._ending = ending
            self.release()

    async def wait_for_room(self) -> None:
        """Wait until `is_full` may have changed."""
        await self._sender.wait()

    def wake_sender(self) -> None:
        """End the wait for room."""
        self._sender.wake()

    # What the receiver calls.

    @property
    def is_due(self) -> bool:
        """Whether there is something to take now."""
        if self._opened and not self._path.destination.is_frozen:
            return True
        return self._next_arrival() <= trio.current_time()

    @property
    def has_ended(self) -> bool:
        """Whether the end has arrived, perhaps behind chunks that were not taken yet."""
        return self._ends_at <= trio.current_time() and not self._path.destination.is_frozen

    def take(self, max_bytes: int | None = None) -> bytes:
        """Return what is due: a chunk, a part of one, or b"" at the end; raises BrokenResourceError at a break."""
        if not self._opened:
            if not self._arriving:
                return self._take_end()
            _, chunk = self._arriving.popleft()
            self._sender.wake()
            self._observer(self._path.source.name, self._path.destination.name, self.connection_id, chunk)
            if max_bytes is None or len(chunk) <= max_bytes:
                return chunk
            self._opened, self._opened_bytes = chunk, 0
        return self._take_part(max_bytes)

    async def wait_until_due(self) -> None:
        """Wait until `is_due` may have changed."""
        self._set_alarm(self._next_arrival())
        await self._receiver.wait()

    def stop_receiving(self) -> None:
        """Lose what is under way and all that will be: the receiver is gone. Ends its wait."""
        self._is_read = False
        self._path.pipes.pop(self, None)
        self._lose_all()
        self._receiver.wake()

    # What befalls the path.

    def hold(self) -> None:
        """Keep back what has not arrived yet."""
        now = trio.current_time()
        while self._arriving and self._arriving[-1][0] > now:
            self._held.appendleft(self._arriving.pop()[1])
        if self._ends_at > now:
            self._ends_at = inf
        self.notice()

    def release(self) -> None:
        """Let go what was kept back, unless the path still holds it."""
        if self._path.holds:
            return
        while self._held:
            self._depart(self._held.popleft())
        if self._ending is not None and self._ends_at == inf:
            self._ends_at = self._arrival(0)
        self.notice()

    def notice(self) -> None:
        """Let a receiver that waits know when there is something to take."""
        if self._receiver.task is None:
            return
        due = self._next_arrival()
        if due <= trio.current_time():
            self._receiver.wake()
        else:
            self._set_alarm(due)

    def break_now(self) -> None:
        """Lose what is under way, and break at once, even where the path holds."""
        self._lose_all()
        self._ending, self._ends_at = Ending.BROKEN, trio.current_time()
        self.notice()

    def fall_silent(self) -> None:
        """Lose everything that is under way or sent later, the end of the stream too."""
        self._lose_all()
        self._path.pipes.pop(self, None)
        self._ending, self._ends_at = Ending.CLOSED, inf

    def lose_sender(self) -> None:
        """Break, because the sender died with what was kept back. What is under way still arrives before that."""
        self._held.clear()
        if self._ends_at == inf:
            self._ending = None
        self.end(Ending.BROKEN)

    def _set_alarm(self, due: float) -> None:
        if due < self._alarm_at:
            self._alarm_at = due
            self._path.alarms.set(due, self._ring)

    def _ring(self) -> None:
        self._alarm_at = inf
        self.notice()

    def _depart(self, chunk: bytes) -> None:
        self._arriving.append((self._arrival(len(chunk)), chunk))
        if len(self._arriving) == 1:
            self.notice()

    def _arrival(self, size: int) -> float:
        arrival = self._path.arrival(size)
        return max(arrival, self._arriving[-1][0]) if self._arriving else arrival

    def _next_arrival(self) -> float:
        if self._path.destination.is_frozen:
            return inf
        return self._arriving[0][0] if self._arriving else self._ends_at

    def _take_part(self, max_bytes: int | None) -> bytes:
        start = self._opened_bytes
        part = self._opened[start:] if max_bytes is None else self._opened[start : start + max_bytes]
        self._opened_bytes += len(part)
        if self._opened_bytes == len(self._opened):
            self._opened = b""
        return part

    def _take_end(self) -> bytes:
        if self._ending is Ending.BROKEN:
            raise trio.BrokenResourceError("the connection broke")
        return b""

    def _lose_all(self) -> None:
        self._arriving.clear()
        self._held.clear()
        self._opened = b""
        self._sender.wake()
