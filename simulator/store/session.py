"""A session with the simulated ZooKeeper ensemble, as its holder sees it: the counterpart of `ZooKeeperStore`."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import trio
from attrs import Factory, define, field

from simulator.store.agenda import Agenda
from simulator.store.host import StoreHost
from simulator.store.quorum import Quorum
from simulator.store.server import Answer, EnsembleServer, ServerConnection, Session
from transport.store.acls import Acl
from transport.store.kazoo_session import CLOSE_SECONDS, RECONNECT_SECONDS
from transport.store.known import known_after
from transport.store.limits import DEFAULT_LIMITS, RequestLimits
from transport.store.listeners import Listeners
from transport.store.memory import Watches
from transport.store.protocol import (
    Committed,
    ConnectionLost,
    Op,
    SessionChanged,
    SessionExpired,
    SessionState,
    StoreError,
    StoreEvent,
    WatchFired,
    Znode,
)
from transport.store.requests import require_sendable
from transport.store.tree import Tree

CUT_SHARE: Final = 0.125
"""Share of bulk reads sent as two requests; the real store does so only beyond a thousand paths."""

T = TypeVar("T")
Arrive = Callable[[Session, ServerConnection, Answer], object]
OnLook = Callable[[str, Sequence[str], Sequence[Any]], object]
"""Called with a host, the paths that it reads or lists, and the answers."""


@define(eq=False)
class _Reply:
    """The outcome of a request, once it is known."""

    landed: trio.Event = field(factory=trio.Event)
    outcome: Any = None

    def settle(self, outcome: object) -> None:
        self.outcome = outcome
        self.landed.set()


@define(eq=False)
class SimulatedStore:
    """A `MetadataStore` whose holder lives on a host. Open one with `SimulatedEnsemble.session`.

    It behaves like kazoo's client: a lost connection fails the pending requests, and connecting is retried at intervals
    of up to `RECONNECT_SECONDS`; a session without contact for its timeout is taken as expired.
    """

    _agenda: Agenda
    _rng: random.Random
    _quorum: Quorum
    _host: StoreHost
    _timeout: float
    session_id: int = 0
    state: SessionState = SessionState.SUSPENDED
    opened: trio.Event = field(factory=trio.Event)
    is_gone: bool = False
    connection: ServerConnection | None = None
    session: Session | None = None
    server: EnsembleServer = field(default=Factory(lambda store: store._quorum.servers[0], takes_self=True))  # noqa: SLF001
    on_look: OnLook | None = None
    limits: RequestLimits = DEFAULT_LIMITS
    _listeners: Listeners = field(factory=Listeners)
    _under_way: dict[_Reply, None] = field(factory=dict)
    _hung_up: trio.Event = field(factory=trio.Event)
    _seen: int = 0
    _changes: int = 0

    # --- what a MetadataStore does ------------------------------------------------------------------------------

    def subscribe(self, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Call `listener` with every later event; return a function that ends this."""
        return self._listeners.subscribe(listener)

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes, and arm their watches; see `MetadataStore.read`."""
        return await self._bulk(_read, paths, watch=watch)

    async def read_ahead(self, paths: Sequence[str]) -> None:
        """Do nothing: what is read later is no older."""

    async def children(self, paths: Sequence[str], *, watch: bool = False) -> list[list[str] | None]:
        """List many znodes' children, and arm their watches; see `MetadataStore.children`."""
        return await self._bulk(_list, paths, watch=watch)

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Apply all of `ops` or nothing; see `MetadataStore.multi`."""
        require_sendable(ops, self.limits)
        kept = known_after(ops, known)
        committed: Committed
        with self._listeners.holding(kept) as held:
            committed = await self._request(partial(self._quorum.multi, tuple(ops)), self._quorum.commit_seconds)
            held.clear()
        if kept:
            with suppress(ConnectionLost, SessionExpired):
                await self._request(partial(_watch_since, self._quorum, committed.zxid, kept))
        return committed

    async def acls(self, paths: Sequence[str]) -> list[Acl | None]:
        """Return the ACLs of znodes; see `MetadataStore.acls`."""
        found: list[Acl | None] = await self._request(partial(self._quorum.look, partial(_acls, paths)))
        return found

    def protect(self, *, set_acl: bool) -> None:
        """Ignore it: nobody has an identity here."""

    async def _bulk(
        self, look: Callable[[Sequence[str], bool, Tree, Watches], list[T]], paths: Sequence[str], *, watch: bool
    ) -> list[T]:
        found: list[T] = []
        for part in self._parts(paths):
            found += await self._request(partial(self._quorum.look, partial(look, part, watch)))
        if watch and self.state is not SessionState.CONNECTED:
            raise ConnectionLost("the connection to ZooKeeper broke while watches were armed")
        if self.on_look is not None:
            self.on_look(self._host.name, paths, found)
        return found

    def _parts(self, paths: Sequence[str]) -> Iterator[Sequence[str]]:
        middle = 0
        if len(paths) > 1 and self._rng.random() < CUT_SHARE:
            middle = self._rng.randrange(1, len(paths))
            yield paths[:middle]
        yield paths[middle:]

    async def _request(self, arrive: Arrive, later: float = 0.0) -> Any:  # noqa: ANN401 - what the request comes to
        await trio.lowlevel.checkpoint()
        if self.state is not SessionState.CONNECTED:
            raise _refusal(self.state)
        assert self.connection is not None
        assert self.session is not None
        reply = _Reply()
        self._under_way[reply] = None
        try:
            self.connection.to_server(partial(arrive, self.session, self.connection, partial(self._land, reply)), later)
            await reply.landed.wait()
        finally:
            self._under_way.pop(reply, None)
        if isinstance(reply.outcome, StoreError):
            raise reply.outcome
        return reply.outcome

    # --- what comes from the ensemble ---------------------------------------------------------------------------

    def fired(self, event: WatchFired, zxid: int) -> None:
        """Notify the listeners of the event of a watch."""
        if not self._is_over:
            self._seen = max(self._seen, zxid)
            self._listeners.notify(event)

    def lost(self, connection: ServerConnection) -> None:
        """Handle the loss of the connection, and try to connect again."""
        if self.connection is connection:
            self._hang_up()
            if self.state is SessionState.CONNECTED:
                self._change(SessionState.SUSPENDED)
            self.try_again()

    def _land(self, reply: _Reply, outcome: object, zxid: int) -> None:
        self._seen = max(self._seen, zxid)
        if reply in self._under_way:
            del self._under_way[reply]
            reply.settle(outcome)

    def _join(self, connection: ServerConnection, session: Session | None, zxid: int) -> None:
        if self.connection is not connection:
            return
        self.session = session
        # The session to resume has ended: report that, and begin a new one.
        if session is None:
            self._hang_up()
            self._change(SessionState.EXPIRED)
            self.connect()
        else:
            self._seen = max(self._seen, zxid)
            self._change(SessionState.CONNECTED)
            self.opened.set()

    # --- the holder's side of connections -----------------------------------------------------------------------

    def connect(self, server: EnsembleServer | None = None) -> None:
        """Ask `server`, or any, to resume or begin the session. Does nothing if none can be reached."""
        if self._is_over or self.connection is not None or not (self._host.reachable and self._quorum.is_up):
            return
        self.server = server or self._quorum.pick(self._seen)
        self.connection = connection = ServerConnection(self._agenda, self._rng, self._host, self, self.server)
        joined = partial(self._join, connection)
        if self.session is None:
            arrive = partial(self._quorum.begin, connection, self._timeout, joined)
        else:
            arrive = partial(self._quorum.resume, connection, self.session.id, joined)
        connection.to_server(arrive)

    def try_again(self) -> None:
        """Schedule another attempt to connect, which does nothing if there is a connection by then."""
        self._agenda.after(self._rng.uniform(0, RECONNECT_SECONDS), partial(self._host.take, self.connect))

    def vanish(self) -> None:
        """Treat the holder as dead: it gets no more notifications, and its actions have no effect."""
        self.is_gone = True
        if self.connection is not None:
            self._hang_up(spill=False)
        if self.state is not SessionState.CLOSED:
            self.state = SessionState.SUSPENDED
            self._give_up_requests()

    async def close(self) -> None:
        """End the session, and its ephemerals, if connected; takes at most `CLOSE_SECONDS`, even when cancelled."""
        is_connected = self.state is SessionState.CONNECTED
        self._change(SessionState.CLOSED)
        self.state = SessionState.CLOSED
        if is_connected and self.connection is not None and self.session is not None:
            self.connection.to_server(partial(self._quorum.close, self.session, self.connection))
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._hung_up.wait()
        if self.connection is not None:
            self._hang_up()

    @property
    def _is_over(self) -> bool:
        return self.is_gone or self.state is SessionState.CLOSED

    def _hang_up(self, *, spill: bool = True) -> None:
        assert self.connection is not None
        connection, self.connection = self.connection, None
        self._quorum.drop(connection, spill=spill)
        self._hung_up.set()

    def _change(self, state: SessionState) -> None:
        if self.state is state or self._is_over:
            return
        self.state = state
        self._changes += 1
        if state is SessionState.CONNECTED:
            assert self.session is not None
            self.session_id = self.session.id
            self._hung_up = trio.Event()
        else:
            self._give_up_requests()
        if state is SessionState.SUSPENDED:
            expire = partial(self._expire_unheard, self._changes)
            self._agenda.after(self._timeout, partial(self._host.take, expire))
        self._listeners.notify(SessionChanged(state))

    def _give_up_requests(self) -> None:
        for reply in self._under_way:
            reply.settle(_refusal(self.state))
        self._under_way.clear()

    def _expire_unheard(self, changes: int) -> None:
        if self._changes == changes:
            self._change(SessionState.EXPIRED)


def _read(paths: Sequence[str], watch: bool, tree: Tree, watches: Watches) -> list[Znode | None]:  # noqa: FBT001
    if watch:
        watches.arm_nodes(paths)
    return [tree.read(path) for path in paths]


def _list(paths: Sequence[str], watch: bool, tree: Tree, watches: Watches) -> list[list[str] | None]:  # noqa: FBT001
    found = [tree.children(path) for path in paths]
    if watch:
        watches.arm_children(path for path, names in zip(paths, found, strict=True) if names is not None)
    return found


def _watch_since(
    quorum: Quorum, zxid: int, paths: Collection[str], session: Session, connection: ServerConnection, answer: Answer
) -> None:
    def look(tree: Tree, watches: Watches) -> None:
        for event in watches.arm_since(zxid, paths, tree):
            connection.to_host(partial(connection.client.fired, event, tree.zxid))

    quorum.look(look, session, connection, answer)


def _acls(paths: Sequence[str], tree: Tree, _: Watches) -> list[Acl | None]:
    return [tree.acl(path) for path in paths]


def _refusal(state: SessionState) -> StoreError:
    if state is SessionState.SUSPENDED:
        return ConnectionLost("not connected to ZooKeeper")
    return SessionExpired(f"the session is {state.value}")
