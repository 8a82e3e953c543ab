"""ZooKeeper's tree of znodes in memory: versions, zxids, sequences, and multis that roll back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Final

from attrs import Factory, define, frozen

from transport.store.acls import OPEN, READ, Acl, AclEntry
from transport.store.protocol import (
    ANY_VERSION,
    FORBIDDEN,
    Check,
    Committed,
    Conflict,
    ConflictReason,
    Create,
    Delete,
    Op,
    Rejected,
    Set,
    Stat,
    Unlisted,
    WatchFired,
    WatchKind,
    Znode,
)

PERSISTENT: Final = 0


@frozen
class _Refused(Exception):
    reason: ConflictReason


class Access(Enum):
    """The access that a znode's ACL gives us."""

    ALL = "anything"
    READ = "read it, and list its children"
    NONE = "nothing"


_ACLS: Final[dict[Access, Acl | None]] = {
    Access.ALL: OPEN,
    Access.READ: (AclEntry(READ, "world", "anyone"),),
    Access.NONE: None,
}


class _Impossible(Exception):
    """An operation can never succeed; the argument is the reason."""


@define(eq=False)
class _Node:
    znode: Znode
    children: set[str] = Factory(set)
    births: int = 0
    access: Access = Access.ALL

    @property
    def owner(self) -> int:
        return self.znode.stat.ephemeral_owner


@frozen
class Commit:
    """A committed multi: its outcome, and all changes in the order of its operations."""

    committed: Committed
    changes: tuple[WatchFired, ...]


class Tree:
    """All znodes, and the zxid of the latest change."""

    def __init__(self) -> None:
        self.zxid = 0
        self._nodes = {"/": _Node(Znode(b"", Stat(0, 0, 0, 0, 0)))}

    def read(self, path: str) -> Znode | None:
        """Return the znode at `path`."""
        node = self._nodes.get(path)
        if node is None:
            return None
        return FORBIDDEN if node.access is Access.NONE else node.znode

    def children(self, path: str) -> list[str] | None:
        """List the children of the znode at `path`, sorted."""
        node = self._nodes.get(path)
        if node is None:
            return None
        return Unlisted() if node.access is Access.NONE else sorted(node.children)

    def allow(self, path: str, access: Access) -> None:
        """Restrict the access of all sessions to a znode and its list of children, as the ACL of another tool does.

        As in ZooKeeper, no watch fires, and a session that may change the parent may still delete the znode.
        """
        self._nodes[path].access = access

    def acl(self, path: str) -> Acl | None:
        """Return the ACL of the znode at `path`; None if it does not exist or is closed to us."""
        node = self._nodes.get(path)
        return None if node is None else _ACLS[node.access]

    def ephemerals(self, owner: int) -> list[str]:
        """List the ephemerals of a session, sorted."""
        return sorted(path for path, node in self._nodes.items() if node.owner == owner)

    def multi(self, ops: Sequence[Op], owner: int, now_ms: int, *, is_permitted: bool = False) -> Commit:
        """Apply all of `ops` or none, under one new zxid, in the name of the session `owner`.

        With `is_permitted`, ACLs are not asked: as in ZooKeeper, a follower applies what its leader has permitted.

        Raises:
            Conflict: An operation was refused; the error names the first one.
            Rejected: The first refused operation can never succeed.
        """
        transaction = _Transaction(self._nodes, self.zxid + 1, owner, now_ms, is_permitted)
        results: list[str | Stat | None] = []
        for index, op in enumerate(ops):
            try:
                results.append(transaction.do(op))
            except _Refused as refused:
                transaction.roll_back()
                raise Conflict(index, op.path, refused.reason) from None
            except _Impossible as fault:
                transaction.roll_back()
                raise Rejected(index, op.path, f"{op.path} {fault}") from None
        self.zxid += 1
        return Commit(Committed(self.zxid, lambda: tuple(results)), tuple(transaction.changes))


