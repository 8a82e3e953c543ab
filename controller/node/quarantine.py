"""Quarantine for subjects that repeatedly make the controller fail, so that one bad row does not cost every office.

The subject (a topic or a request) that was being processed when a fault occurred is recorded. After `FAULTS` faults
within `WINDOW_SECONDS`, this process ignores the subject for `QUARANTINE_SECONDS`. A change of a topic's znode does not
end the quarantine early: such changes are exactly what is refused, as each would cost the office again. Undecodable
data never get here, because handlers detect them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from typing import Final

from attrs import define, field

from controller.events import ControllerEvent, RequestEvent
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger

log = get_logger(__name__)

FAULTS: Final = 3
WINDOW_SECONDS: Final = 60.0
QUARANTINE_SECONDS: Final = 3600.0
CAPACITY: Final = 1000
"""The most subjects remembered; the oldest is dropped first."""


@define
class Quarantine:
    """Counts faults by subject. Times are those of `trio.current_time()`, in seconds."""

    _last_fault: float = field(default=-math.inf, init=False)
    _faults: dict[Hashable, deque[float]] = field(factory=dict, init=False)
    _set_aside: dict[Hashable, None] = field(factory=dict, init=False)

    def __len__(self) -> int:
        """Return the number of subjects in quarantine."""
        return len(self._set_aside)

    def __contains__(self, subject: Hashable) -> bool:
        """Return whether a subject is in quarantine."""
        return subject in self._set_aside

    def names(self) -> tuple[str, ...]:
        """Return the sorted names of the subjects in quarantine (see `name_of`)."""
        return tuple(sorted({name_of(subject) for subject in self._set_aside}))

    def is_wary(self, now: float) -> bool:
        """Return whether there was a fault recently, so that its subject should be processed alone if it returns."""
        return now - self._last_fault <= WINDOW_SECONDS

    def fault(self, subject: Hashable | None, now: float) -> bool:
        """Record a fault; return whether it puts the subject, if there is one, into quarantine."""
        self._last_fault = now
        if subject is None:
            return False
        times = self._faults.setdefault(subject, deque(maxlen=FAULTS))
        times.append(now)
        _bound(self._faults)
        if len(times) < FAULTS or now - times[0] > WINDOW_SECONDS:
            return False
        self._set_aside[subject] = None
        _bound(self._set_aside)
        log.error("set aside after repeated faults", subject=name_of(subject), hours=QUARANTINE_SECONDS / 3600)
        return True

    def release(self, subject: Hashable) -> None:
        """End a subject's quarantine and forget its faults."""
        self._faults.pop(subject, None)
        self._set_aside.pop(subject, None)


def name_of(subject: Hashable) -> str:
    """Return a loggable name: that of a topic, or the kind of a request, whose content may be secret."""
    return subject if isinstance(subject, str) else type(subject).__name__.removesuffix("Request")


def refuse(event: ControllerEvent) -> None:
    """Log that an event in quarantine is not processed; a request is answered with an error."""
    log.warning("not processed: it made the controller fail repeatedly", during=event.name)
    if isinstance(event, RequestEvent):
        text = "this request made the controller fail repeatedly and is set aside: see the controller's log"
        event.answer(ApiError(ErrorCode.INVALID_REQUEST, text))
    event.preempt()


def _bound(subjects: dict[Hashable, deque[float]] | dict[Hashable, None]) -> None:
    while len(subjects) > CAPACITY:
        del subjects[next(iter(subjects))]
