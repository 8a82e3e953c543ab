"""The metadata store in memory: ZooKeeper's semantics without ZooKeeper, and its failures on demand.

For tests, simulation, and machines without Java. Nothing happens by itself: the clock is injected, connections break
and sessions expire on request, and the same calls cause the same events in the same order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

import trio

from transport.store.acls import Acl
from transport.store.known import known_after
from transport.store.listeners import Listeners
from transport.store.protocol import (
    Committed,
    ConnectionLost,
    Delete,
    Op,
    SessionChanged,
    SessionExpired,
    SessionState,
    StoreEvent,
    WatchFired,
    WatchKind,
    Znode,
)
from transport.store.requests import require_sendable
from transport.store.tree import Tree


class Watches:
    """The watches of a session. Each fires once."""

    def __init__(self) -> None:
        self._nodes: set[str] = set()
        self._children: set[str] = set()

    def arm_nodes(self, paths: Iterable[str]) -> None:
        """Watch the data and the existence of nodes."""
        self._nodes.update(paths)

    def arm_children(self, paths: Iterable[str]) -> None:
        """Watch the children of nodes."""
        self._children.update(paths)

    def arm_since(self, zxid: int, paths: Iterable[str], tree: Tree) -> list[WatchFired]:
        """Watch the data of nodes, as SetWatches does; return the events of those that changed after `zxid`."""
        found = [(path, tree.read(path)) for path in paths]
        self.arm_nodes(path for path, znode in found if znode is not None and znode.stat.mzxid <= zxid)
        return [
            WatchFired(path, WatchKind.DELETED if znode is None else WatchKind.CHANGED)
            for path, znode in found
            if znode is None or znode.stat.mzxid > zxid
        ]

    def fire(self, change: WatchFired) -> bool:
        """Spend the watches that see `change`. Return whether there were any."""
        path, kind = change.path, change.kind
        sees_node = path in self._nodes and kind is not WatchKind.CHILDREN
        sees_children = path in self._children and kind in (WatchKind.CHILDREN, WatchKind.DELETED)
        # A deleted znode may have a watch of each kind; both are spent by one event.
        if sees_node:
            self._nodes.remove(path)
        if sees_children:
            self._children.remove(path)
        return sees_node or sees_children

    def clear(self) -> None:
        """Remove all watches."""
        self._nodes.clear()
        self._children.clear()


class MemoryZooKeeper:
    """The tree and its sessions. `clock` returns milliseconds since 1970.

    Events are delivered when the change that causes them is complete, to the sessions in order of their ids, and to
    each in order of the operations. Events that a listener causes follow those that are being delivered.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.tree = Tree()
        self._clock = clock
        self._sessions: dict[int, MemoryStore] = {}
        self._ended: set[int] = set()
        self._last_session_id = 0
        self._undelivered: deque[tuple[MemoryStore, StoreEvent]] = deque()
        self._delivering = False

    @asynccontextmanager
    async def session(self) -> AsyncIterator[MemoryStore]:
        """Hold a session for the block; its ephemerals are deleted at the end."""
        store = MemoryStore(self)
        self._begin(store)
        try:
            yield store
        finally:
            if store.abandoned:
                store.change(SessionState.CLOSED)
            else:
                self._end(store.session_id)
                self._forget(store.session_id)
                self._change(store, SessionState.CLOSED)

    def disconnect(self, session_id: int) -> None:
        """Break a session's connection. Its watches are lost, and requests raise ConnectionLost until `reconnect`."""
        store = self._sessions[session_id]
        if store.state is SessionState.CONNECTED:
            self._change(store, SessionState.SUSPENDED)

    def reconnect(self, session_id: int) -> None:
        """Restore a session's connection, or start a new session for its holder if it has expired."""
        store = self._sessions[session_id]
        store.abandoned = False
        if session_id not in self._ended:
            self._change(store, SessionState.CONNECTED)
            return
        self._change(store, SessionState.EXPIRED)
        self._forget(session_id)
        self._begin(store)

    def expire(self, session_id: int, *, reconnect: bool = True) -> None:
        """End a session as its timeout does, and delete its ephemerals under one zxid.

        Its holder sees EXPIRED and, with `reconnect`, CONNECTED with a new session id. A disconnected holder learns of
        the expiry only on `reconnect`, as with ZooKeeper.
        """
        store = self._sessions[session_id]
        self._end(session_id)
        if store.state is SessionState.CLOSED:
            self._forget(session_id)
        elif store.state is not SessionState.SUSPENDED:
            self._change(store, SessionState.EXPIRED)
            if reconnect:
                self.reconnect(session_id)

    def abandon(self, session_id: int) -> None:
        """Leave a session open and silent, like a process that crashes or is paused. Its holder gets no event.

        Its ephemerals stay until `expire`, even after the end of its block. Requests of the holder raise
        ConnectionLost, and `reconnect` tells it the state of the session.
        """
        store = self._sessions[session_id]
        store.abandoned = True
        store.change(SessionState.SUSPENDED)

    def commit(self, ops: Sequence[Op], session_id: int) -> Committed:
        """Apply all of `ops` or none, in the name of a session, and deliver the events of all sessions' watches."""
        commit = self.tree.multi(ops, session_id, self._clock())
        for _, store in sorted(self._sessions.items()):
            self._undelivered.extend((store, change) for change in commit.changes if store.watches.fire(change))
        self._deliver()
        return commit.committed

    def _begin(self, store: MemoryStore) -> None:
        self._last_session_id += 1
        store.session_id = self._last_session_id
        self._sessions[store.session_id] = store
        self._change(store, SessionState.CONNECTED)

    def _end(self, session_id: int) -> None:
        self._ended.add(session_id)
        self._sessions[session_id].watches.clear()
        ephemerals = self.tree.ephemerals(session_id)
        if ephemerals:
            self.commit([Delete(path) for path in ephemerals], session_id)

    def _forget(self, session_id: int) -> None:
        del self._sessions[session_id]
        self._ended.discard(session_id)

    def _change(self, store: MemoryStore, state: SessionState) -> None:
        if store.state is not state:
            store.change(state)
            self._undelivered.append((store, SessionChanged(state)))
            self._deliver()

    def _deliver(self) -> None:
        # A listener changed something: the loop that called it delivers the new events as well.
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                store, event = self._undelivered.popleft()
                store.listeners.notify(event)
        finally:
            self._delivering = False


