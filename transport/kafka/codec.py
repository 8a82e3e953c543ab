"""The codec of Kafka's messages: the table of each entity, compiled once for each version.

`encode` and `decode` are strict. A message that a version cannot express is refused, as is a body with bytes left over.
Tagged fields that are unknown here are skipped, so that newer ends can add some.

What is sent to many brokers is encoded once: `packed` returns the bytes of an entity in a version, and `encode` splices
a `Packed` value in wherever it meets one in place of an entity or an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from itertools import groupby
from operator import attrgetter
from struct import Struct, error as struct_error
from typing import Any, Final, TypeVar

from attrs import evolve, frozen

from transport.kafka import primitives
from transport.kafka.schema import At, Entity, EntityField, Kind, Message, fields_of
from transport.wire.errors import CodecError

M = TypeVar("M", bound=Message)

_NO_TAGS: Final = b"\0"
_IS_NULL: Final = b"\xff"
_IS_PRESENT: Final = b"\x01"
_EVERYWHERE: Final = At("0+")


class Packed(bytes):
    """The bytes of an entity or an array in one version, spliced in where that would be."""

    __slots__ = ()


def encode(message: Message, version: int) -> bytes:
    """Return the body of a message. Raises CodecError if the version cannot express it."""
    return packed(message, type(message), version)


def packed(entity: Entity, message: type[Message], version: int) -> Packed:
    """Return the bytes of an entity that is part of a kind of message, in a version of that. Raises CodecError."""
    try:
        return Packed(_codec(type(entity), message, version).pack(entity))
    except (struct_error, AttributeError, TypeError) as error:
        raise CodecError(f"{type(entity).__name__} cannot be encoded in version {version}: {error}") from error


def decode(message: type[M], version: int, body: bytes, *, is_all: bool = True) -> M:
    """Return the message that is all of a body, or the message that it begins with. Raises CodecError."""
    try:
        value, end = _codec(message, message, version).read(body, 0)
    except CodecError as error:
        raise CodecError(f"{message.__name__} of version {version} {error}") from None
    if is_all and end != len(body):
        raise CodecError(f"{message.__name__} of version {version} has {len(body) - end} bytes too many")
    decoded: M = value
    return decoded


@frozen
class _Dialect:
    """A version of a message, and whether it is flexible."""

    version: int
    is_compact: bool

    @classmethod
    def of(cls, message: type[Message], version: int) -> _Dialect:
        return cls(version, version in message.flexible)


@frozen
class _Codec:
    """The two directions of a value in one version."""

    pack: Callable[[Any], bytes]
    read: Callable[[bytes, int], tuple[Any, int]]
    smallest: int
    """The fewest bytes of a value."""


@frozen
class _Part:
    """One field of an entity, or several of fixed sizes that are packed together."""

    names: tuple[str, ...]
    codec: _Codec
    """Of the field's value; of the tuple of values if there are several fields."""


@cache
def _codec(entity: type[Entity], message: type[Message], version: int) -> _Codec:
    return _entity(entity, _Dialect.of(message, version))


# --- entities ---------------------------------------------------------------------------------------------------


@cache
def _entity(entity: type[Entity], dialect: _Dialect) -> _Codec:
    version, is_compact = dialect.version, dialect.is_compact
    present = [field for field in fields_of(entity) if version in field.at.versions]
    plain = [field for field in present if version not in field.at.tagged]
    parts = list(_parts(plain, dialect))
    getters = [(attrgetter(*part.names), part.codec.pack) for part in parts]
    tagged = {field.at.tag: field for field in present if version in field.at.tagged}
    tags = _tags(tagged, dialect)
    absent = [field for field in fields_of(entity) if version not in field.at.versions and not field.at.ignorable]

    def pack(value: Any) -> bytes:
        if type(value) is Packed:
            return value
        for field in absent:
            if getattr(value, field.name) != field.default:
                raise CodecError(f"{entity.__name__} of version {version} has no {field.name}")
        body = b"".join([pack_part(get(value)) for get, pack_part in getters])
        return body + tags.pack(value) if is_compact else body

    def read(buffer: bytes, at: int) -> tuple[Entity, int]:
        values: dict[str, Any] = {}
        for part in parts:
            found, at = part.codec.read(buffer, at)
            if len(part.names) == 1:
                values[part.names[0]] = found
            else:
                values.update(zip(part.names, found, strict=True))
        if is_compact:
            found, at = tags.read(buffer, at)
            values |= found
        return entity(**values), at

    return _Codec(pack, read, sum(part.codec.smallest for part in parts) + is_compact)


def _parts(fields: list[EntityField], dialect: _Dialect) -> Iterator[_Part]:
    """Yield the parts of fields in their order; neighbours of fixed sizes are one part."""
    for is_fixed, group in groupby(fields, key=_is_fixed):
        members = list(group)
        if is_fixed and len(members) > 1:
            yield _Part(tuple(field.name for field in members), _run(members))
        else:
            yield from (_Part((field.name,), _value(field, dialect)) for field in members)


