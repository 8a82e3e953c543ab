"""Exponential back-off with jitter."""

from __future__ import annotations

from collections.abc import Callable


class Backoff:
    """Delays that double from `base` up to `maximum` seconds, each of them shortened at random by up to a half.

    `jitter` draws from [0, 1). It spreads the retries of clients that failed together, and is injected so that a run
    can be replayed.
    """

    def __init__(self, base: float = 0.1, maximum: float = 10.0, *, jitter: Callable[[], float]) -> None:
        self._base = base
        self._maximum = maximum
        self._jitter = jitter
        self._ceiling = base

    def next(self) -> float:
        """Return the seconds to wait after another failure."""
        ceiling = min(self._ceiling, self._maximum)
        self._ceiling = min(2 * ceiling, self._maximum)
        return ceiling * (1 + self._jitter()) / 2

    def reset(self) -> None:
        """Start again at the base, after a success."""
        self._ceiling = self._base
