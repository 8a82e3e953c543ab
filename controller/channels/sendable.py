"""The sendable part of a request that cannot be encoded: one bad row stops neither other rows nor the channel."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from transport.messages import Request
from transport.wire import CodecError, encode

Encode = Callable[[Request[object]], bytes]


def without_faults(request: Request[object], encode: Encode = encode) -> tuple[Request[object] | None, list[object]]:
    """Return a request without the rows that `encode` refuses, by default that of our own wire, and those rows.

    A row is an item of one of the request's lists; each is encoded on its own to test it. The request is None if it
    cannot be encoded even without rows, or if no row is at fault.
    """
    lists = request.lists()
    empty = replace(request, **dict.fromkeys(lists, ()))
    # The fault is outside the rows, so leaving out rows does not help.
    if not _is_sendable(empty, encode):
        return None, []
    faults: list[object] = []
    left: dict[str, tuple[object, ...]] = {}
    for name, rows in lists.items():
        verdicts = [_is_sendable(replace(empty, **{name: (row,)}), encode) for row in rows]
        faults += [row for row, is_sound in zip(rows, verdicts, strict=True) if not is_sound]
        left[name] = tuple([row for row, is_sound in zip(rows, verdicts, strict=True) if is_sound])
    return (replace(request, **left) if faults else None), faults


def _is_sendable(message: Request[object], encode: Encode) -> bool:
    try:
        encode(message)
    except CodecError:
        return False
    return True
