"""The ZooKeeper requests that carry many operations, encoded and decoded as kazoo's client expects it.

Except for transactions, kazoo sends one operation per request. The server accepts hundreds: MultiRead (ZooKeeper 3.6 or
later), multi and SetWatches. Kazoo's client accepts any object with a `type`, and with `serialize` and `deserialize`,
which run in its connection thread. The records are those of ZooKeeper's `zookeeper.jute`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import ClassVar, Final

from attrs import frozen

from transport.store.limits import DEFAULT_LIMITS, RequestLimits
from transport.store.protocol import (
    FORBIDDEN,
    Check,
    Committed,
    ConflictReason,
    Create,
    Delete,
    Op,
    Rejected,
    Set,
    Stat,
    StoreError,
    Unlisted,
    Znode,
)

MAX_REQUEST_BYTES: Final = DEFAULT_LIMITS.request
MAX_GROUP_BYTES: Final = DEFAULT_LIMITS.group

NO_NODE: Final = -101
CONFLICT_REASONS: Final = {
    NO_NODE: ConflictReason.NO_NODE,
    -103: ConflictReason.BAD_VERSION,
    -110: ConflictReason.NODE_EXISTS,
    -111: ConflictReason.NOT_EMPTY,
}
_BAD_ARGUMENTS: Final = -8
_NO_AUTH: Final = -102
LASTING_ERRORS: Final = {
    _BAD_ARGUMENTS: "is not a valid path",
    _NO_AUTH: "may not be touched: its ACL forbids it to this identity (zookeeper.credentials.file says who we are)",
    -108: "cannot be created: its parent is ephemeral",
    -114: "cannot be created: its ACL needs an identity, and this session has none",
}

_DELETE, _GET_DATA, _SET_DATA, _GET_CHILDREN, _CHECK, _CREATE2 = 2, 4, 5, 8, 13, 15
_ERROR: Final = -1
_NO_FAULTS: Final = (0, -2)
"""The results of a refused multi for the operations before and after the one at fault."""

_INT: Final = struct.Struct("!i")
_LONG: Final = struct.Struct("!q")
_OP_HEADER: Final = struct.Struct("!iBi")
_ITEM: Final = struct.Struct("!iBii")
"""The header of a result and the integer after it: a length, a count, or an error code."""

_STAT: Final = struct.Struct("!qqqqi8xq")
_STAT_BYTES: Final = 68
_ZXID_IN_HEADER: Final = -12
"""The offset of the reply's zxid from its body: the header is xid (4 bytes), zxid (8), error (4)."""

_END: Final = _OP_HEADER.pack(-1, 1, -1)


def _acl(*entries: tuple[int, str, str]) -> bytes:
    """Encode entries of permissions, scheme and id."""
    parts = [_INT.pack(len(entries))]
    for permissions, scheme, id_ in entries:
        parts += [_INT.pack(permissions), _encode_string(scheme), _encode_string(id_)]
    return b"".join(parts)


def _encode_string(value: str) -> bytes:
    return _encode_buffer(value.encode())


def _encode_buffer(value: bytes) -> bytes:
    return b"".join(_sized(value))


def _sized(value: bytes) -> tuple[bytes, bytes]:
    return _INT.pack(len(value)), value


_READ, _ALL = 0b00001, 0b11111
_CREATOR: Final = (_ALL, "auth", "")
OPEN_ACL: Final = _acl((_ALL, "world", "anyone"))
"""All permissions for everyone."""

CREATOR_ALL_ACL: Final = _acl(_CREATOR)
"""All permissions for the identities of the creating session, none for others."""

CREATOR_ALL_READ_ACL: Final = _acl(_CREATOR, (_READ, "world", "anyone"))
"""All permissions for the identities of the creating session, reading for others."""

_OP_BYTES: Final = _OP_HEADER.size + 3 * _INT.size + len(CREATOR_ALL_READ_ACL)


def describe(path: str, code: int) -> str:
    """Return a sentence about `path` for a server's error code."""
    reason = CONFLICT_REASONS.get(code)
    return (
        f"{path}: {reason.value}" if reason else f"{path} {LASTING_ERRORS.get(code, f'was refused with error {code}')}"
    )


