"""The metadata store on ZooKeeper, in bulk: MultiRead, SetWatches and multi over one kazoo session."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, TypeVar

import trio
from msgspec.structs import replace

from transport import addresses
from transport.addresses import Address
from transport.store.acls import Acl, GetAcl
from transport.store.kazoo_session import KazooReply, KazooRequest, KazooSession
from transport.store.known import known_after
from transport.store.limits import DEFAULT_LIMITS, RequestLimits
from transport.store.protocol import (
    Committed,
    Conflict,
    ConnectionLost,
    Op,
    Rejected,
    Result,
    SessionExpired,
    SessionState,
    StoreError,
    StoreEvent,
    StoreUnavailable,
    Unanswerable,
    WatchFired,
    Znode,
    ensure_paths,
)
from transport.store.reachability import until_answered
from transport.store.requests import (
    CONFLICT_REASONS,
    CREATOR_ALL_ACL,
    CREATOR_ALL_READ_ACL,
    LASTING_ERRORS,
    OPEN_ACL,
    LastZxid,
    ListMany,
    Multi,
    ReadMany,
    RefusedOp,
    SetWatches,
    describe,
    require_sendable,
)
from transport.store.security import OPEN, ZooKeeperSecurity

PIPELINE: Final = 4
"""The number of slices of one read in flight at a time."""


_OPEN_ROOT: Final = "/consumers"
_SENSITIVE_ROOTS: Final = ("/config/brokers", "/config/users", "/delegation_token")

T = TypeVar("T")
BulkRead = Callable[[Sequence[str]], KazooRequest[list[T]]]
Watches = Callable[[int, Sequence[str], Sequence[T], RequestLimits], Iterator[SetWatches]]


class ZooKeeperStore:
    """A `MetadataStore` below `chroot` of a session. Open one with `open_zookeeper`."""

    def __init__(
        self,
        session: KazooSession,
        chroot: str = "",
        *,
        set_acl: bool = False,
        limits: RequestLimits = DEFAULT_LIMITS,
    ) -> None:
        self._session = session
        self._limits = limits
        self._chroot = chroot
        self._begun: tuple[Sequence[str], list[KazooReply[list[Znode | None]]]] | None = None
        self.protect(set_acl=set_acl)

    def below(self, chroot: str) -> ZooKeeperStore:
        """Return the store below a chroot in the same session."""
        return ZooKeeperStore(self._session, self._chroot + chroot, set_acl=self._set_acl, limits=self._limits)

    @property
    def session_id(self) -> int:
        """The id of the current session."""
        return self._session.session_id

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self._session.state

    def subscribe(self, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Call `listener` with every later event. Return a function that unsubscribes it."""
        return self._session.listeners.subscribe(lambda event: listener(self._below(event)))

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes, and arm their watches; see `MetadataStore.read`."""
        begun, self._begun = self._begun, None
        if begun is None or watch or begun[0] != paths:
            return await self._bulk(ReadMany, paths, _node_watches if watch else None)
        await trio.lowlevel.checkpoint()
        return [znode for reply in begun[1] for znode in await reply.wait()]

    async def read_ahead(self, paths: Sequence[str]) -> None:
        """Begin to read znodes; see `MetadataStore.read_ahead`."""
        requests = map(ReadMany, slices(self._all_absolute(paths), self._limits))
        self._begun = paths, [await self._session.send(request) for request in requests]

    async def children(self, paths: Sequence[str], *, watch: bool = False) -> list[list[str] | None]:
        """List many znodes' children, and arm their watches; see `MetadataStore.children`."""
        return await self._bulk(ListMany, paths, _child_watches if watch else None)

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Apply all of `ops` or none; see `MetadataStore.multi`."""
        require_sendable(ops, self._limits)
        full = [replace(op, path=self._absolute(op.path)) for op in ops] if self._chroot else ops
        kept = known_after(full, {self._absolute(path) for path in known})
        with self._session.listeners.holding(kept) as held:
            (outcome,) = await self._request(Multi(full, self._acl))
            if isinstance(outcome, RefusedOp):
                raise _conflict(ops[outcome.index].path, outcome)
            held.clear()
        await self._watch_since(outcome.zxid, kept)
        return self._committed(outcome)

    async def _watch_since(self, zxid: int, paths: Collection[str]) -> None:
        """Watch znodes for what comes after `zxid`. Without a connection there are no watches, as SUSPENDED tells."""
        with suppress(ConnectionLost, SessionExpired, StoreUnavailable):
            for part in slices(list(paths), self._limits):
                await self._request(SetWatches(zxid, data=part))

    async def acls(self, paths: Sequence[str]) -> list[Acl | None]:
        """Return the ACLs of znodes; see `MetadataStore.acls`."""
        return [await self._acl_of(self._absolute(path)) for path in paths]

    async def _acl_of(self, path: str) -> Acl | None:
        try:
            return await self._request(GetAcl(path))
        except Unanswerable:
            return None

    def protect(self, *, set_acl: bool) -> None:
        """Decide who may change new znodes; see `MetadataStore.protect`."""
        self._set_acl = set_acl
        self._acl = self._closed_acl if set_acl else _open_acl

    def _committed(self, outcome: Committed) -> Committed:
        if not self._chroot:
            return outcome
        strip = len(self._chroot)

        def results() -> tuple[Result, ...]:
            return tuple([result[strip:] if isinstance(result, str) else result for result in outcome.results])

        return Committed(outcome.zxid, results)

    async def _bulk(self, request: BulkRead[T], paths: Sequence[str], watches: Watches[T] | None) -> list[T]:
        self._begun, full = None, self._all_absolute(paths)
        if watches is None:
            return await self._read(request, full)
        connection = self._session.connections
        # Watches relative to the zxid before the reads: a change during the reads fires, and an older change does not.
        before = await self._session.send(LastZxid())
        found = await self._read(request, full)
        await self._pipelined(watches(await before.wait(), full, found, self._limits))
        # The server forgets watches with the connection, so all of them must have been armed over one.
        if (self.state, self._session.connections) != (SessionState.CONNECTED, connection):
            raise ConnectionLost("the connection to ZooKeeper broke while watches were armed")
        return found

    async def _read(self, request: BulkRead[T], paths: Sequence[str]) -> list[T]:
        parts = await self._pipelined(map(request, slices(paths, self._limits)))
        return [item for part in parts for item in part]

    async def _pipelined(self, requests: Iterable[KazooRequest[T]]) -> list[T]:
        await trio.lowlevel.checkpoint()
        under_way: deque[KazooReply[T]] = deque()
        replies = []
        for request in requests:
            if len(under_way) == PIPELINE:
                replies.append(await under_way.popleft().wait())
            under_way.append(await self._session.send(request))
        return replies + [await reply.wait() for reply in under_way]

    async def _request(self, request: KazooRequest[T]) -> T:
        self._begun = None
        return await (await self._session.send(request)).wait()

    def _all_absolute(self, paths: Sequence[str]) -> Sequence[str]:
        return [self._absolute(path) for path in paths] if self._chroot else paths

    def _absolute(self, path: str) -> str:
        return (self._chroot + path if path != "/" else self._chroot) or "/"

    def _closed_acl(self, path: str) -> bytes:
        below = path[len(self._chroot) :]
        if below.startswith(_OPEN_ROOT):
            return OPEN_ACL
        return CREATOR_ALL_ACL if below.startswith(_SENSITIVE_ROOTS) else CREATOR_ALL_READ_ACL

    def _below(self, event: StoreEvent) -> StoreEvent:
        if isinstance(event, WatchFired):
            return WatchFired(event.path[len(self._chroot) :] or "/", event.kind)
        return event


@asynccontextmanager
async def open_zookeeper(
    hosts: str,
    *,
    session_timeout_ms: int = 18_000,
    connect_timeout: float = 15,
    waits: bool = False,
    security: ZooKeeperSecurity = OPEN,
    limits: RequestLimits = DEFAULT_LIMITS,
) -> AsyncIterator[ZooKeeperStore]:
    """Hold a session with the ZooKeeper at `hosts` for the block.

    Args:
        hosts: "127.0.0.1:2181,127.0.0.1:2182/chroot"; the chroot is created if missing.
        session_timeout_ms: The requested timeout; the server may bound it.
        connect_timeout: Seconds to wait for a server that accepts connections but does not answer.
        waits: Whether to wait that long (`math.inf`, for example) for unreachable servers as well, as services do.
        security: Our identity, the ACLs of new znodes, and TLS.
        limits: The limits of requests.

    Raises:
        StoreUnavailable: No server could be reached or trusted, none opened a session in time, or it is too old.
    """
    servers, chroot = parse_hosts(hosts)
    session = KazooSession(servers, session_timeout_ms, security)
    try:
        await session.connect(connect_timeout, waits=waits)
        root = ZooKeeperStore(session, set_acl=security.set_acl, limits=limits)
        await (until_answered(partial(_prepare, root, chroot)) if waits else _prepare(root, chroot))
        yield root.below(chroot)
    finally:
        await session.close()


async def _prepare(root: ZooKeeperStore, chroot: str) -> None:
    await root.read(["/"])  # fails on a server without MultiRead
    if chroot:
        await ensure_paths(root, [chroot])


def parse_hosts(hosts: str) -> tuple[list[Address], str]:
    """Split "host:port,host:port/chroot" into servers and chroot ("" for none).

    Raises:
        StoreUnavailable: The text does not have this form.
    """
    servers, _, chroot = hosts.partition("/")
    try:
        found = addresses.parse_list(servers)
    except ValueError:
        text = f"{hosts!r} does not name a ZooKeeper: write host:port[,host:port...][/chroot]"
        raise StoreUnavailable(text) from None
    path = chroot.strip("/")
    return found, f"/{path}" if path else ""


def _open_acl(_path: str) -> bytes:
    return OPEN_ACL


def slices(paths: Sequence[str], limits: RequestLimits = DEFAULT_LIMITS) -> Iterator[Sequence[str]]:
    """Split the paths of a bulk read into slices that fit into one request each."""
    for start in range(0, len(paths), limits.paths):
        yield from _halved(paths[start : start + limits.paths], limits.characters)


def _halved(paths: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    if len(paths) > 1 and sum(map(len, paths)) > most:
        middle = len(paths) // 2
        yield from _halved(paths[:middle], most)
        yield from _halved(paths[middle:], most)
    else:
        yield paths


def _node_watches(
    zxid: int, paths: Sequence[str], found: Sequence[Znode | None], limits: RequestLimits
) -> Iterator[SetWatches]:
    both = list(zip(paths, found, strict=True))
    existing = [path for path, znode in both if znode is not None]
    missing = [path for path, znode in both if znode is None]
    for part in slices(existing, limits):
        yield SetWatches(zxid, data=part)
    for part in slices(missing, limits):
        yield SetWatches(zxid, exist=part)


def _child_watches(
    zxid: int, paths: Sequence[str], found: Sequence[list[str] | None], limits: RequestLimits
) -> Iterator[SetWatches]:
    existing = [path for path, names in zip(paths, found, strict=True) if names is not None]
    for part in slices(existing, limits):
        yield SetWatches(zxid, children=part)


def _conflict(path: str, refused: RefusedOp) -> StoreError:
    reason = CONFLICT_REASONS.get(refused.code)
    if reason is not None:
        return Conflict(refused.index, path, reason)
    text = describe(path, refused.code)
    return Rejected(refused.index, path, text) if refused.code in LASTING_ERRORS else StoreError(text)
