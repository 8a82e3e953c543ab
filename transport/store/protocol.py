"""What the product asks of a metadata store: znodes, read and written in bulk.

The semantics are ZooKeeper's: versions, czxids, ephemerals bound to a session, one-shot watches, atomic
multis that roll back whole and name their first conflict only. Two implementations pass one contract suite:
`transport.store.zookeeper.ZooKeeperStore` and `transport.store.memory.MemoryStore`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol

from attrs import frozen

ANY_VERSION: Final = -1
UNREADABLE: Final = b"\0unreadable\0"
"""The data of a znode whose ACL does not let us read it; no format can decode them."""


class StoreError(Exception):
    """A request to the metadata store did not succeed."""


class ConnectionLost(StoreError):
    """The connection broke while a request was under way: whether it took effect is not known."""


class SessionExpired(StoreError):
    """The session is gone, and with it its ephemerals and watches."""


class StoreUnavailable(StoreError):
    """No usable server could be reached; the message says which address, and what to do."""


class ConflictReason(Enum):
    """Why an operation of a multi was refused."""

    BAD_VERSION = "the version differs"
    NO_NODE = "the node does not exist"
    NODE_EXISTS = "the node exists"
    NOT_EMPTY = "the node has children"


class Conflict(StoreError):
    """A multi was rolled back whole; `index` is that of its first refused operation."""

    def __init__(self, index: int, path: str, reason: ConflictReason) -> None:
        super().__init__(f"{path}: {reason.value}")
        self.index = index
        self.path = path
        self.reason = reason


class Rejected(StoreError):
    """A multi was rolled back whole, and no retry would help: `index` is that of the operation at fault.

    An ACL forbids us the operation, or there can be no such znode.
    """

    def __init__(self, index: int, path: str, fault: str) -> None:
        super().__init__(fault)
        self.index = index
        self.path = path


@frozen
class Stat:
    """A znode's metadata. Zxids order all changes of the store; `ctime_ms` and `mtime_ms` are since 1970."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    ephemeral_owner: int = 0


@frozen
class Znode:
    """A znode as it was read: its data and its metadata."""

    data: bytes
    stat: Stat


FORBIDDEN: Final = Znode(UNREADABLE, Stat(0, 0, 0, 0, ANY_VERSION))
"""The result of reading a znode that its ACL does not let us read: it exists."""


class Unlisted(list[str]):
    """The children of a znode whose ACL does not let us list them: always empty, though there may be some."""


@frozen
class Create:
    """Create a znode. Its parent must exist. With `sequence`, ten digits are appended to `path`."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


@frozen
class Set:
    """Replace the data of a znode whose dataVersion is `version` (or `ANY_VERSION`)."""

    path: str
    data: bytes
    version: int


@frozen
class Delete:
    """Delete a childless znode whose dataVersion is `version` (or `ANY_VERSION`)."""

    path: str
    version: int = ANY_VERSION


@frozen
class Check:
    """Refuse the multi unless the znode exists with dataVersion `version`: this is what fences a controller."""

    path: str
    version: int


Op = Create | Set | Delete | Check


@frozen
class Committed:
    """A multi that took effect. `results`, one per operation, is the path of a Create, the Stat of a Set, else None."""

    zxid: int
    results: tuple[str | Stat | None, ...]


class SessionState(Enum):
    """The state of a store's session as its own process knows it."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    CLOSED = "closed"


class WatchKind(Enum):
    """What a watch saw: the node's data, existence or children changed."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


@frozen
class WatchFired:
    """A watched znode changed. It says where to look and carries no data; the watch is spent."""

    path: str
    kind: WatchKind


@frozen
class SessionChanged:
    """The session's state changed. After SUSPENDED every watch is gone: read and arm again.

    EXPIRED comes from the server, or from the client once it has been SUSPENDED for the session's timeout. CONNECTED
    after it comes with a new `session_id`, or with the old one if the server had kept the session after all.
    """

    state: SessionState


StoreEvent = WatchFired | SessionChanged


class MetadataStore(Protocol):
    """A session with a metadata store. All methods are called from the trio thread that opened it.

    Paths are absolute, below the chroot of the store if it has one. Every coroutine raises ConnectionLost,
    SessionExpired or StoreUnavailable when it cannot say what happened or could not ask.
    """

    @property
    def session_id(self) -> int:
        """The id of the present session: the `ephemeral_owner` of what it creates."""

    @property
    def state(self) -> SessionState:
        """The session's state."""

    def subscribe(self, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Call `listener` in the trio thread with every later watch and session event; return what ends that."""

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes; None for one that does not exist, FORBIDDEN for one that we may not read.

        Not a snapshot: reads may interleave with writes.

        With `watch`, one later change of each (its creation too) becomes a WatchFired event, and a change between
        the read and the arming is not lost. Reads of any number are cut into requests that the server accepts.
        """

    async def children(self, paths: Sequence[str], *, watch: bool = False) -> list[list[str] | None]:
        """List the children of many znodes, sorted; None for one that does not exist, Unlisted where we may not.

        With `watch`, one later change of each list becomes a WatchFired event. A node that does not exist gets no
        child watch: create it first.
        """

    async def multi(self, ops: Sequence[Op]) -> Committed:
        """Do all of `ops` or nothing. The caller keeps it under the server's limits (see `commit`).

        Raises Conflict with the first refused operation, or Rejected if that operation can never be done.
        """


def require_listed(path: str, names: list[str] | None) -> list[str]:
    """Return the children of a znode, none if it does not exist. Raises StoreError if we may not list them."""
    if isinstance(names, Unlisted):
        raise StoreError(f"the children of {path} may not be listed: its ACL forbids it to this identity")
    return names or []


async def children_of(store: MetadataStore, path: str) -> list[str]:
    """List the children of a znode, none if it does not exist. Raises StoreError if we may not or cannot list them."""
    [names] = await store.children([path])
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
                if conflict.reason is not ConflictReason.NODE_EXISTS:
                    raise