@frozen
class ReadMany:
    """Read the data and metadata of many znodes. The reply has a `Znode` for each, or None if it does not exist."""

    paths: Sequence[str]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        """Encode the request's body."""
        return _read_ops(_GET_DATA, self.paths)

    def deserialize(self, buffer: bytes, offset: int) -> list[Znode | None] | StoreError:
        """Decode the reply's body, which begins at `offset`."""
        # One call of a compiled Struct for the header, one for the Stat: bulk reads spend their time in this loop.
        item, stat = _ITEM.unpack_from, _STAT.unpack_from
        found: list[Znode | None] = []
        for path in self.paths:
            kind, _, _, length = item(buffer, offset)
            offset += _ITEM.size
            if kind == _GET_DATA:
                end = offset + length if length > 0 else offset
                found.append(Znode(buffer[offset:end], Stat(*stat(buffer, end))))
                offset = end + _STAT_BYTES
            elif length == NO_NODE:
                found.append(None)
            elif length == _NO_AUTH:
                found.append(FORBIDDEN)
            else:
                return StoreError(describe(path, length))
        return found


@frozen
class ListMany:
    """List the children of many znodes. The reply has a sorted list for each, or None if it does not exist."""

    paths: Sequence[str]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        """Encode the request's body."""
        return _read_ops(_GET_CHILDREN, self.paths)

    def deserialize(self, buffer: bytes, offset: int) -> list[list[str] | None] | StoreError:
        """Decode the reply's body, which begins at `offset`."""
        found: list[list[str] | None] = []
        for path in self.paths:
            kind, _, _, count = _ITEM.unpack_from(buffer, offset)
            offset += _ITEM.size
            if kind == _GET_CHILDREN:
                names: list[str] = []
                for _ in range(count):
                    name, offset = _read_string(buffer, offset)
                    names.append(name)
                found.append(sorted(names))
            elif count == NO_NODE:
                found.append(None)
            elif count == _NO_AUTH:
                found.append(Unlisted())
            else:
                return StoreError(describe(path, count))
        return found


@frozen
class LastZxid:
    """Ask for the zxid of the last change that the server has processed, which later reads of the session include."""

    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        """Encode the request's body: a read of no znodes."""
        return _read_ops(_GET_DATA, ())

    def deserialize(self, buffer: bytes, offset: int) -> int:
        """Decode the zxid in the reply's header, which ends at `offset`."""
        (zxid,) = _LONG.unpack_from(buffer, offset + _ZXID_IN_HEADER)
        return int(zxid)


@frozen
class RefusedOp:
    """The index of the first refused operation of a multi, and the server's error code."""

    index: int
    code: int


@frozen
class Multi:
    """Apply all operations or none. `acl` returns the encoded ACL for the path of a new znode; the default is open."""

    ops: Sequence[Op]
    acl: Callable[[str], bytes] = lambda _: OPEN_ACL
    type: ClassVar[int] = 14

    def serialize(self) -> bytes:
        """Encode the request's body."""
        parts: list[bytes] = []
        for op in self.ops:
            header, encode = _ENCODERS[type(op)]
            parts += (header, *encode(op, self.acl))
        parts.append(_END)
        return b"".join(parts)

    def deserialize(self, buffer: bytes, offset: int) -> list[Committed | RefusedOp]:
        """Decode the reply's body, which begins at `offset`.

        The outcome is in a list, because kazoo iterates over the replies of this type to strip its own chroot.
        """
        kind, _, _ = _OP_HEADER.unpack_from(buffer, offset)
        if kind == _ERROR and self.ops:
            return [_refused(buffer, offset)]
        (zxid,) = _LONG.unpack_from(buffer, offset + _ZXID_IN_HEADER)
        return [Committed(zxid, partial(_read_results, len(self.ops), buffer, offset))]


@frozen
class SetWatches:
    """Arm many watches of data, existence and children. A watch that missed a change since `zxid` fires at once."""

    zxid: int
    data: Sequence[str] = ()
    exist: Sequence[str] = ()
    children: Sequence[str] = ()
    type: ClassVar[int] = 101

    def serialize(self) -> bytes:
        """Encode the request's body."""
        kinds = (self.data, self.exist, self.children)
        return _LONG.pack(self.zxid) + b"".join(map(_encode_strings, kinds))

    def deserialize(self, buffer: bytes, offset: int) -> bool:  # noqa: ARG002 - the reply has no body
        """Decode the reply, which is empty."""
        return True


