"""The servers of the simulated ZooKeeper ensemble together: commits, and the start and end of sessions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import trio
from attrs import define, field

from simulator.store.agenda import Agenda
from simulator.store.host import StoreHost
from simulator.store.server import Answer, CommitEntry, EnsembleServer, Look, ServerConnection, Session
from transport.store.protocol import Committed, Delete, Op, StoreError
from transport.store.tree import Tree

NOBODY: Final = 0
"""The session id of commits made outside any session."""


OnCommit = Callable[[str, int, Sequence[Op], Committed], object]
"""Called with each commit of the leader, before any session is notified of it: host, session id, operations, outcome.

The host is "" for a commit that no host requested: the end of a session, which deletes its ephemerals, if any.
"""


@define(eq=False)
class Quorum:
    """The leader, which is the first server and makes all commits, and its followers.

    A silent session expires after its timeout, plus or minus a third: its holder's last ping is up to a third of the
    timeout old, and servers check at intervals of about a third.
    """

    servers: list[EnsembleServer]
    _agenda: Agenda
    _rng: random.Random
    _clock_ms: Callable[[], int]
    _on_commit: OnCommit
    commit_seconds: float = 0.0
    """Additional seconds that a commit requested by a client takes."""

    is_up: bool = field(default=True, init=False)
    _sessions: dict[int, Session] = field(factory=dict)
    _last_session_id: int = NOBODY

    @property
    def tree(self) -> Tree:
        """The leader's tree: the durable state."""
        return self.servers[0].tree

    def session(self, session_id: int) -> Session | None:
        """Return a session, or None if it has ended."""
        return self._sessions.get(session_id)

    def pick(self, seen: int) -> EnsembleServer:
        """Pick a server for a client that has seen the tree as of zxid `seen`, excluding servers behind it."""
        return self._rng.choice([server for server in self.servers if server.tree.zxid >= seen])

    def commit(self, host: str, session_id: int, ops: Sequence[Op], ends: Session | None = None) -> Committed:
        """Apply all of `ops` or nothing, and replicate it. Raises Conflict, or StoreError for an invalid request."""
        now_ms = self._clock_ms()
        leader, *followers = self.servers
        commit = leader.tree.multi(ops, session_id, now_ms)
        self._on_commit(host, session_id, ops, commit.committed)
        leader.publish(commit, ends)
        for follower in followers:
            follower.follow(CommitEntry(trio.current_time(), ops, session_id, now_ms, ends))
        return commit.committed

    # --- what arrives from clients ------------------------------------------------------------------------------

    def begin(self, connection: ServerConnection, timeout: float, answer: Answer) -> None:
        """Begin a session, and answer with it once its server has applied every earlier commit."""
        if connection.is_open and self.is_up:
            self._last_session_id += 1
            session = Session(self._last_session_id, connection.host.name, timeout, connection)
            self._sessions[session.id] = session
            connection.server.serve(session)
            self.listen(connection.host)
            connection.server.ask(session, self.tree.zxid, lambda *_: session, answer)

    def resume(self, connection: ServerConnection, session_id: int, answer: Answer) -> None:
        """Resume a session on another connection, and answer with it, or with None if it has ended."""
        if not connection.is_open or not self.is_up:
            return
        session = self._sessions.get(session_id)
        if session is None:
            connection.to_host(partial(answer, None, 0))
            return
        self.drop(session.connection)
        session.connection = connection
        connection.server.serve(session)
        self.listen(connection.host)
        connection.server.ask(session, 0, lambda *_: session, answer)

    def look(self, look: Look, session: Session, connection: ServerConnection, answer: Answer) -> None:
        """Read, arm watches, and answer with the result.

        A late request on a broken connection is dropped: its watches would belong to the next connection.
        """
        if session.connection is connection:
            connection.server.ask(session, 0, look, answer)

    def multi(self, ops: Sequence[Op], session: Session, connection: ServerConnection, answer: Answer) -> None:
        """Apply all of `ops` or nothing, and answer with the outcome once the session's server has applied it.

        The request of a session that has ended or moved to another server is dropped.
        """
        if self._is_served(session, connection.server) and self._passes(session, "before", ops):
            outcome: Committed | StoreError
            try:
                outcome = self.commit(session.host, session.id, ops)
            except StoreError as error:
                outcome = error
            zxid = self.tree.zxid
            self._passes(session, "after", ops)
            connection.server.ask(session, zxid, lambda *_: outcome, answer)

    def close(self, session: Session, connection: ServerConnection) -> None:
        """End a session at its holder's request."""
        if self._is_served(session, connection.server):
            self.end(session)

    def _is_served(self, session: Session, server: EnsembleServer) -> bool:
        return self.is_up and not session.has_ended and session.connection.server is server

    def _passes(self, session: Session, moment: str, ops: Sequence[Op]) -> bool:
        """Make the interruption due at this moment of a multi; return whether the request is still valid."""
        host = session.connection.host
        if host.interruption is None or host.interruption.when != moment or not host.interruption.concerns(ops):
            return True
        connection, was_open = session.connection, session.connection.is_open
        interruption, host.interruption = host.interruption, None
        interruption.what()
        return not session.has_ended and connection.is_open == was_open

    # --- the loss of the leader ---------------------------------------------------------------------------------

    def fall(self) -> None:
        """Lose the leader: no request that arrives from now on has an effect, and no session expires."""
        self.is_up = False

    def rise(self) -> None:
        """Have a leader again. It knows every commit, but not since when a session has been silent."""
        self.is_up = True
        for session in self._sessions.values():
            if not session.is_heard:
                self._await_silence(session)

    # --- the end of connections and sessions --------------------------------------------------------------------

    def drop(self, connection: ServerConnection, *, spill: bool = True) -> None:
        """Break a connection: its watches are removed, and its session falls silent."""
        connection.drop(spill=spill)
        for server in self.servers:
            server.forget(connection)
        self.listen(connection.host)

    def listen(self, host: StoreHost) -> None:
        """Update which sessions of a host are heard. A session that falls silent expires unless it is heard in time."""
        for session in self._sessions.values():
            if session.connection.host is host:
                is_heard = session.connection.is_open and (host.beats or not host.frozen)
                if session.is_heard and not is_heard:
                    self._await_silence(session)
                session.is_heard = is_heard

    def _await_silence(self, session: Session) -> None:
        """Set a new timer for a silent session; the number makes the timers of earlier silences void."""
        session.silences += 1
        delay = session.timeout * self._rng.uniform(2 / 3, 4 / 3)
        self._agenda.after(delay, partial(self._time_out, session, session.silences))

    def end(self, session: Session) -> None:
        """End a session and delete its ephemerals, in one commit."""
        if not session.has_ended:
            session.has_ended = True
            del self._sessions[session.id]
            self.commit("", session.id, [Delete(path) for path in self.tree.ephemerals(session.id)], session)

    def _time_out(self, session: Session, silences: int) -> None:
        if self.is_up and not session.is_heard and session.silences == silences:
            self.end(session)
