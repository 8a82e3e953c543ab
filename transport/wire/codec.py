"""The encoding of messages in msgpack.

A message is the array of its fields in order. Nested messages are nested arrays, tuples are arrays, an Enum is its
value, and None is nil. A decoder is strict about types (a bool is not an int), ignores unknown trailing elements, and
gives missing trailing fields their defaults, so that old and new versions of a message can read each other.

Each class gets an encoder and a decoder, compiled from its annotations on first use, because a single request can hold
100,000 partition states.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
import msgpack
from attrs import frozen

from transport.errors import ErrorCode
from transport.messages import PackedOnce
from transport.wire.errors import CodecError

M = TypeVar("M")

_SCALARS: Final = (int, bool, str, bytes)
_NIL: Final = b"\xc0"

_Encode = Callable[[Any], Any]
_Pack = Callable[[Any], bytes]
_Decode = Callable[[Any], Any]

_pack: Final[_Pack] = msgpack.Packer().pack


def encode(message: object) -> bytes:
    """Pack a message, or a value that a field may have. Raises CodecError for a value of another type."""
    annotation: Any = type(message)
    pack = _packer(annotation)
    try:
        return pack(message)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise CodecError(f"{type(message).__name__} cannot be encoded: {error}") from error


def decode(cls: type[M], body: bytes) -> M:
    """Unpack a body that must be exactly one message of class `cls`. Raises CodecError."""
    annotation: Any = cls
    decoded: M = _decoder(annotation)(_unpack(body))
    return decoded


def _unpack(body: bytes) -> object:
    scanner = msgpack.Unpacker(max_buffer_size=max(len(body), 1))
    scanner.feed(body)
    try:
        # A scan that builds no objects rejects excessive nesting, and arrays that claim to be longer than the body.
        scanner.skip()
        return msgpack.unpackb(body, use_list=False, max_ext_len=0)
    except (msgpack.UnpackException, ValueError, RecursionError) as error:
        raise CodecError(f"not msgpack within limits: {type(error).__name__} {error}") from None


@frozen
class Field:
    """A field of a message: its name, whether it is a list, whether it is required, and its decoder."""

    name: str
    is_list: bool
    is_required: bool
    decode: _Decode


def layout(cls: type) -> tuple[Field, ...]:
    """Return the fields of a message class in order."""
    annotation: Any = cls
    return _layout(annotation)


@cache
def _layout(cls: Any) -> tuple[Field, ...]:
    return tuple(
        Field(
            attribute.name,
            _repeated(_optional(annotation) or annotation) is not None,
            attribute.default is attrs.NOTHING,
            _decoder(annotation),
        )
        for attribute, annotation in _fields(cls)
    )


# --- annotations ------------------------------------------------------------------------------------------------


def _fields(cls: type) -> list[tuple[attrs.Attribute[Any], Any]]:
    hints = get_type_hints(cls)
    return [(attribute, hints[attribute.name]) for attribute in attrs.fields(cls)]


def _optional(annotation: Any) -> Any | None:
    """Return X of `X | None`, else None."""
    if get_origin(annotation) not in (UnionType, Union):
        return None
    first, *others = (arg for arg in get_args(annotation) if arg is not NoneType)
    return None if others else first


def _repeated(annotation: Any) -> Any | None:
    """Return X of `tuple[X, ...]`, else None."""
    args = get_args(annotation)
    return args[0] if get_origin(annotation) is tuple and args[1:] == (Ellipsis,) else None


def _parts(annotation: Any) -> list[Any]:
    """Return the annotations that this one consists of."""
    if attrs.has(annotation):
        return [part for _, part in _fields(annotation)]
    return [part for part in get_args(annotation) if part is not Ellipsis]


def _is_enum(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Enum)


def _is_packed_once(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, PackedOnce)


def _holds_packed_once(annotation: Any) -> bool:
    return _is_packed_once(annotation) or any(map(_holds_packed_once, _parts(annotation)))


def _unknown(annotation: Any) -> TypeError:
    return TypeError(f"a message has a field of type {annotation}, which the wire cannot encode")


# --- encoding ---------------------------------------------------------------------------------------------------


def _as_it_is(value: object) -> object:
    return value


@cache
def _encoder(annotation: Any) -> _Encode:
    """Return the function from a value to something that msgpack packs in one call."""
    if annotation in _SCALARS or annotation is NoneType:
        return _as_it_is
    if _is_enum(annotation):
        return attrgetter("value")
    if attrs.has(annotation):
        return _message_encoder(annotation)
    if (present := _optional(annotation)) is not None:
        return _optional_encoder(_encoder(present))
    if (element := _repeated(annotation)) is not None:
        return _repeated_encoder(_encoder(element))
    if get_origin(annotation) is tuple:
        return _tuple_encoder([_encoder(part) for part in get_args(annotation)])
    raise _unknown(annotation)


def _optional_encoder(encode_present: _Encode) -> _Encode:
    if encode_present is _as_it_is:
        return _as_it_is
    return lambda value: None if value is None else encode_present(value)


def _repeated_encoder(encode_element: _Encode) -> _Encode:
    if encode_element is _as_it_is:
        return _as_it_is
    return lambda values: [encode_element(value) for value in values]


def _tuple_encoder(encoders: list[_Encode]) -> _Encode:
    if all(encode_part is _as_it_is for encode_part in encoders):
        return _as_it_is
    return lambda values: [encode_part(value) for encode_part, value in zip(encoders, values, strict=True)]


def _message_encoder(cls: type) -> _Encode:
    names = [attribute.name for attribute, _ in _fields(cls)]
    encoders = [_encoder(annotation) for _, annotation in _fields(cls)]
    # All fields are scalars, as in most messages: one call in C takes them all.
    if len(names) > 1 and all(encode_field is _as_it_is for encode_field in encoders):
        return attrgetter(*names)
    if len(names) < 2:  # noqa: PLR2004  attrgetter returns a tuple only for more
        fields = list(zip(names, encoders, strict=True))
        return lambda message: [encode_field(getattr(message, name)) for name, encode_field in fields]
    # Otherwise take all fields in one call, and encode only those that need it.
    take = attrgetter(*names)
    others = [(at, encode_field) for at, encode_field in enumerate(encoders) if encode_field is not _as_it_is]

    def encode_message(message: object) -> list[Any]:
        values = list(take(message))
        for at, encode_field in others:
            values[at] = encode_field(values[at])
        return values

    return encode_message


@cache
def _packer(annotation: Any) -> _Pack:
    """Return the function that packs a value: in one call, unless parts of it are packed once and spliced in."""
    if not _holds_packed_once(annotation):
        encode_value = _encoder(annotation)
        return lambda value: _pack(encode_value(value))
    if _is_packed_once(annotation):
        return _cached_packer(annotation)
    if attrs.has(annotation):
        return _splicing_packer(annotation)
    if (present := _optional(annotation)) is not None:
        pack_present = _packer(present)
        return lambda value: _NIL if value is None else pack_present(value)
    if (element := _repeated(annotation)) is not None:
        pack_element = _packer(element)
        return lambda values: _array_header(len(values)) + b"".join(map(pack_element, values))
    raise _unknown(annotation)


def _cached_packer(cls: type[PackedOnce]) -> _Pack:
    encode_message = _message_encoder(cls)

    def pack(message: PackedOnce) -> bytes:
        try:
            return message.packed
        except AttributeError:
            packed: bytes = _pack(encode_message(message))
            object.__setattr__(message, "packed", packed)
            return packed

    return pack


def _splicing_packer(cls: type) -> _Pack:
    fields = [(attribute.name, _packer(annotation)) for attribute, annotation in _fields(cls)]
    header = _array_header(len(fields))
    return lambda message: header + b"".join([pack(getattr(message, name)) for name, pack in fields])


def _array_header(length: int) -> bytes:
    header: bytes = msgpack.Packer().pack_array_header(length)
    return header


# --- decoding ---------------------------------------------------------------------------------------------------


@cache
def _decoder(annotation: Any) -> _Decode:
    """Return the function that converts an unpacked value to the annotated type. It raises CodecError for others."""
    if annotation in _SCALARS:
        return _scalar_decoder(annotation)
    if _is_enum(annotation):
        return _enum_decoder(annotation)
    if attrs.has(annotation):
        return _message_decoder(annotation)
    if (present := _optional(annotation)) is not None:
        decode_present = _decoder(present)
        return lambda value: None if value is None else decode_present(value)
    if (element := _repeated(annotation)) is not None:
        return _scalars_decoder(element) if element in _SCALARS else _repeated_decoder(_decoder(element))
    if get_origin(annotation) is tuple:
        return _tuple_decoder([_decoder(part) for part in get_args(annotation)])
    raise _unknown(annotation)


def _mismatch(expected: str, value: object) -> CodecError:
    return CodecError(f"expected {expected}, found {type(value).__name__}")


def _scalar_decoder(scalar: type) -> _Decode:
    def decode_scalar(value: object) -> object:
        if type(value) is not scalar:
            raise _mismatch(scalar.__name__, value)
        return value

    return decode_scalar


def _enum_decoder(enum: type[Enum]) -> _Decode:
    members = {member.value: member for member in enum}
    types = {type(value) for value in members}
    fallback = ErrorCode.UNKNOWN_SERVER_ERROR if enum is ErrorCode else None  # a newer peer may know more codes

    def decode_enum(value: object) -> Enum:
        member = members.get(value, fallback) if type(value) in types else None
        if member is None:
            raise CodecError(f"{value!r:.40} is not a value of {enum.__name__}")
        return member

    return decode_enum


def _scalars_decoder(scalar: type) -> _Decode:
    def decode_scalars(values: object) -> object:
        if type(values) is not tuple:
            raise _mismatch("array", values)
        for value in values:
            if type(value) is not scalar:
                raise _mismatch(scalar.__name__, value)
        return values

    return decode_scalars


def _repeated_decoder(decode_element: _Decode) -> _Decode:
    def decode_elements(values: object) -> tuple[Any, ...]:
        if type(values) is not tuple:
            raise _mismatch("array", values)
        return tuple([decode_element(value) for value in values])

    return decode_elements


def _tuple_decoder(decoders: list[_Decode]) -> _Decode:
    def decode_tuple(values: object) -> tuple[Any, ...]:
        if type(values) is not tuple or len(values) != len(decoders):
            raise _mismatch(f"array of {len(decoders)}", values)
        return tuple([decode_part(value) for decode_part, value in zip(decoders, values, strict=True)])

    return decode_tuple


def _usual_type(annotation: Any) -> type:
    """Return the type that an unpacked value usually has; values of other types take the slower path."""
    if annotation in _SCALARS:
        scalar: type = annotation
        return scalar
    return type(next(iter(annotation)).value) if _is_enum(annotation) else tuple


def _message_decoder(cls: type) -> _Decode:
    fields = _fields(cls)
    decoders = [_decoder(annotation) for _, annotation in fields]
    required = sum(attribute.default is attrs.NOTHING for attribute, _ in fields)
    types = tuple(_usual_type(annotation) for _, annotation in fields)
    others = [(at, decoders[at]) for at, (_, annotation) in enumerate(fields) if annotation not in _SCALARS]

    def decode_message(values: object) -> object:
        if type(values) is not tuple or len(values) < required:
            raise _mismatch(f"{cls.__name__} as an array of {required} or more", values)
        try:
            if tuple(map(type, values)) != types:
                return cls(*[decode_field(value) for decode_field, value in zip(decoders, values, strict=False)])
            # The usual case: one comparison has checked all scalars, so only the other fields need decoding.
            known = list(values)
            for at, decode_field in others:
                known[at] = decode_field(known[at])
            return cls(*known)
        except CodecError as error:
            raise CodecError(f"{cls.__name__}: {error}") from None

    return decode_message
