"""Scenarios whose events do not wait for each other: they are the plans of random runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from simulator.random_run.happenings import AtStep, Happening
from simulator.random_run.plan import RunPlan
from simulator.scenario.faults import Fault, Unreadable
from simulator.scenario.model import Expectations, LoadPlan, Scenario, ScenarioEvent, Trigger
from simulator.scenario.nouns import Reach
from simulator.steps import Moment

MOMENTS: Final = {
    Reach.DECIDES: Moment.DECIDED,
    Reach.COMMITS: Moment.COMMITTED,
    Reach.PUBLISHES: Moment.PUBLISHED,
}
"""The moments of rounds at which such an event can happen."""


def check_disorder(events: Iterable[ScenarioEvent]) -> None:
    """Raise Unreadable for events that only make sense in order."""
    faults = [Fault(event.line, 1, fault) for event in events if (fault := _fault(event)) is not None]
    if faults:
        raise Unreadable(*faults)


def _fault(event: ScenarioEvent) -> str | None:
    trigger = event.trigger
    if event.action is None or event.expect != Expectations() or event.waits_for is not None:
        return "an event that is not in order does something and expects nothing: write expect at the end of the file"
    if trigger.when is None and trigger.after:
        return "no event comes before one that is not in order: write at instead of after"
    if trigger.when is not None and trigger.when.reach not in MOMENTS:
        return "an event that is not in order has an exact moment: write commits or publishes instead of reaches"
    return None


def plan_of(scenario: Scenario, seed: int) -> RunPlan:
    """Return the plan of a scenario whose events are not in order."""
    happenings = [_happening(event.trigger, event) for event in scenario.events]
    happenings.sort(key=lambda happening: happening.at)
    load = scenario.load or LoadPlan(0.0)
    partitions = tuple(f"{topic.name}-{number}" for topic in scenario.topics for number in range(topic.count))
    last = max((happening.at for happening in happenings), default=0.0)
    return RunPlan(
        seed,
        scenario.settings,
        scenario.topics,
        scenario.records,
        load=(load.partitions or partitions) if scenario.load else (),
        records_per_second=load.per_second,
        features=(),
        happenings=tuple(happenings),
        seconds=last if scenario.lasts is None else scenario.lasts,
    )


def _happening(trigger: Trigger, event: ScenarioEvent) -> Happening:
    assert event.action is not None, "it was checked"
    when = trigger.when
    step = None if when is None else AtStep(when.round, MOMENTS[when.reach], trigger.after, when.partition)
    return Happening(trigger.at or 0.0, step, event.action)
