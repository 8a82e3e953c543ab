"""The measurement of elapsed time and of this process's processor time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen


@frozen
class Times:
    """Seconds on the wall clock, and seconds of this process's processor time."""

    wall: float
    processor: float

    def __add__(self, other: Times) -> Times:
        return Times(self.wall + other.wall, self.processor + other.processor)


NO_TIME = Times(0.0, 0.0)


@contextmanager
def taking_time() -> Iterator[list[Times]]:
    """Measure the block; the yielded list contains its times afterwards."""
    taken: list[Times] = []
    wall, processor = time.perf_counter(), time.process_time()
    yield taken
    taken.append(Times(time.perf_counter() - wall, time.process_time() - processor))