def require_sendable(ops: Sequence[Op], limits: RequestLimits = DEFAULT_LIMITS) -> None:
    """Check for operations that a server would apply to another path, or for which it would close the connection.

    Raises Rejected for a faulty operation, StoreError if the operations together are too large.
    """
    if not all(map(_is_valid, ops)):
        index, op = next((index, op) for index, op in enumerate(ops) if not _is_valid(op))
        raise Rejected(index, op.path, describe(op.path, _BAD_ARGUMENTS))
    weight = weight_of(ops)
    if weight > limits.request:
        raise StoreError(f"a multi of {weight} bytes is over ZooKeeper's limit of {limits.request}")


def weight_of(ops: Iterable[Op]) -> int:
    """Return an upper bound of the size of operations in a multi, in bytes."""
    return sum(map(op_bytes, ops))


def op_bytes(op: Op) -> int:
    """Return an upper bound of the size of an operation in a multi, in bytes."""
    path = op.path
    size = _OP_BYTES + len(path if path.isascii() else path.encode())
    return size + len(op.data) if isinstance(op, (Create, Set)) else size


def _is_valid(op: Op) -> bool:
    path = op.path
    if not path.startswith("/") or "//" in path:
        return False
    if not path.endswith("/"):
        return True
    return not isinstance(op, Delete) if path == "/" else isinstance(op, Create) and op.sequence


def _read_ops(kind: int, paths: Iterable[str]) -> bytes:
    header = _OP_HEADER.pack(kind, 0, -1)
    parts: list[bytes] = []
    for path in paths:
        raw = path.encode()
        parts += (header, _INT.pack(len(raw)), raw, b"\0")
    parts.append(_END)
    return b"".join(parts)


def _encode_strings(values: Sequence[str]) -> bytes:
    return _INT.pack(len(values)) + b"".join(map(_encode_string, values))


def _encode_create(op: Create, acl: Callable[[str], bytes]) -> tuple[bytes, ...]:
    flags = op.ephemeral | op.sequence << 1
    return (*_sized(op.path.encode()), *_sized(op.data), acl(op.path), _INT.pack(flags))


def _encode_set(op: Set, _: object) -> tuple[bytes, ...]:
    return (*_sized(op.path.encode()), *_sized(op.data), _INT.pack(op.version))


def _encode_versioned(op: Delete | Check, _: object) -> tuple[bytes, ...]:
    return (*_sized(op.path.encode()), _INT.pack(op.version))


_ENCODERS: Final[dict[type[Op], tuple[bytes, Callable[..., tuple[bytes, ...]]]]] = {
    Create: (_OP_HEADER.pack(_CREATE2, 0, -1), _encode_create),
    Set: (_OP_HEADER.pack(_SET_DATA, 0, -1), _encode_set),
    Delete: (_OP_HEADER.pack(_DELETE, 0, -1), _encode_versioned),
    Check: (_OP_HEADER.pack(_CHECK, 0, -1), _encode_versioned),
}


def _read_string(buffer: bytes, offset: int) -> tuple[str, int]:
    start = offset + _INT.size
    end = start + _INT.unpack_from(buffer, offset)[0]
    return buffer[start:end].decode(), end


def _read_results(count: int, buffer: bytes, offset: int) -> tuple[str | Stat | None, ...]:
    results: list[str | Stat | None] = []
    for _ in range(count):
        kind, _, _ = _OP_HEADER.unpack_from(buffer, offset)
        result, offset = _read_result(kind, buffer, offset + _OP_HEADER.size)
        results.append(result)
    return tuple(results)


def _read_result(kind: int, buffer: bytes, offset: int) -> tuple[str | Stat | None, int]:
    if kind == _CREATE2:
        path, offset = _read_string(buffer, offset)
        return path, offset + _STAT_BYTES
    if kind == _SET_DATA:
        return Stat(*_STAT.unpack_from(buffer, offset)), offset + _STAT_BYTES
    return None, offset


def _refused(buffer: bytes, offset: int) -> RefusedOp:
    """Return the refused operation of a multi: all results are errors, but those of the others are no faults."""
    size = _OP_HEADER.size + _INT.size
    codes = (_INT.unpack_from(buffer, offset + (index + 1) * size - _INT.size)[0] for index in count())
    return next(RefusedOp(index, code) for index, code in enumerate(codes) if code not in _NO_FAULTS)
