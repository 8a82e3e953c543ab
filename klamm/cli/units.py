"""Sizes, rates and times as people read them; an unknown value is "unknown"."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rich.filesize import decimal

from transport.messages import UNKNOWN, UNTHROTTLED

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS: Final = ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", _SECOND, "s"))


def size(number: int) -> str:
    """Return a number of bytes in decimal units."""
    return "unknown" if number == UNKNOWN else decimal(number)


def counted(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rate(bytes_per_second: int) -> str:
    """Return a rate, or the text for a throttle that is not set."""
    if bytes_per_second == UNTHROTTLED:
        return "unthrottled"
    return "unknown" if bytes_per_second == UNKNOWN else f"{decimal(bytes_per_second)}/s"


def duration(milliseconds: int) -> str:
    """Return a time span in its two largest units: 2 h 5 min."""
    if milliseconds == UNKNOWN:
        return "unknown"
    for large, large_name, small, small_name in _STEPS:
        if milliseconds >= large:
            count, rest = divmod(milliseconds, large)
            return f"{count} {large_name} {rest // small} {small_name}" if rest >= small else f"{count} {large_name}"
    return f"{max(milliseconds, 0) // _SECOND} s"


def moment(milliseconds: int) -> str:
    """Return a time, given in ms since 1970, in the time zone of this machine."""
    if milliseconds == UNKNOWN:
        return "unknown"
    return f"{datetime.fromtimestamp(milliseconds / 1000, tz=UTC).astimezone():%Y-%m-%d %H:%M:%S}"
