"""Access control lists of znodes: who may do what with them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import ClassVar, Final

from attrs import frozen

READ: Final = 0b00001
WRITE: Final = 0b00010
CREATE: Final = 0b00100
DELETE: Final = 0b01000
ALL: Final = 0b11111

_ANYONE: Final = ("world", "anyone")
_IP: Final = "ip"
_INT: Final = struct.Struct("!i")


@frozen
class AclEntry:
    """The permissions of an identity, which is a scheme such as `sasl` and an id."""

    permissions: int
    scheme: str
    id: str


Acl = tuple[AclEntry, ...]

OPEN: Final[Acl] = (AclEntry(ALL, *_ANYONE),)
"""All permissions for everyone."""


def is_open(acl: Acl, permissions: int = ALL) -> bool:
    """Return whether everyone has the permissions, or an address may give them, which only the server can tell."""
    return any((one.scheme, one.id) == _ANYONE or one.scheme == _IP for one in _with(acl, permissions))


def identities(acl: Acl, permissions: int = ALL) -> frozenset[str]:
    """Return the identities that have the permissions, as scheme:id."""
    return frozenset(f"{one.scheme}:{one.id}" for one in _with(acl, permissions))


def _with(acl: Acl, permissions: int) -> Sequence[AclEntry]:
    return [one for one in acl if one.permissions & permissions == permissions]


@frozen
class GetAcl:
    """Ask for the ACL of a znode."""

    path: str
    type: ClassVar[int] = 6

    def serialize(self) -> bytes:
        """Encode the request's body."""
        raw = self.path.encode()
        return _INT.pack(len(raw)) + raw

    def deserialize(self, buffer: bytes, offset: int) -> Acl:
        """Decode the reply's body, which begins at `offset`."""
        (count,) = _INT.unpack_from(buffer, offset)
        offset += _INT.size
        entries = []
        for _ in range(count):
            (permissions,) = _INT.unpack_from(buffer, offset)
            scheme, offset = _read_string(buffer, offset + _INT.size)
            id_, offset = _read_string(buffer, offset)
            entries.append(AclEntry(permissions, scheme, id_))
        return tuple(entries)


def _read_string(buffer: bytes, offset: int) -> tuple[str, int]:
    start = offset + _INT.size
    end = start + _INT.unpack_from(buffer, offset)[0]
    return buffer[start:end].decode(), end
