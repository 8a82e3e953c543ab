"""Hosts of the simulation as the ZooKeeper ensemble sees them, and their connections with its servers."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

import trio
from attrs import Factory, define, frozen

from controller.simulation.agenda import Agenda, Call
from transport.store.protocol import WatchFired

if TYPE_CHECKING:
    from controller.simulation.server import Server

Moment = Literal["before", "after"]


@frozen
class Interruption:
    """What happens once, as a host's next multi arrives: before or right after it is done."""

    what: Callable[[], object]
    when: Moment


@define(eq=False)
class Host:
    """Where a session's holder lives. `latency` is what a message takes each way, in seconds, on average."""

    name: str
    latency: float
    reachable: bool = True
    frozen: bool = False
    interruption: Interruption | None = None
    _arrived: deque[Call] = Factory(deque)
    _leaving: deque[Call] = Factory(deque)

    def take(self, call: Call) -> None:
        """Let something happen in the host's process: now, or when it thaws."""
        if self.frozen:
            self._arrived.append(call)
        else:
            call()

    def leave(self, call: Call) -> None:
        """Let something leave the host's process: now, or when it thaws."""
        if self.frozen:
            self._leaving.append(call)
        else:
            call()

    def thaw(self) -> None:
        """Go on after a pause. What was sent meanwhile leaves before the process learns what came meanwhile."""
        self.frozen = False
        for waiting in (self._leaving, self._arrived):
            while waiting and not self.frozen:
                waiting.popleft()()

    def renew(self) -> None:
        """Forget the process that was here."""
        self.frozen = False
        self.interruption = None
        self._arrived.clear()
        self._leaving.clear()


class Client(Protocol):
    """Whose end of a connection is on a host."""

    def lost(self, connection: Connection) -> None:
        """Learn that the connection is gone."""

    def fired(self, event: WatchFired, zxid: int) -> None:
        """Learn what a watch saw, of a server that had got as far as `zxid`."""


class Connection:
    """A connection of a host with a server: what is sent arrives in order each way, after the host's latency."""

    def __init__(self, agenda: Agenda, rng: random.Random, host: Host, client: Client, server: Server) -> None:
        self.host = host
        self.client = client
        self.server = server
        self.is_open = True
        self._agenda = agenda
        self._rng = rng
        self._under_way = 0
        self._survivors = 0
        self._last_at_server = 0.0
        self._last_at_host = 0.0

    def to_server(self, call: Call) -> None:
        """Send what `call` does at the server."""
        self.host.leave(partial(self._leave, call))

    def to_host(self, call: Call) -> None:
        """Send what `call` does in the host's process."""
        if self.is_open:
            self._last_at_host = max(self._last_at_host, self._due())
            self._agenda.at(self._last_at_host, partial(self._reach_host, call))

    def drop(self, *, spill: bool) -> None:
        """Break. With `spill`, some of what is under way to the server still arrives; nothing reaches the host."""
        if self.is_open:
            self.is_open = False
            self._survivors = self._rng.randint(0, self._under_way) if spill and self._under_way else 0

    def _leave(self, call: Call) -> None:
        if self.is_open:
            self._under_way += 1
            self._last_at_server = max(self._last_at_server, self._due())
            self._agenda.at(self._last_at_server, partial(self._reach_server, call))

    def _due(self) -> float:
        latency = self.host.latency
        return trio.current_time() + (self._rng.uniform(0.5, 1.5) * latency if latency else 0.0)

    def _reach_server(self, call: Call) -> None:
        self._under_way -= 1
        if not self.is_open:
            if not self._survivors:
                return
            self._survivors -= 1
        call()

    def _reach_host(self, call: Call) -> None:
        if self.is_open:
            self.host.take(call)
