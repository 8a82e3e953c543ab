"""The interface of a metadata store: znodes that are read and written in bulk.

The semantics are ZooKeeper's: versions, czxids, ephemerals bound to a session, one-shot watches, and atomic multis,
which roll back as a whole and name only their first conflict. Two implementations pass the same contract tests:
`transport.store.zookeeper.ZooKeeperStore` and `transport.store.memory.MemoryStore`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Final, Protocol

from attrs import frozen
from msgspec import Struct

from transport.store.acls import Acl

ANY_VERSION: Final = -1
UNREADABLE: Final = b"\0unreadable\0"
"""The data of a znode that its ACL does not let us read. No format decodes it."""


class StoreError(Exception):
    """A request to the metadata store did not succeed."""


class ConnectionLost(StoreError):
    """The connection broke while a request was in flight. It is unknown whether it took effect."""


class SessionExpired(StoreError):
    """The session has ended, and its ephemerals and watches are gone."""


class Unanswerable(StoreError):
    """A znode is missing or closed to us, and the request was about nothing else."""


class StoreUnavailable(StoreError):
    """No usable server could be reached; the message names the address and says what to do."""


class ConflictReason(Enum):
    """The reason why an operation of a multi was refused."""

    BAD_VERSION = "the version differs"
    NO_NODE = "the node does not exist"
    NODE_EXISTS = "the node exists"
    NOT_EMPTY = "the node has children"


class Conflict(StoreError):
    """A multi was rolled back; `index` is that of its first refused operation."""

    def __init__(self, index: int, path: str, reason: ConflictReason) -> None:
        super().__init__(f"{path}: {reason.value}")
        self.index = index
        self.path = path
        self.reason = reason


class Rejected(StoreError):
    """A multi was rolled back, and no retry would help. `index` is that of the operation at fault.

    Either an ACL forbids the operation, or such a znode is impossible.
    """

    def __init__(self, index: int, path: str, fault: str) -> None:
        super().__init__(fault)
        self.index = index
        self.path = path


class Stat(Struct, frozen=True, gc=False):
    """A znode's metadata. Zxids order all changes of the store; times are in ms since 1970."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    ephemeral_owner: int = 0


class Znode(Struct, frozen=True, gc=False):
    """A znode as it was read: its data and its metadata."""

    data: bytes
    stat: Stat


FORBIDDEN: Final = Znode(UNREADABLE, Stat(0, 0, 0, 0, ANY_VERSION))
"""A znode that exists, but that its ACL does not let us read."""


class Unlisted(list[str]):
    """The children of a znode whose ACL does not let us list them: always empty, though some may exist."""


class Create(Struct, frozen=True, gc=False):
    """Create a znode, whose parent must exist. With `sequence`, ten digits are appended to `path`."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


class Set(Struct, frozen=True, gc=False):
    """Replace the data of a znode whose dataVersion is `version` (or `ANY_VERSION`)."""

    path: str
    data: bytes
    version: int


class Delete(Struct, frozen=True, gc=False):
    """Delete a childless znode whose dataVersion is `version` (or `ANY_VERSION`)."""

    path: str
    version: int = ANY_VERSION


class Check(Struct, frozen=True, gc=False):
    """Refuse the multi unless the znode exists with dataVersion `version`. This fences a controller."""

    path: str
    version: int


Op = Create | Set | Delete | Check


def write_over(found: Znode | None, path: str, data: bytes) -> Create | Set:
    """Return the write that gives a znode this data, unless it has changed since it was `found`, or not found."""
    return Create(path, data) if found is None else Set(path, data, found.stat.version)


Result = str | Stat | None
"""The result of an operation in a multi: the path of a Create, the Stat of a Set, else None."""


@frozen
class Committed:
    """A multi that took effect. Its results are decoded when somebody asks for them."""

    zxid: int
    _results: Callable[[], tuple[Result, ...]]

    @property
    def results(self) -> tuple[Result, ...]:
        """The result of each operation."""
        return self._results()


class SessionState(Enum):
    """The state of a store's session as its own process knows it."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    CLOSED = "closed"


