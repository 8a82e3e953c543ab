"""Makes the cluster of a plan smaller and more usual: its topics, its nodes, its load and its settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from attrs import evolve

from simulator.actions.requests import CreateTopic
from simulator.random_run.plan import RunPlan
from simulator.random_run.topology import Replicas
from simulator.scenario.language import SETTINGS
from simulator.settings import Settings
from simulator.shrinking.minimize import minimize
from simulator.shrinking.trials import Trials

_SIZES = frozenset({"brokers", "broker_ids"})


def drop_load(trials: Trials) -> None:
    """Try without producers, and without records."""
    minimize(trials, trials.best.load, partial(_with_load, trials.best))
    plan = trials.best
    trials.first(evolve(plan, records=records) for records in (0, 1) if records < plan.records)
    plan = trials.best
    if plan.load:
        trials.first(evolve(plan, records_per_second=rate) for rate in (1.0, float(round(plan.records_per_second))))


def _with_load(plan: RunPlan, load: tuple[str, ...]) -> RunPlan:
    return evolve(plan, load=load, records_per_second=plan.records_per_second if load else 0.0)


def drop_topics(trials: Trials) -> None:
    """Try with fewer topics, and with fewer partitions of each."""
    minimize(trials, trials.best.topics, partial(_with_topics, trials.best))
    for place, topic in enumerate(trials.best.topics):
        rows = len(topic.assignment)
        fewer = sorted({1, rows // 4, rows // 2} & set(range(1, rows)))
        plan = trials.best
        trials.first(_with_assignment(plan, place, topic.assignment[:count]) for count in fewer)


def drop_replicas(trials: Trials) -> None:
    """Try with fewer replicas of partitions."""
    for place, topic in enumerate(trials.best.topics):
        for number in range(len(topic.assignment)):
            while trials.first(_fewer_replicas(trials.best, place, number)) is not None:
                pass


def _with_topics(plan: RunPlan, topics: tuple[CreateTopic, ...]) -> RunPlan:
    there = {f"{topic.name}-{number}" for topic in topics for number in range(topic.count)}
    return evolve(_with_load(plan, tuple(name for name in plan.load if name in there)), topics=topics)


def _fewer_replicas(plan: RunPlan, place: int, number: int) -> Iterator[RunPlan]:
    rows = plan.topics[place].assignment
    row = rows[number]
    for at in reversed(range(len(row) if len(row) > 1 else 0)):
        yield _with_assignment(plan, place, (*rows[:number], row[:at] + row[at + 1 :], *rows[number + 1 :]))


def _with_assignment(plan: RunPlan, place: int, rows: tuple[Replicas, ...]) -> RunPlan:
    topic = evolve(plan.topics[place], assignment=rows)
    return _with_topics(plan, (*plan.topics[:place], topic, *plan.topics[place + 1 :]))


def drop_nodes(trials: Trials) -> None:
    """Try with fewer brokers, controllers and servers of the ensemble."""
    minimize(trials, trials.best.settings.broker_ids, partial(_with_brokers, trials.best))
    settings = trials.best.settings
    fewer = [evolve(settings, controllers=count) for count in range(1, settings.controllers)]
    _try_settings(trials, fewer)
    settings = trials.best.settings
    _try_settings(trials, [evolve(settings, servers=count) for count in range(1, settings.servers)])


def _try_settings(trials: Trials, candidates: Iterable[Settings]) -> None:
    plan = trials.best
    trials.first(evolve(plan, settings=settings) for settings in candidates)


def _with_brokers(plan: RunPlan, ids: tuple[int, ...]) -> RunPlan | None:
    """Return the plan with these brokers, and the replicas on them; None if a partition would have none."""
    rows = [tuple(tuple(id_ for id_ in row if id_ in ids) for row in topic.assignment) for topic in plan.topics]
    if not ids or not all(row for of_topic in rows for row in of_topic):
        return None
    topics = [evolve(topic, assignment=of_topic) for topic, of_topic in zip(plan.topics, rows, strict=True)]
    settings = evolve(plan.settings, brokers=len(ids), broker_ids=ids)
    return evolve(plan, settings=settings, topics=tuple(topics))


def usual_settings(trials: Trials) -> None:
    """Try with the usual values of settings."""
    settings, usual = trials.best.settings, Settings()
    names = [name for name in SETTINGS if name not in _SIZES and getattr(settings, name) != getattr(usual, name)]
    minimize(trials, names, partial(_with_settings, trials.best))


def _with_settings(plan: RunPlan, kept: tuple[str, ...]) -> RunPlan | None:
    changed = {name: getattr(plan.settings, name) for name in kept}
    ids = plan.settings.broker_ids
    try:
        settings = Settings(brokers=len(ids), broker_ids=ids, **changed)
    except ValueError:
        return None
    return evolve(plan, settings=settings)
