"""The back-off before standing for election again, so that a persistent fault does not become a busy loop."""

from __future__ import annotations

import math
from typing import Final

from attrs import define, field

from actors import Backoff
from transport.log import get_logger

log = get_logger(__name__)

HEALTHY_AFTER_SECONDS: Final = 60.0
KEEPS_FAILING: Final = 5
"""The number of consecutive failures, whatever their cause, after which the log says that they need attention."""


@define
class Standing:
    """The back-off between failures and the next election. Times are those of `trio.current_time()`, in seconds."""

    _backoff: Backoff
    failures: int = field(default=0, init=False)
    """Consecutive failures, that is without `HEALTHY_AFTER_SECONDS` between them."""

    _last: float = field(default=-math.inf, init=False)
    _not_before: float = field(default=-math.inf, init=False)

    def may_stand(self, now: float) -> bool:
        """Return whether the back-off is over."""
        return now >= self._not_before

    def failed(self, now: float) -> float:
        """Record a failure; return the time at which to stand again."""
        if now - self._last > HEALTHY_AFTER_SECONDS:
            self._backoff.reset()
            self.failures = 0
        self.failures += 1
        self._last = now
        delay = self._backoff.next()
        self._not_before = now + delay
        if self.failures >= KEEPS_FAILING:
            log.error(
                "the controller keeps failing: see the errors above, and repair what they name or report them",
                failures=self.failures,
                stands_again_in_seconds=round(delay, 3),
            )
        return self._not_before
