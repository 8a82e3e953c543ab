"""Rounds the times of a plan, and makes the run shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from operator import attrgetter
from typing import Final

from attrs import evolve

from simulator.random_run.happenings import Happening
from simulator.random_run.plan import RunPlan
from simulator.shrinking.actions import rounder
from simulator.shrinking.trials import Trials

_PAUSES: Final = (0.0, 1.0, 2.0, 5.0, 10.0)
"""Seconds between two events."""

_SECONDS_AFTER: Final = (0, 1, 2, 5, 10)
"""Seconds between the last event and the end of the faults."""


def shorten(trials: Trials) -> None:
    """Try to end the faults soon after the last event."""
    plan = trials.best
    last = ceil(max((happening.at for happening in plan.happenings), default=0.0))
    ends = [float(last + seconds) for seconds in _SECONDS_AFTER]
    trials.first(evolve(plan, seconds=end) for end in [*ends, *rounder(plan.seconds)] if end < plan.seconds)


def round_times(trials: Trials) -> None:
    """Try one event a second, all times rounded, shorter pauses, and each time rounded."""
    trials.first(_all_rounder(trials.best))
    for place in range(len(trials.best.happenings)):
        trials.first(_sooner(trials.best, place))
        trials.first(_each_rounder(trials.best, place))


def _all_rounder(plan: RunPlan) -> Iterator[RunPlan]:
    times = sorted({happening.at for happening in plan.happenings})
    evenly = {at: float(number) for number, at in enumerate(times, 1)}
    yield _timed(plan, lambda happening: evenly[happening.at])
    if times:
        yield _timed(plan, lambda happening: happening.at - times[0] + 1.0)
    for digits in range(3):
        yield _timed(plan, lambda happening, digits=digits: round(happening.at, digits))  # type: ignore[misc]


def _sooner(plan: RunPlan, place: int) -> Iterator[RunPlan]:
    """Yield plans with a shorter pause before an event, and all later ones as much earlier."""
    at = plan.happenings[place].at
    before = plan.happenings[place - 1].at if place else 0.0
    for pause in _PAUSES if place else _PAUSES[1:]:
        less = at - before - pause
        if less > 0:
            earlier = [evolve(each, at=each.at - less) for each in plan.happenings[place:]]
            yield evolve(_in_order(plan, [*plan.happenings[:place], *earlier]), seconds=plan.seconds - less)


def _each_rounder(plan: RunPlan, place: int) -> Iterator[RunPlan]:
    happening = plan.happenings[place]
    before = plan.happenings[place - 1].at if place else 0.0
    times = [*rounder(happening.at)]
    if happening.step is not None:
        times = [time for time in (0.0, before) if time < happening.at] + times
    for at in times:
        yield _with(plan, place, evolve(happening, at=at))
    if happening.step is not None:
        for delay in rounder(happening.step.delay):
            yield _with(plan, place, evolve(happening, step=evolve(happening.step, delay=delay)))


def _timed(plan: RunPlan, time_of: Callable[[Happening], float]) -> RunPlan:
    return _in_order(plan, [evolve(happening, at=time_of(happening)) for happening in plan.happenings])


def _with(plan: RunPlan, place: int, happening: Happening) -> RunPlan:
    return _in_order(plan, [*plan.happenings[:place], happening, *plan.happenings[place + 1 :]])


def _in_order(plan: RunPlan, happenings: list[Happening]) -> RunPlan:
    last = max((happening.at for happening in happenings), default=0.0)
    in_order = tuple(sorted(happenings, key=attrgetter("at")))
    return evolve(plan, happenings=in_order, seconds=max(plan.seconds, last))