def _is_fixed(field: EntityField) -> bool:
    return isinstance(field.type, Kind) and field.type.is_fixed and not field.is_array


def _run(fields: list[EntityField]) -> _Codec:
    layout = Struct(">" + "".join(field.type.value for field in fields if isinstance(field.type, Kind)))

    def read(buffer: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        try:
            return layout.unpack_from(buffer, at), at + layout.size
        except struct_error:
            raise CodecError("ends in the middle of a number") from None

    return _Codec(lambda values: layout.pack(*values), read, layout.size)


def _tags(fields: dict[int, EntityField], dialect: _Dialect) -> _Codec:
    """Return the codec of the tagged fields of an entity, which are left out while they have their defaults."""
    codecs = {tag: _value(field, dialect) for tag, field in sorted(fields.items())}

    def pack(entity: Entity) -> bytes:
        values = {tag: getattr(entity, fields[tag].name) for tag in codecs}
        told = [tag for tag, value in values.items() if value != fields[tag].default]
        if not told:
            return _NO_TAGS
        data = [(tag, codecs[tag].pack(values[tag])) for tag in told]
        packed_tags = [primitives.pack_varint(tag) + primitives.pack_varint(len(d)) + d for tag, d in data]
        return primitives.pack_varint(len(told)) + b"".join(packed_tags)

    def read(buffer: bytes, at: int) -> tuple[dict[str, Any], int]:
        if buffer[at : at + 1] == _NO_TAGS:
            return {}, at + 1
        count, at = primitives.read_varint(buffer, at)
        values: dict[str, Any] = {}
        previous = -1
        for _ in range(count):
            tag, at = primitives.read_varint(buffer, at)
            size, at = primitives.read_varint(buffer, at)
            if tag <= previous or size > len(buffer) - at:
                raise CodecError("has tagged fields that are out of order or too long")
            if tag in codecs:
                values[fields[tag].name], end = codecs[tag].read(buffer[: at + size], at)
                if end != at + size:
                    raise CodecError(f"has a tagged field of {size} bytes that needs {end - at}")
            previous, at = tag, at + size
        return values, at

    return _Codec(pack, read, len(_NO_TAGS))


# --- values -----------------------------------------------------------------------------------------------------


def _value(field: EntityField, dialect: _Dialect) -> _Codec:
    """Return the codec of a field's value."""
    is_nullable = dialect.version in field.at.nullable
    if field.is_array:
        codec = _array(field, dialect)
    elif isinstance(field.type, Kind):
        codec = _primitive(field.type, dialect)
    else:
        codec = _entity(field.type, dialect)
        return _nullable_entity(codec) if is_nullable else codec
    return codec if is_nullable else _not_null(field, codec)


def _primitive(kind: Kind, dialect: _Dialect) -> _Codec:
    is_compact = dialect.is_compact
    match kind:
        case Kind.STRING:
            return _Codec(
                lambda value: primitives.pack_string(value, is_compact=is_compact),
                lambda buffer, at: primitives.read_string(buffer, at, is_compact=is_compact),
                1 if is_compact else 2,
            )
        case Kind.BYTES:
            return _Codec(
                lambda value: primitives.pack_bytes(value, is_compact=is_compact),
                lambda buffer, at: primitives.read_bytes(buffer, at, is_compact=is_compact),
                1 if is_compact else 4,
            )
        case Kind.UUID:
            return _Codec(primitives.pack_uuid, primitives.read_uuid, primitives.UUID_BYTES)
    layout = Struct(">" + kind.value)
    return _Codec(layout.pack, lambda buffer, at: primitives.read_fixed(layout, buffer, at), layout.size)


def _not_null(field: EntityField, codec: _Codec) -> _Codec:
    if isinstance(field.type, Kind) and field.type not in (Kind.STRING, Kind.BYTES) and not field.is_array:
        return codec

    def pack(value: Any) -> bytes:
        if value is None:
            raise CodecError(f"{field.name} may not be null")
        return codec.pack(value)

    def read(buffer: bytes, at: int) -> tuple[Any, int]:
        value, at = codec.read(buffer, at)
        if value is None:
            raise CodecError(f"has no {field.name}, which may not be null")
        return value, at

    return _Codec(pack, read, codec.smallest)


def _nullable_entity(codec: _Codec) -> _Codec:
    def pack(value: Any) -> bytes:
        return _IS_NULL if value is None else _IS_PRESENT + codec.pack(value)

    def read(buffer: bytes, at: int) -> tuple[Any, int]:
        mark = buffer[at : at + 1]
        if mark not in (_IS_NULL, _IS_PRESENT):
            raise CodecError("has neither an entity nor null where one of them must be")
        return (None, at + 1) if mark == _IS_NULL else codec.read(buffer, at + 1)

    return _Codec(pack, read, len(_IS_NULL))


def _array(field: EntityField, dialect: _Dialect) -> _Codec:
    is_compact = dialect.is_compact
    item = _value(evolve(field, is_array=False, at=_EVERYWHERE), dialect)
    is_of_numbers = isinstance(field.type, Kind) and field.type.is_fixed
    pack_items, read_items = _numbers(field.type) if is_of_numbers else _items(item)
    if not is_of_numbers and not isinstance(field.type, Kind):
        read_items = _rows(field.type, dialect, read_items)

    def pack(values: Any) -> bytes:
        if type(values) is Packed:
            return values
        if values is None:
            return primitives.pack_length(None, is_compact=is_compact)
        return primitives.pack_length(len(values), is_compact=is_compact) + pack_items(values)

    def read(buffer: bytes, at: int) -> tuple[Any, int]:
        length, at = primitives.read_length(buffer, at, is_compact=is_compact)
        if length < 0:
            return None, at
        # An array that cannot be there in full is refused before anything is allocated for it.
        if length * item.smallest > len(buffer) - at:
            raise CodecError(f"claims an array of {length}, with {len(buffer) - at} bytes left")
        return read_items(buffer, at, length)

    return _Codec(pack, read, 1 if is_compact else 4)


_PackItems = Callable[[Any], bytes]
_ReadItems = Callable[[bytes, int, int], tuple[tuple[Any, ...], int]]


def _items(codec: _Codec) -> tuple[_PackItems, _ReadItems]:
    def pack(values: Any) -> bytes:
        return b"".join([codec.pack(value) for value in values])

    def read(buffer: bytes, at: int, length: int) -> tuple[tuple[Any, ...], int]:
        values = []
        for _ in range(length):
            value, at = codec.read(buffer, at)
            values.append(value)
        return tuple(values), at

    return pack, read


def _rows(entity: type[Entity], dialect: _Dialect, read_items: _ReadItems) -> _ReadItems:
    """Return a function that reads entities of numbers much faster, such as the outcomes of an order.

    They may begin with a string. `read_items` reads all others, and those with tagged fields.
    """
    version = dialect.version
    fields = fields_of(entity)
    present = [field for field in fields if version in field.at.versions]
    before = tuple([field.default for field in fields[: len(fields) - len(present)]])
    is_named = bool(present) and present[0].type is Kind.STRING and not present[0].is_array
    numbers = present[is_named:]
    if not all(map(_is_fixed, numbers)) or present != list(fields[len(before) :]):
        return read_items
    if any(version in field.at.tagged for field in present):
        return read_items
    letters = "".join(field.type.value for field in numbers if isinstance(field.type, Kind))
    # The last byte of each entity is the number of its tagged fields.
    layout = Struct(f">{letters}x" if dialect.is_compact else f">{letters}")
    make = partial(entity, *before)
    if is_named:
        return _named_rows(make, _value(present[0], dialect), layout, dialect, read_items)
    # Many are equal: the outcome of an order for the first partition of each topic, for example.
    make_shared = lru_cache(10_000)(make)

    def read(buffer: bytes, at: int, length: int) -> tuple[tuple[Any, ...], int]:
        end = at + length * layout.size
        if dialect.is_compact and any(buffer[at + layout.size - 1 : end : layout.size]):
            return read_items(buffer, at, length)
        return tuple([make_shared(*row) for row in layout.iter_unpack(buffer[at:end])]), end

    return read


def _named_rows(
    make: Callable[..., Entity], name: _Codec, layout: Struct, dialect: _Dialect, read_items: _ReadItems
) -> _ReadItems:
    """Return the function for entities of a string and numbers. Most have the string of the one before."""

    def read(buffer: bytes, at: int, length: int) -> tuple[tuple[Any, ...], int]:
        begin, rows = at, []
        text, packed_text = None, b""
        for _ in range(length):
            if packed_text and buffer.startswith(packed_text, at):
                at += len(packed_text)
            else:
                text, end = name.read(buffer, at)
                packed_text, at = buffer[at:end], end
            try:
                numbers = layout.unpack_from(buffer, at)
            except struct_error:
                raise CodecError("ends in the middle of a number") from None
            at += layout.size
            if dialect.is_compact and buffer[at - 1]:
                return read_items(buffer, begin, length)
            rows.append(make(text, *numbers))
        return tuple(rows), at

    return read


def _numbers(kind: Kind | type[Entity]) -> tuple[_PackItems, _ReadItems]:
    """Return the functions of an array of numbers, such as an ISR. Equal ones are common, and are packed once."""
    assert isinstance(kind, Kind)

    @lru_cache(10_000)
    def pack(values: tuple[Any, ...]) -> bytes:
        return Struct(f">{len(values)}{kind.value}").pack(*values)

    def read(buffer: bytes, at: int, length: int) -> tuple[tuple[Any, ...], int]:
        layout = Struct(f">{length}{kind.value}")
        return layout.unpack_from(buffer, at), at + layout.size

    return pack, read
