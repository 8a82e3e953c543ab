"""The parts of a connection in a simulated network: pipes on paths between machines."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from math import inf
from typing import Final

import trio
from attrs import define, field, frozen

from simulator.alarms import Alarms
from simulator.waiter import Waiter

MAX_CHUNKS: Final = 256
"""Maximum chunks in transit in one direction of a connection before its sender has to wait."""

Observer = Callable[[str, str, int, bytes], None]
"""Called with source, destination, number of the connection and chunk when the receiver takes a chunk."""


Ambush = Callable[["Pipe", bytes], bool]
"""Called with a pipe and a chunk about to leave on it; returns whether it has taken care of the chunk."""


class Fragment(bytes):
    """The beginning of a chunk whose rest never arrives; observers do not see it."""

    __slots__ = ()


@frozen
class Link:
    """The properties of one direction between two hosts, shared by all their connections."""

    latency: float = 0.001
    """Transit time of a chunk, in seconds."""

    jitter: float = 0.0
    """Maximum additional seconds, drawn for each chunk. The chunks of a connection still keep their order."""

    bytes_per_second: float = inf


@define(eq=False)
class Machine:
    """A host on the network."""

    name: str
    is_up: bool = True
    is_frozen: bool = False
    life: int = 0
    """Number of times that the host was cut off."""


@define(eq=False)
class Path:
    """The path from one host to another, shared by all their connections."""

    source: Machine
    destination: Machine
    link: Link
    rng: random.Random
    alarms: Alarms
    is_blocked: bool = False
    ambush: Ambush | None = None
    pipes: dict[Pipe, None] = field(factory=dict)
    """The pipes that have a receiver, in the order in which they were opened."""

    _free_at: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether chunks sent now are held back."""
        return self.is_blocked or self.source.is_frozen

    def arrival(self, size: int) -> float:
        """Return when `size` bytes sent now arrive; they use up the link's bandwidth."""
        link = self.link
        left = self.alarms.now()
        if link.bytes_per_second != inf:
            self._free_at = left = max(left, self._free_at) + size / link.bytes_per_second
        return left + link.latency + (link.jitter * self.rng.random() if link.jitter else 0.0)

    def become(self, link: Link) -> None:
        """Use another link for everything sent from now on, which does not queue behind the old link's backlog."""
        if link != self.link:
            self.link, self._free_at = link, 0.0

    def tell(self, news: Callable[[Pipe], None]) -> None:
        """Notify all pipes, in order."""
        for pipe in list(self.pipes):
            news(pipe)


class Ending(Enum):
    """The ways in which a pipe ends."""

    CLOSED = auto()
    BROKEN = auto()


class Pipe:
    """One direction of a connection: its sender puts chunks in, and its receiver takes them when they are due.

    Chunks that the path holds back are kept in order, and leave when the path is released. The end travels like a
    chunk, after all the others.
    """

    def __init__(self, path: Path, connection_id: int, observer: Observer) -> None:
        self.connection_id = connection_id
        self._path = path
        self._observer = observer
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._held: deque[bytes] = deque()
        self._opened = b""  # the chunk that the receiver has taken in part
        self._opened_bytes = 0
        self._ending: Ending | None = None
        self._ends_at = inf
        self._ends_later_by = 0.0
        self._is_read = True
        self._receiver = Waiter()
        self._sender = Waiter()
        self._alarm_at = inf
        path.pipes[self] = None

    # Called by the sender.

    @property
    def is_full(self) -> bool:
        """Whether the sender has to wait for room."""
        return len(self._arriving) + len(self._held) >= MAX_CHUNKS

    def put(self, chunk: bytes) -> None:
        """Send a chunk; it is lost if the receiver is gone or the pipe has ended."""
        if not self._is_read or self._ending is not None:
            return
        path = self._path
        if path.holds:
            self._held.append(chunk)
        elif path.ambush is None or not path.ambush(self, chunk):
            self._depart(chunk)

    def put_late(self, chunk: bytes, seconds: float) -> None:
        """Send a chunk that takes so many seconds longer; the end takes that time once more."""
        self._arriving.append((self._arrival(len(chunk)) + seconds, chunk))
        self._ends_later_by = seconds
        self.notice()

    def tear(self, chunk: bytes, size: int) -> None:
        """Send only the first bytes of a chunk, and then break."""
        self._depart(Fragment(chunk[:size]))
        self.end(Ending.BROKEN)

    def end(self, ending: Ending) -> None:
        """Send the end, unless it has been sent."""
        if self._ending is None:
            self._ending = ending
            self.release()

    async def wait_for_room(self) -> None:
        """Wait until `is_full` may have changed."""
        await self._sender.wait()

    def wake_sender(self) -> None:
        """End the wait for room."""
        self._sender.wake()

    # Called by the receiver.

    @property
    def is_due(self) -> bool:
        """Whether there is something to take now."""
        if self._opened and not self._path.destination.is_frozen:
            return True
        return self._next_arrival() <= self._path.alarms.now()

    @property
    def has_ended(self) -> bool:
        """Whether the end has arrived, perhaps after chunks that have not been taken yet."""
        return self._ends_at <= self._path.alarms.now() and not self._path.destination.is_frozen

    def take(self, max_bytes: int | None = None) -> bytes:
        """Return what is due: a chunk, a part of one, or b"" at the end. Raises BrokenResourceError at a break."""
        if not self._opened:
            if not self._arriving:
                return self._take_end()
            _, chunk = self._arriving.popleft()
            self._sender.wake()
            if not isinstance(chunk, Fragment):
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
        """Drop everything in transit or sent later, because the receiver is gone. Ends its wait."""
        self._is_read = False
        self._path.pipes.pop(self, None)
        self._lose_all()
        self._receiver.wake()

    # Called when the path changes.

    def hold(self) -> None:
        """Hold back what has not arrived yet."""
        now = self._path.alarms.now()
        while self._arriving and self._arriving[-1][0] > now:
            self._held.appendleft(self._arriving.pop()[1])
        if self._ends_at > now:
            self._ends_at = inf
        self.notice()

    def release(self) -> None:
        """Release what was held back, unless the path still holds it."""
        if self._path.holds:
            return
        while self._held:
            self._depart(self._held.popleft())
        if self._ending is not None and self._ends_at == inf:
            self._ends_at = self._arrival(0) + self._ends_later_by
        self.notice()

    def notice(self) -> None:
        """Wake a waiting receiver when there is something to take."""
        if self._receiver.task is None:
            return
        due = self._next_arrival()
        if due <= self._path.alarms.now():
            self._receiver.wake()
        else:
            self._set_alarm(due)

    def break_now(self) -> None:
        """Drop everything in transit, and break at once, even where the path is held."""
        self._lose_all()
        self._ending, self._ends_at = Ending.BROKEN, self._path.alarms.now()
        self.notice()

    def fall_silent(self) -> None:
        """Drop everything in transit or sent later, including the end of the stream."""
        self._lose_all()
        self._path.pipes.pop(self, None)
        self._ending, self._ends_at = Ending.CLOSED, inf

    def lose_sender(self) -> None:
        """Break, because the sender died; what was held back is lost. Chunks in transit arrive before the break."""
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