@define
class _Transaction:
    """A multi in progress: it changes the nodes in place, and keeps a list of functions that undo the changes."""

    nodes: dict[str, _Node]
    zxid: int
    owner: int
    now_ms: int
    is_permitted: bool
    changes: list[WatchFired] = Factory(list)
    _undo: list[Callable[[], object]] = Factory(list)

    def do(self, op: Op) -> str | Stat | None:
        """Apply one operation. Raises `_Refused` or `_Impossible` before any effect."""
        match op:
            case Create():
                return self._create(op)
            case Set():
                return self._set(op)
            case Delete():
                self._delete(op)
            case Check():
                self._open(op.path, Access.READ)
                self._at_version(op.path, op.version)
        return None

    def roll_back(self) -> None:
        """Undo all changes, last first."""
        for undo in reversed(self._undo):
            undo()

    def _create(self, op: Create) -> str:
        parent_path, name = split(op.path)
        parent = self._open(parent_path)
        if parent.owner != PERSISTENT:
            raise _Impossible("cannot be created: its parent is ephemeral")
        if op.sequence:
            name += f"{parent.births:010}"
        path = join(parent_path, name)
        if path in self.nodes:
            raise _Refused(ConflictReason.NODE_EXISTS)
        owner = self.owner if op.ephemeral else PERSISTENT
        stat = Stat(self.zxid, self.zxid, self.now_ms, self.now_ms, 0, owner)
        self.nodes[path] = _Node(Znode(op.data, stat))
        parent.children.add(name)
        parent.births += 1
        self._undo.append(lambda: self._forget(path, parent, name))
        self._changed(path, WatchKind.CREATED)
        self._changed(parent_path, WatchKind.CHILDREN)
        return path

    def _forget(self, path: str, parent: _Node, name: str) -> None:
        del self.nodes[path]
        parent.children.remove(name)
        parent.births -= 1

    def _set(self, op: Set) -> Stat:
        self._open(op.path)
        node = self._at_version(op.path, op.version)
        self._undo.append(partial(setattr, node, "znode", node.znode))
        before = node.znode.stat
        after = Stat(before.czxid, self.zxid, before.ctime_ms, self.now_ms, before.version + 1, before.ephemeral_owner)
        node.znode = Znode(op.data, after)
        self._changed(op.path, WatchKind.CHANGED)
        return after

    def _delete(self, op: Delete) -> None:
        parent_path, name = split(op.path)
        if op.path in self.nodes:
            self._open(parent_path)
        node = self._at_version(op.path, op.version)
        if node.children:
            raise _Refused(ConflictReason.NOT_EMPTY)
        parent = self.nodes[parent_path]
        del self.nodes[op.path]
        parent.children.remove(name)
        self._undo.append(lambda: self._restore(op.path, node, parent, name))
        self._changed(op.path, WatchKind.DELETED)
        self._changed(parent_path, WatchKind.CHILDREN)

    def _restore(self, path: str, node: _Node, parent: _Node, name: str) -> None:
        self.nodes[path] = node
        parent.children.add(name)

    def _open(self, path: str, access: Access = Access.ALL) -> _Node:
        """Return a node to which we have `access`. Raises `_Impossible` or `_Refused`."""
        node = self._at_version(path, ANY_VERSION)
        if not self.is_permitted and node.access not in (Access.ALL, access):
            raise _Impossible("may not be touched: its ACL forbids it")
        return node

    def _at_version(self, path: str, version: int) -> _Node:
        node = self.nodes.get(path)
        if node is None:
            raise _Refused(ConflictReason.NO_NODE)
        if version not in (ANY_VERSION, node.znode.stat.version):
            raise _Refused(ConflictReason.BAD_VERSION)
        return node

    def _changed(self, path: str, kind: WatchKind) -> None:
        self.changes.append(WatchFired(path, kind))


def split(path: str) -> tuple[str, str]:
    """Split a path into its parent and its name, which is empty for "/" and for sequences without a prefix."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


def join(parent: str, name: str) -> str:
    """Return the path of a parent's child."""
    return f"{parent.rstrip('/')}/{name}"
