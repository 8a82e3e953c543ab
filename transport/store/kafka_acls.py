"""Kafka's ACLs in the metadata store, and the notifications of their changes (KIP-290).

Literal patterns are in `/kafka-acl/TYPE/NAME`, prefixed ones in `/kafka-acl-extended/prefixed/TYPE/NAME`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import orjson

from transport.acls import AclEntry, Operation, Pattern, PatternType, Resource, ResourceType
from transport.security.principal import parse_principal
from transport.store import fields
from transport.store.fields import UndecodableZnode
from transport.store.protocol import MetadataStore, Unlisted

ROOTS: Final = MappingProxyType(
    {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
)
CHANGES: Final = "/kafka-acl-changes"
EXTENDED_CHANGES: Final = "/kafka-acl-extended-changes"
PERSISTENT: Final = (
    *(f"{root}/{type_.value}" for root in ROOTS.values() for type_ in ResourceType),
    CHANGES,
    EXTENDED_CHANGES,
)
"""The znodes that have to exist so that changes are noticed."""

_OPERATIONS: Final = MappingProxyType({operation.value.lower(): operation for operation in Operation})
_PERMISSIONS: Final = MappingProxyType({"allow": True, "deny": False})
_TYPES: Final = MappingProxyType({type_.value: type_ for type_ in ResourceType})

Entries = frozenset[AclEntry] | None
"""The entries of a pattern; None if they cannot be read."""


def path_of(pattern: Pattern) -> str:
    """Return the path of a pattern's entries."""
    return f"{ROOTS[pattern.type]}/{pattern.resource.type.value}/{pattern.resource.name}"


def encode_entries(entries: Sequence[AclEntry]) -> bytes:
    """Encode the entries of a pattern, all of them of known operations."""
    rows = [
        {
            "principal": str(entry.principal),
            "permissionType": "Allow" if entry.is_allowed else "Deny",
            "operation": entry.operation.value if entry.operation is not None else "Unknown",
            "host": entry.host,
        }
        for entry in entries
    ]
    return orjson.dumps({"version": 1, "acls": rows})


def decode_entries(path: str, data: bytes) -> frozenset[AclEntry]:
    """Return the entries of a pattern; none if the znode is empty, as in Kafka. Raises UndecodableZnode."""
    if not data:
        return frozenset()
    value = fields.load(path, data)
    if value.get("version") != 1:
        raise UndecodableZnode(path, f"version must be 1, is {fields.shown(value.get('version'))}")
    rows = value.get("acls")
    if not isinstance(rows, list):
        raise UndecodableZnode(path, f"acls must be a list, is {fields.shown(rows)}")
    return frozenset(_entry(path, fields.mapping(path, row, "an ACL")) for row in rows)


def _entry(path: str, row: Mapping[str, Any]) -> AclEntry:
    permission = _PERMISSIONS.get(fields.string(path, row.get("permissionType"), "permissionType").lower())
    if permission is None:
        raise UndecodableZnode(path, f"permissionType must be Allow or Deny, is {fields.shown(row['permissionType'])}")
    try:
        principal = parse_principal(fields.string(path, row.get("principal"), "principal"))
    except ValueError as error:
        raise UndecodableZnode(path, str(error)) from None
    operation = _OPERATIONS.get(fields.string(path, row.get("operation"), "operation").lower())
    return AclEntry(principal, permission, fields.string(path, row.get("host"), "host"), operation)


def changed_pattern(path: str, data: bytes) -> Pattern | None:
    """Return the pattern that a notification names; None if it is of another type. Raises UndecodableZnode."""
    if path.startswith(f"{CHANGES}/"):
        fields.require_readable(path, data)
        type_name, colon, name = data.decode("utf-8", "replace").partition(":")
        kind = PatternType.LITERAL
        if not (colon and name):
            raise UndecodableZnode(path, f"must be TYPE:NAME, is {fields.shown(data)}")
    else:
        value = fields.load(path, data)
        type_name = fields.string(path, value.get("resourceType"), "resourceType")
        name = fields.string(path, value.get("name"), "name")
        if value.get("patternType") not in PatternType.__members__:
            raise UndecodableZnode(path, f"patternType is {fields.shown(value.get('patternType'))}")
        kind = PatternType[value["patternType"]]
    type_ = _TYPES.get(_pascal_case(type_name))
    return None if type_ is None else Pattern(kind, Resource(type_, name))


def _pascal_case(name: str) -> str:
    """Return a type's name as in paths: notifications have TOPIC or Topic."""
    return name.capitalize() if name.upper() in ResourceType.__members__ else name


async def read_entries(store: MetadataStore, patterns: Sequence[Pattern]) -> dict[Pattern, tuple[Entries, str]]:
    """Read the entries of patterns, and for those that cannot be read the reason. Patterns without any are left out."""
    found: dict[Pattern, tuple[Entries, str]] = {}
    paths = [path_of(pattern) for pattern in patterns]
    for pattern, path, znode in zip(patterns, paths, await store.read(paths), strict=True):
        if znode is None:
            continue
        try:
            found[pattern] = decode_entries(path, znode.data), ""
        except UndecodableZnode as error:
            found[pattern] = None, str(error)
    return found


async def list_patterns(store: MetadataStore) -> list[Pattern] | None:
    """List the patterns that have ACLs; None if they may not be listed."""
    kinds = [(kind, type_) for kind in PatternType for type_ in ResourceType]
    lists = await store.children([f"{ROOTS[kind]}/{type_.value}" for kind, type_ in kinds])
    if any(isinstance(names, Unlisted) for names in lists):
        return None
    return [
        Pattern(kind, Resource(type_, name))
        for (kind, type_), names in zip(kinds, lists, strict=True)
        for name in names or ()
    ]
