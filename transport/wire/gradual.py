"""Requests with long lists: decoded in slices, so that other tasks get their turns, and rejected above a limit.

The limit is `max_listed` of the request's class. A request without a limit is decoded in one go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

import msgpack
import trio
from msgspec.structs import FieldInfo

from transport.errors import ApiError, ErrorCode
from transport.messages import Request
from transport.wire.codec import convert, decode, is_list, layout
from transport.wire.errors import CodecError

M = TypeVar("M", bound=Request[Any])
T = TypeVar("T")

SLICE_BYTES: Final = 64 * 1024
"""The number of bytes decoded before other tasks get their turns."""

MAX_ENTRY_BYTES: Final = 2 * 1024 * 1024
"""The most bytes in one entry of a list, because its subject must fit into a znode."""

MAX_NESTED: Final = 2_000_000
"""The most fields and elements that the entries of all lists of a request may have together."""


async def decode_request(cls: type[M], body: bytes) -> M:
    """Unpack a request as `decode` does.

    Raises CodecError, or ApiError(INVALID_REQUEST) if the request lists too many entries.
    """
    if cls.max_listed is None:
        return decode(cls, body)
    if len(body) > SLICE_BYTES:
        return cls(*await _Slices(cls, body, cls.max_listed).decode())
    message = decode(cls, body)
    for name in _lists(cls):
        _require_few(cls, name, len(getattr(message, name) or ()), cls.max_listed)
    return message


@cache
def _lists(cls: type[Request[Any]]) -> tuple[str, ...]:
    """Return the names of the fields that are lists."""
    return tuple(field.name for field in layout(cls) if is_list(field))


def _require_few(cls: type[Request[Any]], name: str, listed: int, limit: int) -> None:
    if listed > limit:
        raise _too_large(cls, f"{name} lists {listed:,} entries, more than the limit of {limit:,}")


def _too_large(cls: type[Request[Any]], fault: str) -> ApiError:
    api = cls.__name__.removesuffix("Request")
    return ApiError(ErrorCode.INVALID_REQUEST, f"This {api} is too large: {fault}. Split it into several requests.")


class _Slices:
    """The body of one request. Each slice is scanned without building objects before it is unpacked."""

    def __init__(self, cls: type[Request[Any]], body: bytes, limit: int) -> None:
        self._cls = cls
        self._body = body
        self._limit = limit
        self._scanner = msgpack.Unpacker(max_buffer_size=len(body))
        self._fed = 0
        self._at = 0
        self._nested = 0

    async def decode(self) -> list[object]:
        """Return the values of the fields. Raises CodecError or ApiError."""
        fields = layout(self._cls)
        try:
            count = self._scan(self._scanner.read_array_header)
            values = [await self._value(field) for field in fields[:count]]
            for _ in range(len(fields), count):
                self._scan(self._scanner.skip)  # fields of a newer version
        except (msgpack.UnpackException, ValueError, RecursionError) as error:
            raise CodecError(f"not msgpack within limits: {type(error).__name__} {error}") from None
        if self._at != len(self._body) or count < sum(field.required for field in fields):
            raise CodecError(f"expected {self._cls.__name__} as an array of its fields, and nothing else")
        return values

    async def _value(self, field: FieldInfo) -> object:
        is_listed = is_list(field) and self._body[self._at : self._at + 1] != b"\xc0"
        return await self._list(field) if is_listed else self._converted(field, self._unpack(1)[0])

    async def _list(self, field: FieldInfo) -> tuple[Any, ...]:
        left = self._scan(self._scanner.read_array_header)
        _require_few(self._cls, field.name, left, self._limit)
        values: list[Any] = []
        while left:
            part = self._unpack(left)
            values += self._converted(field, part)
            left -= len(part)
            await trio.lowlevel.checkpoint()
        return tuple(values)

    def _converted(self, field: FieldInfo, value: object) -> Any:  # noqa: ANN401  as the field
        return convert(value, field.type, f"{self._cls.__name__}: {field.name}")

    def _unpack(self, most: int) -> tuple[Any, ...]:
        """Return the next values, at most one slice and at most `most` values."""
        start, count = self._at, 0
        while count < most and self._at - start < SLICE_BYTES:
            self._scan(self._scanner.skip)
            count += 1
        header: bytes = msgpack.Packer().pack_array_header(count)
        part: tuple[Any, ...] = msgpack.unpackb(
            header + self._body[start : self._at], use_list=False, max_ext_len=0, list_hook=self._count
        )
        return part

    def _count(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        self._nested += len(values)
        if self._nested > MAX_NESTED:
            raise _too_large(self._cls, f"its entries have more than {MAX_NESTED:,} fields and entries together")
        return values

    def _scan(self, read: Callable[[], T]) -> T:
        """Call a method of the scanner, and feed the scanner as needed."""
        while True:
            try:
                found = read()
            except msgpack.OutOfData:
                # The scanner has this much of a single entry, and asks for more.
                if self._fed - self._at > MAX_ENTRY_BYTES:
                    raise _too_large(self._cls, f"an entry has more than {MAX_ENTRY_BYTES:,} bytes") from None
                if self._fed == len(self._body):
                    raise
                self._scanner.feed(self._body[self._fed : self._fed + SLICE_BYTES])
                self._fed = min(self._fed + SLICE_BYTES, len(self._body))
            else:
                self._at = self._scanner.tell()
                return found
