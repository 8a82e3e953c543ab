"""A server of the simulated ZooKeeper ensemble: its tree, its lag, its connections and sessions."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from attrs import Factory, define, field, frozen

from simulator.store.agenda import Agenda, Call
from simulator.store.host import StoreHost
from transport.store.memory import Watches
from transport.store.protocol import Op, WatchFired
from transport.store.tree import Commit, Tree

Look = Callable[[Tree, Watches], Any]
"""Reads a tree, and arms watches."""

Answer = Callable[[Any, int], object]
"""Takes the outcome of a request, and the zxid that the server had reached."""


class Client(Protocol):
    """The host's end of a connection."""

    def lost(self, connection: ServerConnection) -> None:
        """Handle the loss of the connection."""

    def fired(self, event: WatchFired, zxid: int) -> None:
        """Handle the event of a watch, from a server that had reached `zxid`."""


@define(eq=False)
class ServerConnection:
    """A connection of a host to a server: messages arrive in order each way, after the host's latency."""

    _agenda: Agenda
    _rng: random.Random
    host: StoreHost
    client: Client
    server: EnsembleServer
    is_open: bool = True
    _under_way: int = 0
    _survivors: int = 0
    _last_at_server: float = 0.0
    _last_at_host: float = 0.0

    def to_server(self, call: Call, later: float = 0.0) -> None:
        """Send a message whose arrival at the server makes `call`, so many seconds later than usual."""
        self.host.leave(partial(self._leave, call, later))

    def to_host(self, call: Call) -> None:
        """Send a message whose arrival in the host's process makes `call`."""
        if self.is_open:
            self._last_at_host = max(self._last_at_host, self._due())
            self._agenda.at(self._last_at_host, partial(self._reach_host, call))

    def drop(self, *, spill: bool) -> None:
        """Break. With `spill`, some messages in transit to the server still arrive; none reaches the host."""
        if self.is_open:
            self.is_open = False
            self._survivors = self._rng.randint(0, self._under_way) if spill and self._under_way else 0

    def _leave(self, call: Call, later: float) -> None:
        if self.is_open:
            self._under_way += 1
            self._last_at_server = max(self._last_at_server, self._due() + later)
            self._agenda.at(self._last_at_server, partial(self._reach_server, call))

    def _due(self) -> float:
        latency = self.host.latency
        return self._agenda.now() + (self._rng.uniform(0.5, 1.5) * latency if latency else 0.0)

    def _reach_server(self, call: Call) -> None:
        self._under_way -= 1
        # The connection broke while this was in transit: only the first survivors still arrive.
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
    """A session as the ensemble knows it, with its latest connection."""

    id: int
    host: str
    timeout: float
    connection: ServerConnection
    has_ended: bool = False
    is_heard: bool = True
    silences: int = 0


@frozen
class CommitEntry:
    """A commit, as the leader sends it to its followers; with `ends`, it ends that session."""

    at: float
    ops: Sequence[Op]
    session_id: int
    now_ms: int
    ends: Session | None


@frozen
class _Request:
    """A request that waits until its server has reached `zxid`, and for the requests before it."""

    zxid: int
    look: Look
    answer: Answer


@define(eq=False)
class _Served:
    connection: ServerConnection
    session: Session
    watches: Watches = Factory(Watches)
    requests: deque[_Request] = Factory(deque)


@define(eq=False)
class EnsembleServer:
    """One server. The leader never lags: its tree is the durable state.

    Each session's answers and events leave in the order of this server's commits: an event before an answer that shows
    the change it announces, and a write's answer once the write is in this tree.
    """

    agenda: Agenda
    tree: Tree = Factory(Tree)
    _lag: float = 0.0
    _behind: deque[CommitEntry] = Factory(deque)
    _served: dict[Session, _Served] = field(factory=dict)

    @property
    def lag(self) -> float:
        """Seconds between the leader's commit and this server's."""
        return self._lag

    @lag.setter
    def lag(self, seconds: float) -> None:
        self._lag = seconds
        self._catch_up()

    def serve(self, session: Session) -> None:
        """Serve a session on its current connection. It begins without watches."""
        self._served[session] = _Served(session.connection, session)

    def forget(self, connection: ServerConnection) -> None:
        """Stop serving a connection."""
        for session, served in list(self._served.items()):
            if served.connection is connection:
                del self._served[session]

    def ask(self, session: Session, zxid: int, look: Look, answer: Answer) -> None:
        """Run `look` in its turn, once this server has reached `zxid`, and send its result.

        A request of a session that is not served here gets no answer.
        """
        served = self._served.get(session)
        if served is not None:
            served.requests.append(_Request(zxid, look, answer))
            self._answer(served)

    def publish(self, commit: Commit, ends: Session | None) -> None:
        """Notify the sessions of a commit just applied to this tree, and answer the requests that waited for it."""
        for _, served in sorted((session.id, served) for session, served in self._served.items()):
            for change in commit.changes:
                if served.watches.fire(change):
                    connection = served.connection
                    connection.to_host(partial(connection.client.fired, change, self.tree.zxid))
            self._answer(served)
        if ends is not None and ends in self._served:
            connection = self._served.pop(ends).connection
            connection.to_host(partial(connection.client.lost, connection))

    def follow(self, entry: CommitEntry) -> None:
        """Receive a commit of the leader, to apply after the lag."""
        self._behind.append(entry)
        if len(self._behind) == 1:
            self._catch_up()

    def _catch_up(self) -> None:
        while self._behind and self._behind[0].at + self._lag <= self.agenda.now():
            entry = self._behind.popleft()
            commit = self.tree.multi(entry.ops, entry.session_id, entry.now_ms, is_permitted=True)
            self.publish(commit, entry.ends)
        if self._behind:
            self.agenda.at(self._behind[0].at + self._lag, self._catch_up)

    def _answer(self, served: _Served) -> None:
        while served.requests and served.requests[0].zxid <= self.tree.zxid:
            request = served.requests.popleft()
            outcome = request.look(self.tree, served.watches)
            served.connection.to_host(partial(request.answer, outcome, self.tree.zxid))
