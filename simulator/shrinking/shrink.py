"""Makes a failing plan smaller, step by step, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from simulator.random_run.happenings import Happening
from simulator.random_run.plan import RunPlan
from simulator.shrinking.actions import simplify_actions
from simulator.shrinking.clusters import drop_load, drop_nodes, drop_replicas, drop_topics, usual_settings
from simulator.shrinking.minimize import minimize
from simulator.shrinking.names import drop_partitions, number_brokers
from simulator.shrinking.times import round_times, shorten
from simulator.shrinking.trials import Trials

_MANY_PARTITIONS: Final = 30
"""With more, runs are so slow that the topics come before the events."""

_Step = Callable[[Trials], None]


def drop_events(trials: Trials) -> None:
    """Try with fewer events."""
    plan = trials.best

    def build(happenings: tuple[Happening, ...]) -> RunPlan:
        return evolve(plan, happenings=happenings)

    minimize(trials, plan.happenings, build)


_STEPS: Final[tuple[_Step, ...]] = (
    drop_events,
    shorten,
    drop_load,
    drop_topics,
    usual_settings,
    drop_nodes,
    simplify_actions,
    round_times,
    drop_partitions,
    drop_replicas,
    number_brokers,
)
"""The steps, those first that make runs shorter."""


def shrink(trials: Trials) -> None:
    """Make the best plan of the trials smaller until nothing helps any more, or the time is up."""
    if sum(topic.count for topic in trials.best.topics) > _MANY_PARTITIONS:
        drop_topics(trials)
    before: RunPlan | None = None
    while before != trials.best and not trials.is_over:
        before = trials.best
        for step in _STEPS:
            step(trials)
