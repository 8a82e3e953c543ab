"""Sequential znodes by which brokers notify the controller: processed together, then deleted.

If processing them fails, they need not survive: such a fault costs the office, and the next controllership deletes all
notifications before it loads everything that they could be about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from controller.model.rounds import Rounds, Step, children, commit, logged, read
from transport.log import get_logger
from transport.store import formats
from transport.store.protocol import Delete

T = TypeVar("T")

log = get_logger(__name__)

Entries = tuple[str, ...]
"""Paths of notifications."""


def load(parent: str, decode: Callable[[str, bytes], T]) -> Rounds[tuple[Entries, list[T]]]:
    """Read the notifications below `parent`, and watch for more; return their paths and the decoded values."""
    names = yield from children(parent, watch=True)
    entries = tuple(f"{parent}/{name}" for name in names)
    znodes = yield from read(entries)
    found = []
    for path, znode in zip(entries, znodes, strict=True):
        if znode is None:
            continue
        try:
            found.append(decode(path, znode.data))
        except formats.UndecodableZnode as fault:
            log.error("notification removed: it cannot be decoded", fault=str(fault))
    return entries, found


def remove(entries: Iterable[str]) -> Rounds[None]:
    """Delete notifications; some may have been deleted already."""
    deletes = [Step(writes=(Delete(path),)) for path in entries]
    stay = logged("these notifications stay, and are processed again together with each new one")
    yield from commit("notifications", deletes, on_rejected=stay)


def clear(parent: str) -> Rounds[None]:
    """Delete the notifications below `parent` unread, and watch for more."""
    names = yield from children(parent, watch=True)
    yield from remove(f"{parent}/{name}" for name in names)
