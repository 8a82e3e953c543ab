"""What made the controller fail again and again is set aside, so that one bad row does not cost the office for ever.

A subject (a topic, a request) that was being processed when a fault occurred is remembered; after `FAULTS` of them
within `WINDOW_SECONDS` this process does not process it for `QUARANTINE_SECONDS`. A change of a topic's znode does not
end that sooner: it is such changes that are refused, or each would cost the office again. What can be seen to be
undecodable never comes this far.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final

from attrs import define, field

FAULTS: Final = 3
WINDOW_SECONDS: Final = 60.0
QUARANTINE_SECONDS: Final = 3600.0
CAPACITY: Final = 1000
"""How many subjects are remembered; the oldest makes way."""


@define
class Quarantine:
    """Counts faults by subject. Times are those of `trio.current_time()`, in seconds."""

    _faults: dict[Hashable, deque[float]] = field(factory=dict, init=False)
    _set_aside: dict[Hashable, None] = field(factory=dict, init=False)

    def __len__(self) -> int:
        """Count what is set aside."""
        return len(self._set_aside)

    def __contains__(self, subject: Hashable) -> bool:
        """Whether a subject is set aside."""
        return subject in self._set_aside

    def names(self) -> tuple[str, ...]:
        """Return what is set aside, as people call it."""
        return tuple(sorted({name_of(subject) for subject in self._set_aside}))

    def fault(self, subject: Hashable, now: float) -> bool:
        """Remember a fault; True if that was one too many."""
        times = self._faults.setdefault(subject, deque(maxlen=FAULTS))
        times.append(now)
        _bound(self._faults)
        if len(times) < FAULTS or now - times[0] > WINDOW_SECONDS:
            return False
        self._set_aside[subject] = None
        _bound(self._set_aside)
        return True

    def release(self, subject: Hashable) -> None:
        """Process a subject again, with a clean slate."""
        self._faults.pop(subject, None)
        self._set_aside.pop(subject, None)


def name_of(subject: Hashable) -> str:
    """Return what to call a subject: a topic by its name, a request, which may say secrets, by its kind."""
    return subject if isinstance(subject, str) else type(subject).__name__.removesuffix("Request")


def _bound(subjects: dict[Hashable, deque[float]] | dict[Hashable, None]) -> None:
    while len(subjects) > CAPACITY:
        del subjects[next(iter(subjects))]
