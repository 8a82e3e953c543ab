"""How long to wait before trying again."""

from __future__ import annotations

from collections.abc import Callable


class Backoff:
    """Exponential back-off: seconds that double from `base` up to `maximum`, the upper half of each left to chance.

    `jitter` draws from [0, 1): it spreads those who failed together, and is injected so that a run can be replayed.
    """

    def __init__(self, base: float = 0.1, maximum: float = 10.0, *, jitter: Callable[[], float]) -> None:
        self._base = base
        self._maximum = maximum
        self._jitter = jitter
        self._ceiling = base

    def next(self) -> float:
        """Return the seconds to wait after one more failure."""
        ceiling = min(self._ceiling, self._maximum)
        self._ceiling = min(2 * ceiling, self._maximum)
        return ceiling * (1 + self._jitter()) / 2

    def reset(self) -> None:
        """Begin again at the base, after a success."""
        self._ceiling = self._base
