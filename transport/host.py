"""The only access to the host's wall clock and randomness.

Code that decides or is replayed takes a `Host`, so that a simulation can pass its own. No other module may read the
wall clock or draw a random number (`make lint` checks this).
"""

from __future__ import annotations

import base64
import ctypes
import random
import time
from collections.abc import Awaitable, Callable

import trio
from attrs import field, frozen

from transport import pages


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def _trim() -> None:
    """Let glibc give back what it keeps; other libraries have no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


async def _has_file(path: str) -> bool:
    return await trio.Path(path).exists()


@frozen
class Host:
    """The inputs that a process takes from its host, apart from I/O."""

    now_ms: Callable[[], int] = _wall_clock_ms
    """Milliseconds since 1970 (UTC), for timestamps in znodes and for people; not for measuring durations."""

    rng: random.Random = field(factory=random.SystemRandom)
    """The only source of randomness: ids, jitter, placement."""

    give_back_memory: Callable[[], None] = _trim
    """Gives memory that is free back to the system."""

    has_file: Callable[[str], Awaitable[bool]] = _has_file
    """Tells whether a file exists, by which operators tell a process something."""

    page_fault: Callable[[str], Awaitable[str | None]] = pages.page_fault
    """Returns why a page of an operator says no, None if it says yes."""

    def new_id(self) -> str:
        """Return a new 128-bit id as 22 characters of base64url, the form of Kafka's topic ids."""
        return base64.urlsafe_b64encode(self.rng.randbytes(16)).rstrip(b"=").decode()
