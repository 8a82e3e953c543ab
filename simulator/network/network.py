"""A network inside one trio run: hosts by name, links with latency and bandwidth, and faults."""

from __future__ import annotations

import errno
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from typing import Final

import trio
from attrs import frozen

from simulator.alarms import alarms_of_this_run
from simulator.network.pipe import Link, Machine, Observer, Path, Pipe
from simulator.network.stream import SimulatedStream
from transport.log import get_logger
from transport.network import Network, StreamHandler

__all__ = ["Door", "Link", "Observer", "SimulatedNetwork"]

Concerns = Callable[[bytes], bool]
"""Whether a chunk is one of those that a fault concerns."""

_PORTS: Final = range(1024, 65536)
_HELLO: Final = b"hello"

_log = get_logger(__name__)


class Door(Enum):
    """The ways in which a host treats new connections."""

    OPEN = "serves"
    REFUSING = "refuses"
    SILENT = "accepts, and never answers,"


@frozen(eq=False)
class _Listener:
    handler: StreamHandler
    nursery: trio.Nursery


class SimulatedNetwork:
    """The network of a simulation, and its faults. Times are seconds of `trio.current_time()`.

    Create it inside the trio run that uses it. `rng` is for jitter. `observer` is called when a chunk is delivered,
    which is when its receiver takes it; it must not raise. Hosts need not be announced. Faults last until they are
    undone, and apply to connections opened later, too.
    """

    def __init__(self, rng: random.Random, observer: Observer) -> None:
        self._rng = rng
        self._alarms = alarms_of_this_run()
        self._observer = observer
        self._default_link = Link()
        self._links: dict[tuple[str, str], Link] = {}
        self._paths: dict[tuple[str, str], Path] = {}
        self._machines: dict[str, Machine] = {}
        self._listeners: dict[tuple[str, int], _Listener] = {}
        self._next_port: defaultdict[str, int] = defaultdict(int)
        self._streams: dict[SimulatedStream, str] = {}
        self._connection_ids = count(1)
        self._doors: dict[str, Door] = {}
        self._waiting: dict[str, list[tuple[_Listener, SimulatedStream]]] = {}

    def at(self, host: str) -> Network:
        """Return the network as a host sees it, until it is cut; a restored host needs a new one."""
        machine = self._machine(host)
        return _View(self, machine, machine.life)

    @property
    def default_link(self) -> Link:
        """The link between hosts that have none of their own."""
        return self._default_link

    @default_link.setter
    def default_link(self, link: Link) -> None:
        self._default_link = link
        for ends, path in self._paths.items():
            path.become(self._links.get(ends, link))

    def set_link(self, source: str, destination: str, link: Link) -> None:
        """Set the link of one direction between two hosts, for everything sent from now on."""
        self._links[source, destination] = link
        self._path(source, destination).become(link)

    def block(self, source: str, destination: str) -> None:
        """Hold back, in order, everything in transit or sent later in this direction; connecting hangs."""
        path = self._path(source, destination)
        path.is_blocked = True
        path.tell(Pipe.hold)

    def unblock(self, source: str, destination: str) -> None:
        """Release what was held back, as if it were sent now."""
        path = self._path(source, destination)
        path.is_blocked = False
        path.tell(Pipe.release)

    def freeze(self, host: str) -> None:
        """Pause a host: it receives nothing, and what it sends is held back. What it sent before still arrives."""
        machine = self._machine(host)
        machine.is_frozen = machine.is_up
        self._tell_of(machine)

    def thaw(self, host: str) -> None:
        """Resume a paused host: what was sent to it meanwhile is available, and what it sent leaves now."""
        machine = self._machine(host)
        machine.is_frozen = False
        self._tell_of(machine)

    def break_connections(self, a: str, b: str) -> int:
        """Break all connections between two hosts, at both ends and at once, even where blocked; return their number.

        Everything in transit is lost. A frozen host sees the break when it is thawed.
        """
        pipes = {**self._path(a, b).pipes, **self._path(b, a).pipes}
        for pipe in pipes:
            pipe.break_now()
        return len({pipe.connection_id for pipe in pipes})

    def silence_connections(self, a: str, b: str, *, one_way: bool = False) -> int:
        """Drop all connections between two hosts silently, as a firewall does; return their number.

        Everything sent on them is lost, and neither end is ever notified. With `one_way`, only what `a` sends is lost.
        Connections opened later work.
        """
        back = {} if one_way else self._path(b, a).pipes
        pipes = {**self._path(a, b).pipes, **back}
        for pipe in pipes:
            pipe.fall_silent()
        return len({pipe.connection_id for pipe in pipes})

    def delay_next(
        self, source: str, destination: str, concerns: Concerns, seconds: float, *, breaks: bool = False
    ) -> None:
        """Delay the next chunk sent in this direction that `concerns` returns True for, and what follows it.

        With `breaks`, the sender's end of its connection breaks at once, as when a firewall resets one end only.
        """

        def delay(pipe: Pipe, chunk: bytes) -> None:
            pipe.put_late(chunk, seconds)
            if breaks:
                self._break_answers(pipe, source, destination)

        self._lie_in_wait(source, destination, concerns, delay)

    def tear_next(self, source: str, destination: str, concerns: Concerns) -> None:
        """Break the connection in the middle of the next chunk sent in this direction that `concerns` holds for."""

        def tear(pipe: Pipe, chunk: bytes) -> None:
            pipe.tear(chunk, self._rng.randrange(1, len(chunk)))
            self._break_answers(pipe, source, destination)

        self._lie_in_wait(source, destination, concerns, tear)

    def _lie_in_wait(
        self, source: str, destination: str, concerns: Concerns, strike: Callable[[Pipe, bytes], None]
    ) -> None:
        path = self._path(source, destination)

        def ambush(pipe: Pipe, chunk: bytes) -> bool:
            if not concerns(chunk):
                return False
            path.ambush = None
            strike(pipe, chunk)
            return True

        path.ambush = ambush

    def _break_answers(self, pipe: Pipe, source: str, destination: str) -> None:
        """Break the other direction of a pipe's connection."""
        for back in list(self._path(destination, source).pipes):
            if back.connection_id == pipe.connection_id:
                back.break_now()

    def set_door(self, host: str, door: Door) -> None:
        """Set how a host's listeners treat new connections from now on; those that wait are served once it is OPEN."""
        self._doors[host] = door
        if door is Door.OPEN:
            serving = list(self._listeners.values())
            for listener, stream in self._waiting.pop(host, ()):
                if listener in serving:
                    listener.nursery.start_soon(_handle, listener.handler, stream)

    def cut(self, host: str) -> None:
        """Kill a host: nothing that it sends from now on arrives, and its listeners are gone.

        Its own streams raise BrokenResourceError at once. Its peers see the break after the link's latency, or when it
        is unblocked. What had left still arrives before that; what was held back is lost.
        """
        machine = self._machine(host)
        machine.is_up = machine.is_frozen = False
        machine.life += 1
        self._waiting.pop(host, None)
        for address in [address for address in self._listeners if address[0] == host]:
            del self._listeners[address]
        for path in self._paths.values():
            if path.source is machine:
                path.tell(Pipe.lose_sender)
        for stream in [stream for stream, home in self._streams.items() if home == host]:
            stream.cut()

    def move_listener(self, host: str, port: int, to: int) -> None:
        """Let the server on a port of a host listen on another one. All connections of the host break."""
        self._listeners[host, to] = self._listeners.pop((host, port))
        for other in dict.fromkeys(name for ends in self._paths if host in ends for name in ends):
            self.break_connections(host, other)

    def restore(self, host: str) -> None:
        """Let a host that was cut connect and serve again, through a new `at`."""
        self._machine(host).is_up = True

    def mend(self) -> None:
        """End all faults except pauses and deaths: links are the default ones and not blocked, and doors are open."""
        self._links.clear()
        for host in list(self._doors):
            self.set_door(host, Door.OPEN)
        for path in list(self._paths.values()):
            path.become(self._default_link)
            path.ambush = None
            self.unblock(path.source.name, path.destination.name)

    async def connect(self, source: _View, host: str, port: int) -> SimulatedStream:
        """Connect as `Network.connect` does, in a round trip."""
        connection_id, here = next(self._connection_ids), source.machine.name
        await self._cross(here, host, connection_id)
        source.require_up()
        listener = self._listeners.get((host, port))
        if listener is None or self._doors.get(host) is Door.REFUSING:
            await self._cross(host, here, connection_id)
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {host}:{port}")
        stream = self._accept(listener, here, host, connection_id)
        try:
            await self._cross(host, here, connection_id)
            source.require_up()
        except BaseException:
            stream.close()
            raise
        return stream

    async def serve(
        self, at: _View, handler: StreamHandler, host: str, port: int, task_status: trio.TaskStatus[int]
    ) -> None:
        """Serve as `Network.serve` does; `host` must be the server's own."""
        at.require_up()
        if host != at.machine.name:
            raise OSError(errno.EADDRNOTAVAIL, f"cannot listen on {host}: this is {at.machine.name}")
        port = port or self._free_port(host)
        if (host, port) in self._listeners:
            raise OSError(errno.EADDRINUSE, f"the address {host}:{port} is already in use")
        async with trio.open_nursery() as nursery:
            listener = self._listeners[host, port] = _Listener(handler, nursery)
            try:
                task_status.started(port)
                await trio.sleep_forever()
            finally:
                # It may listen on another port by now, or no more at all.
                for address in [address for address, other in self._listeners.items() if other is listener]:
                    del self._listeners[address]

    async def _cross(self, source: str, destination: str, connection_id: int) -> None:
        """Wait for as long as a chunk sent now takes to arrive."""
        pipe = Pipe(self._path(source, destination), connection_id, _see_nothing)
        pipe.put(_HELLO)
        try:
            while not pipe.is_due:
                await pipe.wait_until_due()
            pipe.take()
        except trio.BrokenResourceError:
            raise ConnectionResetError(errno.ECONNRESET, f"{source} to {destination}: reset while connecting") from None
        finally:
            pipe.stop_receiving()

    def _accept(self, listener: _Listener, client: str, server: str, connection_id: int) -> SimulatedStream:
        """Start the handler of a new connection, and return the client's end of it."""
        there = Pipe(self._path(client, server), connection_id, self._observer)
        back = Pipe(self._path(server, client), connection_id, self._observer)
        stream = self._stream(server, incoming=there, outgoing=back)
        if self._doors.get(server) is Door.SILENT:
            self._waiting.setdefault(server, []).append((listener, stream))
        else:
            listener.nursery.start_soon(_handle, listener.handler, stream)
        return self._stream(client, incoming=back, outgoing=there)

    def _stream(self, home: str, *, incoming: Pipe, outgoing: Pipe) -> SimulatedStream:
        stream = SimulatedStream(incoming, outgoing, self._forget)
        self._streams[stream] = home
        return stream

    def _forget(self, stream: SimulatedStream) -> None:
        self._streams.pop(stream, None)

    def _machine(self, host: str) -> Machine:
        if host not in self._machines:
            self._machines[host] = Machine(host)
        return self._machines[host]

    def _path(self, source: str, destination: str) -> Path:
        ends = source, destination
        if ends not in self._paths:
            machines = self._machine(source), self._machine(destination)
            self._paths[ends] = Path(*machines, self._default_link, self._rng, self._alarms)
        return self._paths[ends]

    def _tell_of(self, machine: Machine) -> None:
        """Notify the pipes from and to a machine that it was frozen or thawed."""
        for path in self._paths.values():
            if path.source is machine:
                path.tell(Pipe.release)
            if path.destination is machine:
                path.tell(Pipe.notice)

    def _free_port(self, host: str) -> int:
        while True:
            port = _PORTS[self._next_port[host] % len(_PORTS)]
            self._next_port[host] += 1
            if (host, port) not in self._listeners:
                return port


@frozen
class _View:
    """The network as a host sees it in one of its lives."""

    network: SimulatedNetwork
    machine: Machine
    life: int

    def require_up(self) -> None:
        """Raise OSError if the host has been cut since."""
        if not self.machine.is_up or self.machine.life != self.life:
            raise OSError(errno.ENETDOWN, f"{self.machine.name} was cut off")

    async def addresses(self, host: str) -> Sequence[str]:
        return [host]

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        del address
        await trio.lowlevel.checkpoint()
        self.require_up()
        return await self.network.connect(self, host, port)

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        await trio.lowlevel.checkpoint()
        await self.network.serve(self, handler, host, port, task_status)


async def _handle(handler: StreamHandler, stream: SimulatedStream) -> None:
    try:
        await handler(stream)
    except Exception:  # noqa: BLE001  one connection's fault must not end the others
        _log.exception("connection handler failed")
    finally:
        stream.close()


def _see_nothing(source: str, destination: str, connection_id: int, chunk: bytes) -> None:
    """Ignore the handshake of a connection."""
