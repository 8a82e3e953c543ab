"""The encoding of messages in msgpack.

A message is the array of its fields in order. Nested messages are nested arrays, tuples are arrays, an Enum is its
value, and None is nil. Decoding is strict about types (a bool is not an int), ignores unknown trailing elements, and
gives missing trailing fields their defaults, so that old and new versions of a message can read each other.

Rows that are sent to several brokers are encoded once, and their bytes are spliced in.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Final, TypeVar, cast, get_args, get_origin

import msgpack
import msgspec
from msgspec.structs import FieldInfo, astuple, fields

from transport.messages import Message
from transport.messages.shared import SharedRows
from transport.wire.errors import CodecError

M = TypeVar("M")

_PACK: Final = msgspec.msgpack.Encoder().encode
_SCANNER: Final = msgspec.msgpack.Decoder(msgspec.Raw)


def encode(message: object) -> bytes:
    """Pack a message, or a value that a field may have. Raises CodecError for a value that msgpack does not have."""
    try:
        shared = getattr(message, "partitions", None)
        return _PACK(message) if type(shared) is not SharedRows else _PACK(_spliced(cast("Message", message), shared))
    except (TypeError, ValueError, OverflowError) as error:
        raise CodecError(f"{type(message).__name__} cannot be encoded: {error}") from error


def _spliced(message: Message, shared: SharedRows[object]) -> tuple[object, ...]:
    """Return the fields of a message, with bytes in place of its shared rows."""
    rows = shared.whole("msgpack", _packed_rows)
    return tuple([rows if value is shared else value for value in astuple(message)])


def _packed_rows(rows: SharedRows[object]) -> msgspec.Raw:
    if not rows.has_pieces:
        return msgspec.Raw(_PACK(rows))
    header: bytes = msgpack.Packer().pack_array_header(len(rows))
    return msgspec.Raw(b"".join([header, *rows.pieces("msgpack", _PACK)]))


def decode(cls: type[M], body: bytes) -> M:
    """Unpack a body that must be exactly one message of class `cls`. Raises CodecError."""
    try:
        # A scan that builds no objects rejects excessive nesting, and arrays that claim to be longer than the body.
        _SCANNER.decode(body)
        return msgspec.msgpack.decode(body, type=cls)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return convert(_unpack(body), cls, cls.__name__)  # slower, but it tells what is wrong


def convert(value: object, annotation: type[M], name: str) -> M:
    """Convert an unpacked value to a message or to the type of a field. Raises CodecError, which names `name`."""
    try:
        return msgspec.convert(value, annotation)
    except msgspec.ValidationError as error:
        raise CodecError(f"{name}: {error}") from None


def _unpack(body: bytes) -> object:
    scanner = msgpack.Unpacker(max_buffer_size=max(len(body), 1))
    scanner.feed(body)
    try:
        scanner.skip()
        return msgpack.unpackb(body, use_list=False, max_ext_len=0)
    except (msgpack.UnpackException, ValueError, RecursionError) as error:
        raise CodecError(f"not msgpack within limits: {type(error).__name__} {error}") from None


@cache
def layout(cls: type[Message]) -> tuple[FieldInfo, ...]:
    """Return the fields of a message class in order."""
    return fields(cls)


def is_list(field: FieldInfo) -> bool:
    """Return whether the type of a field is `tuple[X, ...]` or `tuple[X, ...] | None`."""
    options = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
    return any(get_origin(option) is tuple and get_args(option)[1:] == (Ellipsis,) for option in options)
