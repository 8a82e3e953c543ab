"""Messages that are damaged in the ways that matter to a reader, at each place where that can be done.

A message is laid out in pieces, so that it is known where lengths are, and what each of them may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from struct import pack
from typing import Any, Final, TypeVar

from attrs import frozen

from transport.kafka import primitives
from transport.kafka.schema import Entity, EntityField, Kind, Message, fields_of

E = TypeVar("E", bound=Entity)


class Slot(Enum):
    """The meaning of a piece of a message to its reader."""

    DATA = auto()
    LENGTH = auto()
    """The length of a string, of bytes, or of an array."""

    NULLABLE = auto()
    """The same, and null is allowed."""

    PRESENCE = auto()
    """The byte in front of an entity that may be null."""

    VARINT = auto()
    """A varint in front of tagged fields."""


@frozen
class Piece:
    """Some bytes of a message."""

    data: bytes
    slot: Slot = Slot.DATA


class Damage(Enum):
    """The ways in which a message is damaged."""

    CUT = auto()
    LONGER = auto()
    TOO_LONG = auto()
    NEGATIVE = auto()
    OVERFLOW = auto()
    NULL = auto()


_ENDLESS: Final = (b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80")
"""Varints of more than 32 bits, or of more than five bytes."""

_NUMBERS: Final = dict.fromkeys((Kind.INT8, Kind.INT16, Kind.UINT16, Kind.INT32, Kind.INT64), 3)
_SAMPLES: Final[dict[Kind, object]] = {
    **_NUMBERS,
    Kind.BOOL: True,
    Kind.FLOAT64: 0.5,
    Kind.STRING: "name",
    Kind.BYTES: b"bytes",
    Kind.UUID: "AAAAAAAAAAAAAAAAAAAAAQ",
}
_LENGTHS: Final = (Slot.LENGTH, Slot.NULLABLE)


def sample(entity: type[E], version: int) -> E:
    """Return an entity whose arrays have two elements, and whose strings are not empty; it has no tagged fields."""
    present = [f for f in fields_of(entity) if version in f.at.versions and version not in f.at.tagged]
    return entity(**{field.name: _sample_field(field, version) for field in present})


def _sample_field(field: EntityField, version: int) -> Any:
    values = [_SAMPLES[field.type] if isinstance(field.type, Kind) else sample(field.type, version) for _ in "ab"]
    return tuple(values) if field.is_array else values[0]


def pieces_of(message: Message, version: int) -> list[Piece]:
    """Return the pieces of a message's body, which has no tagged fields, in a version."""
    return list(_entity(message, version, is_compact=version in message.flexible))


def damaged(kind: type[Message], version: int, damage: Damage) -> Iterator[bytes]:
    """Yield all bodies of a sample with one damage of a kind; none of them is a message."""
    pieces, is_compact = pieces_of(sample(kind, version), version), version in kind.flexible
    body = b"".join(piece.data for piece in pieces)
    match damage:
        case Damage.CUT:
            yield from (body[:end] for end in range(len(body)))
        case Damage.LONGER:
            yield from (body + bytes(more) for more in (1, 2, 100))
        case _:
            for place, piece in enumerate(pieces):
                before, after = pieces[:place], pieces[place + 1 :]
                for other in _others(piece, damage, is_compact=is_compact):
                    yield b"".join([*(p.data for p in before), other, *(p.data for p in after)])


def _others(piece: Piece, damage: Damage, *, is_compact: bool) -> Iterator[bytes]:
    """Yield what a piece is replaced by; nothing if it cannot be damaged so."""
    is_length = piece.slot in _LENGTHS
    size = len(piece.data)
    match damage:
        case Damage.TOO_LONG if is_length and is_compact:
            yield from (b"\xff\xff\x7f", b"\xff\xff\xff\xff\x0f")
        case Damage.TOO_LONG if is_length:
            yield b"\x7f" + b"\xff" * (size - 1)
        case Damage.TOO_LONG if piece.slot is Slot.VARINT:
            yield b"\xff\xff\xff\xff\x0f"
        case Damage.NEGATIVE if is_length and not is_compact:
            yield from (b"\xff" * (size - 1) + b"\xfe", b"\x80" + b"\0" * (size - 1))
        case Damage.NEGATIVE if piece.slot is Slot.PRESENCE:
            yield from (b"\xfe", b"\x80")
        case Damage.OVERFLOW if (is_length or piece.slot is Slot.VARINT) and is_compact:
            yield from _ENDLESS
        case Damage.NULL if piece.slot is Slot.LENGTH:
            yield b"\0" if is_compact else b"\xff" * size


def _entity(entity: Entity, version: int, *, is_compact: bool) -> Iterator[Piece]:
    for field in fields_of(type(entity)):
        if version in field.at.versions and version not in field.at.tagged:
            yield from _field(field, getattr(entity, field.name), version, is_compact=is_compact)
    if is_compact:
        yield Piece(b"\0", Slot.VARINT)


def _field(field: EntityField, value: Any, version: int, *, is_compact: bool) -> Iterator[Piece]:
    is_nullable = version in field.at.nullable
    if field.is_array:
        yield _length(value, 4, is_nullable=is_nullable, is_compact=is_compact)
        for item in value or ():
            yield from _value(field.type, item, version, is_nullable=False, is_compact=is_compact)
        return
    yield from _value(field.type, value, version, is_nullable=is_nullable, is_compact=is_compact)


def _value(
    kind: Kind | type[Entity], value: Any, version: int, *, is_nullable: bool, is_compact: bool
) -> Iterator[Piece]:
    match kind:
        case Kind.STRING | Kind.BYTES:
            data = value.encode() if isinstance(value, str) else value
            size = 2 if kind is Kind.STRING else 4
            yield _length(data, size, is_nullable=is_nullable, is_compact=is_compact)
            yield Piece(data or b"")
        case Kind.UUID:
            yield Piece(primitives.pack_uuid(value))
        case Kind():
            yield Piece(pack(f">{kind.value}", value))
        case _:
            if is_nullable:
                yield Piece(b"\x01", Slot.PRESENCE)
            yield from _entity(value, version, is_compact=is_compact)


def _length(value: Any, size: int, *, is_nullable: bool, is_compact: bool) -> Piece:
    slot = Slot.NULLABLE if is_nullable else Slot.LENGTH
    if is_compact:
        return Piece(primitives.pack_varint(0 if value is None else len(value) + 1), slot)
    return Piece((-1 if value is None else len(value)).to_bytes(size, "big", signed=True), slot)
