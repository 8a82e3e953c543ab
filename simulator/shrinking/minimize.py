"""Delta debugging (Zeller and Hildebrandt, 2002): which items of a failing plan are needed for it to fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from simulator.random_run.plan import RunPlan
from simulator.shrinking.trials import Trials

T = TypeVar("T")


def minimize(trials: Trials, items: Sequence[T], build: Callable[[tuple[T, ...]], RunPlan | None]) -> None:
    """Try the plan without each part of the items: all of them, then halves, quarters and so on, the last ones first.

    `build` returns the plan with some of the items, or None if there is none.
    """
    left = tuple(items)
    size = len(left)
    while size:
        end: int = len(left)
        while end > 0:
            cuts = [(max(start, 0), start + size) for start in range(end - size, -size, -size)]
            place = trials.first(build(left[:start] + left[stop:]) for start, stop in cuts)
            if place is None:
                break
            end, stop = cuts[place]
            left = left[:end] + left[stop:]
        size = min(size, len(left) + 1) // 2