class MemoryStore:
    """A `MetadataStore` with a session of its own. Open one with `MemoryZooKeeper.session`."""

    def __init__(self, zookeeper: MemoryZooKeeper) -> None:
        self.session_id = 0
        self.state = SessionState.SUSPENDED
        self.listeners = Listeners()
        self.watches = Watches()
        self.abandoned = False
        self._zookeeper = zookeeper
        self._tree = zookeeper.tree
        self._changes = 0

    def subscribe(self, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Call `listener` with every later event. Return a function that unsubscribes it."""
        return self.listeners.subscribe(listener)

    def change(self, state: SessionState) -> None:
        """Set the new state of the session (for `MemoryZooKeeper`)."""
        self.state = state
        self.watches.clear()
        self._changes += 1

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes, and arm their watches; see `MetadataStore.read`."""
        await self._arrive()
        if watch:
            self.watches.arm_nodes(paths)
        return [self._tree.read(path) for path in paths]

    async def read_ahead(self, paths: Sequence[str]) -> None:
        """Do nothing: nobody waits for a store in memory."""

    async def children(self, paths: Sequence[str], *, watch: bool = False) -> list[list[str] | None]:
        """List many znodes' children, and arm their watches; see `MetadataStore.children`."""
        await self._arrive()
        found = [self._tree.children(path) for path in paths]
        if watch:
            self.watches.arm_children(path for path, names in zip(paths, found, strict=True) if names is not None)
        return found

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Apply all of `ops` or none; see `MetadataStore.multi`.

        A listener that breaks the connection when it sees the commit loses the answer: the call raises ConnectionLost,
        although the operations took effect.
        """
        require_sendable(ops)
        connection = await self._arrive()
        kept = known_after(ops, known)
        with self.listeners.holding(kept) as held:
            committed = self._zookeeper.commit(ops, self.session_id)
            self._require(connection)
            held.clear()
        if kept:
            await self._watch_since(committed.zxid, kept)
        return committed

    async def _watch_since(self, zxid: int, paths: Collection[str]) -> None:
        with suppress(ConnectionLost, SessionExpired):
            await self._arrive()
            for event in self.watches.arm_since(zxid, paths, self._tree):
                self.listeners.notify(event)

    async def acls(self, paths: Sequence[str]) -> list[Acl | None]:
        """Return the ACLs of znodes; see `MetadataStore.acls`."""
        await self._arrive()
        return [self._tree.acl(path) for path in paths]

    def protect(self, *, set_acl: bool) -> None:
        """Ignore it: nobody has an identity here."""

    async def _arrive(self) -> tuple[int, int]:
        """Yield to other tasks, and return the session and the connection over which the answer must return."""
        connection = (self.session_id, self._changes)
        await trio.lowlevel.checkpoint()
        self._require(connection)
        return connection

    def _require(self, connection: tuple[int, int]) -> None:
        if self.state in (SessionState.EXPIRED, SessionState.CLOSED) or self.session_id != connection[0]:
            raise SessionExpired("the session is gone")
        if self.state is SessionState.SUSPENDED or self._changes != connection[1]:
            raise ConnectionLost("the connection broke")
