"""A server of the simulated ZooKeeper ensemble: its tree, how far it has got, its connections and sessions."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import trio
from attrs import Factory, define, field, frozen

from simulator.store.agenda import Agenda, Call
from simulator.store.host import Host
from transport.store.memory import Watches
from transport.store.protocol import Op, WatchFired
from transport.store.tree import Commit, Tree

Look = Callable[[Tree, Watches], Any]
"""Reads of a tree, and arms watches."""

Answer = Callable[[Any, int], object]
"""Takes what came out of a request, and the zxid that the server had got to."""


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


@define(eq=False)
class Session:
    """A session as the ensemble knows it: on the connection that it used last."""

    id: int
    host: str
    timeout: float
    connection: Connection
    has_ended: bool = False
    is_heard: bool = True
    silences: int = 0


@frozen
class Entry:
    """A commit, as the leader sends it to its followers; with `ends`, the end of that session."""

    at: float
    ops: Sequence[Op]
    session_id: int
    now_ms: int
    ends: Session | None


@frozen
class _Request:
    """A request that waits until its server has got to `zxid`, and to those before it."""

    zxid: int
    look: Look
    answer: Answer


@define(eq=False)
class _Served:
    connection: Connection
    session: Session
    watches: Watches = Factory(Watches)
    requests: deque[_Request] = Factory(deque)


@define(eq=False)
class Server:
    """One server. The leader is one that never lags: its tree is what is durable.

    Each session's answers and events leave in the order in which this server's tree came to them: an event before the
    answer that shows what it announces, and a write's answer once the write is in this tree.
    """

    agenda: Agenda
    tree: Tree = Factory(Tree)
    _lag: float = 0.0
    _behind: deque[Entry] = Factory(deque)
    _served: dict[Session, _Served] = field(factory=dict)

    @property
    def lag(self) -> float:
        """How many seconds after the leader this server comes to a commit."""
        return self._lag

    @lag.setter
    def lag(self, seconds: float) -> None:
        self._lag = seconds
        self._catch_up()

    def serve(self, session: Session) -> None:
        """Serve a session on its present connection. It begins without watches."""
        self._served[session] = _Served(session.connection, session)

    def forget(self, connection: Connection) -> None:
        """Serve a connection no more."""
        for session, served in list(self._served.items()):
            if served.connection is connection:
                del self._served[session]

    def ask(self, session: Session, zxid: int, look: Look, answer: Answer) -> None:
        """Do what `look` does in turn, once this server has got to `zxid`, and send what comes out of it.

        What a session asks that is not served here has no answer.
        """
        served = self._served.get(session)
        if served is not None:
            served.requests.append(_Request(zxid, look, answer))
            self._answer(served)

    def publish(self, commit: Commit, ends: Session | None) -> None:
        """Tell the sessions of a commit that this server's tree has just come to, and answer who waited for it."""
        for _, served in sorted((session.id, served) for session, served in self._served.items()):
            for change in commit.changes:
                if served.watches.fire(change):
                    connection = served.connection
                    connection.to_host(partial(connection.client.fired, change, self.tree.zxid))
            self._answer(served)
        if ends is not None and ends in self._served:
            connection = self._served.pop(ends).connection
            connection.to_host(partial(connection.client.lost, connection))

    def follow(self, entry: Entry) -> None:
        """Take a commit of the leader, for when its time comes."""
        self._behind.append(entry)
        if len(self._behind) == 1:
            self._catch_up()

    def _catch_up(self) -> None:
        while self._behind and self._behind[0].at + self._lag <= trio.current_time():
            entry = self._behind.popleft()
            self.publish(self.tree.multi(entry.ops, entry.session_id, entry.now_ms), entry.ends)
        if self._behind:
            self.agenda.at(self._behind[0].at + self._lag, self._catch_up)

    def _answer(self, served: _Served) -> None:
        while served.requests and served.requests[0].zxid <= self.tree.zxid:
            request = served.requests.popleft()
            outcome = request.look(self.tree, served.watches)
            served.connection.to_host(partial(request.answer, outcome, self.tree.zxid))
