"""The vocabulary of Kafka's message definitions: types, versions, and the fields of messages.

Each message is a class of the package `messages`, generated from Kafka's own definitions. Its annotations are the table
that the codec reads: `Annotated[int, INT32, At("0+")]` is a field of 32 bits in all versions. One class stands for all
versions of a message. A field that a version does not have keeps its default.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Final, get_args, get_origin

import msgspec
from attrs import field, frozen
from msgspec.structs import fields

LATEST: Final = 32_767
"""The end of a range of versions that has none."""


class Kind(Enum):
    """The primitive types, and the letter of those with a fixed size in the module `struct`."""

    BOOL = "?"
    INT8 = "b"
    INT16 = "h"
    UINT16 = "H"
    INT32 = "i"
    INT64 = "q"
    FLOAT64 = "d"
    STRING = "string"
    BYTES = "bytes"
    UUID = "uuid"
    """16 bytes; in messages the text of a topic id, and "" for the id of zeros."""

    @property
    def is_fixed(self) -> bool:
        """Whether the module `struct` packs it."""
        return len(self.value) == 1


BOOL, INT8, INT16, UINT16, INT32, INT64, FLOAT64, STRING, BYTES, UUID = Kind


@frozen
class Versions:
    """A range of versions, both ends included; empty if the last one is below the first."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __and__(self, other: Versions) -> Versions:
        """Return the versions that both have."""
        return Versions(max(self.first, other.first), min(self.last, other.last))


NEVER: Final = Versions(0, -1)


def parse_versions(text: str) -> Versions:
    """Parse Kafka's notation of a range of versions: `3`, `0-2`, `4+` or `none`."""
    if text == "none":
        return NEVER
    first, dash, last = text.removesuffix("+").partition("-")
    if text.endswith("+"):
        return Versions(int(first), LATEST)
    return Versions(int(first), int(last) if dash else int(first))


def _as_versions(versions: str | Versions) -> Versions:
    return versions if isinstance(versions, Versions) else parse_versions(versions)


@frozen
class At:
    """The versions of a field, in one of them a tagged one, and those in which it may be null.

    A value other than the default is an error in a version without the field, unless the field is `ignorable`.
    """

    versions: Versions = field(converter=_as_versions)
    nullable: Versions = field(converter=_as_versions, default=NEVER)
    tag: int = -1
    tagged: Versions = field(converter=_as_versions, default=NEVER)
    ignorable: bool = False


class Entity(msgspec.Struct, frozen=True, gc=False):
    """A message, or a part of one."""


class Message(Entity, frozen=True):
    """A request or a response of an api."""

    api_key: ClassVar[int]
    versions: ClassVar[Versions]
    flexible: ClassVar[Versions]
    """The versions with compact lengths and tagged fields (KIP-482)."""


@frozen
class EntityField:
    """A field of an entity: a primitive, an entity, or an array of either."""

    name: str
    type: Kind | type[Entity]
    is_array: bool
    at: At
    default: Any


@cache
def fields_of(entity: type[Entity]) -> tuple[EntityField, ...]:
    """Return the fields of an entity in the order of the wire."""
    return tuple(_field(item.name, item.type, item.default) for item in fields(entity))


def _field(name: str, annotation: Any, default: Any) -> EntityField:
    hint, *notes = get_args(annotation)
    at = next(note for note in notes if isinstance(note, At))
    kind = next((note for note in notes if isinstance(note, Kind)), None)
    options = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    [shape] = [option for option in options if option is not type(None)]
    is_array = get_origin(shape) is tuple
    return EntityField(name, kind or (get_args(shape)[0] if is_array else shape), is_array, at, default)
