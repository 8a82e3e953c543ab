"""The events of a simulation, in order: enough to compare two runs, and to see why one failed."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import trio

from simulator.frames import describe_frame

LAST: Final = 400
"""Number of entries that a trace keeps, unless it keeps all."""


class Entry(NamedTuple):
    """An event: its virtual time, its kind, its place (a host, or `source>destination`), and its description."""

    time: float
    kind: str
    where: str
    what: str | bytes

    def text(self) -> str:
        """Return the entry as a line."""
        what = self.what if isinstance(self.what, str) else describe_frame(self.what)
        return f"{self.time:11.6f} {self.kind:9} {self.where:28} {what}"

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        what = self.what if isinstance(self.what, str) else describe_frame(self.what)
        return {"time": round(self.time, 6), "kind": self.kind, "where": self.where, "what": what}


class Trace:
    """Every event, round, commit, delivered frame and fault of one run.

    `digest` covers all of them, byte for byte; `entries` are the last ones, or all with `keep_all`.
    """

    def __init__(self, *, keep_all: bool = False) -> None:
        self.entries: deque[Entry] = deque(maxlen=None if keep_all else LAST)
        self.length = 0
        self._has_ended = False
        self._hash = blake2b(digest_size=16)

    def add(self, kind: str, where: str, what: str | bytes) -> None:
        """Add an event that happens now."""
        if self._has_ended:
            return
        now = trio.current_time()
        self.entries.append(Entry(now, kind, where, what))
        self.length += 1
        event = what if isinstance(what, bytes) else what.encode()
        self._hash.update(b"%.9f %b %b %b" % (now, kind.encode(), where.encode(), event))

    def end(self) -> None:
        """Ignore later events: they only belong to the teardown of the simulation."""
        self._has_ended = True

    @property
    def now(self) -> float:
        """The virtual time of the last entry."""
        return self.entries[-1].time if self.entries else 0.0

    @property
    def digest(self) -> str:
        """The hexadecimal hash of all entries so far."""
        return self._hash.hexdigest()

    def last(self, count: int) -> list[str]:
        """Return the last entries as lines."""
        return [entry.text() for entry in list(self.entries)[-count:]]
