"""The encoding of primitives: fixed sizes, strings, bytes and ids, with plain and compact lengths.

A plain length is a big-endian INT16 (strings) or INT32 (bytes and arrays), -1 for null. A compact length is an unsigned
varint of the length + 1, 0 for null (KIP-482). Readers take a buffer and an index and return a value and the index
after it. They raise CodecError for anything that a buffer cannot hold, before they allocate memory for it.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from struct import Struct, error as struct_error
from typing import Final

from transport.wire.errors import CodecError

_MAX_VARINT_BYTES: Final = 5
_MAX_VARINT: Final = 0xFFFF_FFFF
_CONTINUES: Final = 0x80
_MAX_PLAIN_STRING: Final = 0x7FFF
UUID_BYTES: Final = 16
_ZERO_UUID: Final = bytes(UUID_BYTES)
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")


def pack_varint(value: int) -> bytes:
    """Return an unsigned varint."""
    if value < _CONTINUES:
        return bytes((value,))
    packed = bytearray()
    while value >= _CONTINUES:
        packed.append(value & 0x7F | _CONTINUES)
        value >>= 7
    packed.append(value)
    return bytes(packed)


def read_varint(buffer: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits."""
    # Most are small.
    if at < len(buffer) and buffer[at] < _CONTINUES:
        return buffer[at], at + 1
    value = 0
    for place in range(_MAX_VARINT_BYTES):
        if at + place >= len(buffer):
            raise CodecError("ends in the middle of a varint")
        byte = buffer[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < _CONTINUES:
            if value > _MAX_VARINT:
                break
            return value, at + place + 1
    raise CodecError("has a varint of more than 32 bits")


def pack_length(length: int | None, *, is_compact: bool) -> bytes:
    """Return the length of an array or of bytes; None stands for null."""
    if is_compact:
        return pack_varint(0 if length is None else length + 1)
    return _INT.pack(-1 if length is None else length)


def read_length(buffer: bytes, at: int, *, is_compact: bool, is_string: bool = False) -> tuple[int, int]:
    """Read a length, -1 for null. Raises CodecError for one that is longer than the rest of the buffer."""
    if is_compact:
        length, at = read_varint(buffer, at)
        length -= 1
    else:
        length, at = read_fixed(_SHORT if is_string else _INT, buffer, at)
    if length < -1 or length > len(buffer) - at:
        raise CodecError(f"claims a length of {length}, with {len(buffer) - at} bytes left")
    return length, at


def read_fixed(layout: Struct, buffer: bytes, at: int) -> tuple[int, int]:
    """Read one value of a fixed size."""
    try:
        (value,) = layout.unpack_from(buffer, at)
    except struct_error:
        raise CodecError("ends in the middle of a number") from None
    return value, at + layout.size


def pack_string(value: str | None, *, is_compact: bool) -> bytes:
    """Return a string in UTF-8."""
    if value is None:
        return b"\0" if is_compact else b"\xff\xff"
    data = value.encode()
    if is_compact:
        return pack_varint(len(data) + 1) + data
    if len(data) > _MAX_PLAIN_STRING:
        raise CodecError(f"a string of {len(data)} bytes is too long")
    return _SHORT.pack(len(data)) + data


def read_string(buffer: bytes, at: int, *, is_compact: bool) -> tuple[str | None, int]:
    """Read a string."""
    length, at = read_length(buffer, at, is_compact=is_compact, is_string=True)
    if length < 0:
        return None, at
    try:
        return buffer[at : at + length].decode(), at + length
    except UnicodeDecodeError:
        raise CodecError("has a string that is not UTF-8") from None


def pack_bytes(value: bytes | None, *, is_compact: bool) -> bytes:
    """Return bytes after their length."""
    return pack_length(None if value is None else len(value), is_compact=is_compact) + (value or b"")


def read_bytes(buffer: bytes, at: int, *, is_compact: bool) -> tuple[bytes | None, int]:
    """Read bytes."""
    length, at = read_length(buffer, at, is_compact=is_compact)
    return (None, at) if length < 0 else (buffer[at : at + length], at + length)


@lru_cache(100_000)
def pack_uuid(text: str) -> bytes:
    """Return the 16 bytes of a topic id. Raises CodecError if the text is none."""
    if not text:
        return _ZERO_UUID
    try:
        data = urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != UUID_BYTES:
        raise CodecError(f"{text!r} is not a topic id")
    return data


def read_uuid(buffer: bytes, at: int) -> tuple[str, int]:
    """Read a topic id."""
    data = buffer[at : at + UUID_BYTES]
    if len(data) < UUID_BYTES:
        raise CodecError("ends in the middle of an id")
    return uuid_text(data), at + UUID_BYTES


@lru_cache(100_000)
def uuid_text(data: bytes) -> str:
    """Return the text of a topic id; "" for the id of zeros."""
    return "" if data == _ZERO_UUID else urlsafe_b64encode(data).decode().rstrip("=")