class WatchKind(Enum):
    """The change that a watch saw: of a znode's existence, data or children."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


@frozen
class WatchFired:
    """A watched znode changed. The event says where to look and carries no data; the watch is spent."""

    path: str
    kind: WatchKind


@frozen
class SessionChanged:
    """The session's state changed. SUSPENDED removes all watches: read again to arm them.

    The server reports EXPIRED, or the client assumes it when it has been SUSPENDED for the session's timeout. The next
    CONNECTED comes with a new `session_id`, or with the old one if the server had kept the session.
    """

    state: SessionState


StoreEvent = WatchFired | SessionChanged


class ReadableStore(Protocol):
    """The part of a metadata store that is read without watches; see `MetadataStore`."""

    async def read(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read many znodes."""

    async def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """List the children of many znodes."""


class MetadataStore(Protocol):
    """A session with a metadata store. Call all methods in the trio thread that opened it.

    Paths are absolute, below the chroot of the store if it has one. Every coroutine raises ConnectionLost,
    SessionExpired or StoreUnavailable if it could not send its request, or if the outcome is unknown.
    """

    @property
    def session_id(self) -> int:
        """The id of the current session, which is the `ephemeral_owner` of the ephemerals that it creates."""

    @property
    def state(self) -> SessionState:
        """The session's state."""

    def subscribe(self, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Call `listener` in the trio thread with every later event. Return a function that unsubscribes it."""

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes; None for each that does not exist, FORBIDDEN for each that we may not read.

        The result is not a snapshot: reads may interleave with writes. Any number of reads is split into requests that
        the server accepts.

        With `watch`, the next change of each znode, or its creation, becomes a WatchFired event. A change between the
        read and the arming of the watch is not lost.
        """

    async def read_ahead(self, paths: Sequence[str]) -> None:
        """Begin to read znodes while the caller has something else to do.

        If the next call is `read` of the same paths, without watches, it returns what the store answers to this. Any
        other call drops the answer, so that nobody reads what is older than a write of ours.
        """

    async def children(self, paths: Sequence[str], *, watch: bool = False) -> list[list[str] | None]:
        """List the children of many znodes, sorted; None for each that does not exist, Unlisted where we may not.

        With `watch`, the next change of each list becomes a WatchFired event. A znode that does not exist gets no child
        watch: create it first.
        """

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Apply all of `ops` or none. The caller keeps within the server's limits (see `transport.store.chunks`).

        Of the znodes `known`, those that `ops` set are watched from then on: their watches tell nothing of this multi,
        nor of earlier changes that it overwrites, but of the next change after it (see `transport.store.known`). If the
        multi fails, they tell what they saw.

        Raises Conflict for the first refused operation, or Rejected if that operation can never succeed.
        """

    async def acls(self, paths: Sequence[str]) -> list[Acl | None]:
        """Return the ACLs of znodes; None for each that does not exist, or whose ACL hides itself from us."""

    def protect(self, *, set_acl: bool) -> None:
        """Decide whether only our own identity may change the znodes that are created from now on."""


def require_listed(path: str, names: list[str] | None) -> list[str]:
    """Return the listed children of a znode, none if it does not exist. Raises StoreError if we may not list them."""
    if isinstance(names, Unlisted):
        raise StoreError(f"the children of {path} may not be listed: its ACL forbids it to this identity")
    return names or []


async def children_of(store: MetadataStore, path: str, *, watch: bool = False) -> list[str]:
    """List the children of a znode, none if it does not exist. Raises StoreError, also if we may not list them."""
    [names] = await store.children([path], watch=watch)
    return require_listed(path, names)


async def ensure_paths(store: MetadataStore, paths: Sequence[str]) -> None:
    """Create the persistent znodes `paths`, and their parents, unless they exist."""
    ancestors: dict[str, None] = {}
    for path in paths:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            ancestors["/" + "/".join(parts[:depth])] = None
    wanted = list(ancestors)
    found = await store.read(wanted)
    for path, znode in zip(wanted, found, strict=True):
        if znode is None:
            try:
                await store.multi([Create(path)])
            except Conflict as conflict:
                # Another process may have created it in the meantime.
                if conflict.reason is not ConflictReason.NODE_EXISTS:
                    raise
