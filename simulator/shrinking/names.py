"""Numbers the brokers and the partitions of a plan anew, without gaps, and renames them wherever they are named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar, cast

from attrs import AttrsInstance, evolve, fields

from simulator.actions.scene import LEADER_OF, Action, Request, Strike
from simulator.actions.sessions import Lag
from simulator.random_run.happenings import Happening
from simulator.random_run.plan import RunPlan
from simulator.shrinking.trials import Trials

A = TypeVar("A", bound=Action)

Names = Mapping[int | str, int | str]
"""The new names of brokers and partitions."""

_BROKER: Final = "broker"
"""The field of actions that is one broker."""


def drop_partitions(trials: Trials) -> None:
    """Try without each partition that is not the only one of its topic; later ones take the numbers before theirs."""
    while trials.first(_without_each_partition(trials.best)) is not None:
        pass


def _without_each_partition(plan: RunPlan) -> Iterator[RunPlan]:
    for place, topic in enumerate(plan.topics):
        for number in range(len(topic.assignment) if len(topic.assignment) > 1 else 0):
            later = range(number + 1, len(topic.assignment))
            names: Names = {f"{topic.name}-{each}": f"{topic.name}-{each - 1}" for each in later}
            left = (*topic.assignment[:number], *topic.assignment[number + 1 :])
            topics = (*plan.topics[:place], evolve(topic, assignment=left), *plan.topics[place + 1 :])
            load = [name for name in plan.load if name != f"{topic.name}-{number}"]
            rate = plan.records_per_second if load else 0.0
            without = evolve(plan, topics=topics, load=tuple(load), records_per_second=rate)
            yield renamed(without, names)


def number_brokers(trials: Trials) -> None:
    """Try with the brokers 1, 2, ..."""
    plan = trials.best
    ids = plan.settings.broker_ids
    names: Names = dict(zip(ids, range(1, len(ids) + 1), strict=True))
    settings = evolve(plan.settings, brokers=len(ids), broker_ids=range(1, len(ids) + 1))
    topics = tuple(_renamed_action(topic, names) for topic in plan.topics)
    trials.first([evolve(renamed(plan, names), settings=settings, topics=topics)])


def renamed(plan: RunPlan, names: Names) -> RunPlan:
    """Return a plan whose happenings and load have new names for brokers and partitions."""
    happenings = tuple(_renamed_happening(happening, names) for happening in plan.happenings)
    load = tuple(str(names.get(name, name)) for name in plan.load)
    return evolve(plan, happenings=happenings, load=load)


def _renamed_happening(happening: Happening, names: Names) -> Happening:
    step = happening.step
    if step is not None and step.partition is not None:
        step = evolve(step, partition=str(names.get(step.partition, step.partition)))
    return evolve(happening, step=step, action=_renamed_action(happening.action, names))


def _renamed_action(action: A, names: Names) -> A:
    if isinstance(action, Lag):  # its numbers are servers
        return action
    changes: dict[str, object] = {}
    for field in fields(cast("type[AttrsInstance]", type(action))):
        value = getattr(action, field.name)
        if field.name == _BROKER:
            changes[field.name] = _renamed_item(value, names)
        elif isinstance(value, tuple | Mapping | Strike | Request):
            changes[field.name] = _renamed(value, names)
    return cast("A", evolve(cast("Any", action), **changes))


def _renamed(value: object, names: Names) -> object:
    """Return a value with new names for what lists contain, and for keys of mappings."""
    match value:
        case Strike() | Request():
            return _renamed_action(value, names)
        case tuple():
            return tuple(_renamed_item(each, names) for each in value)
        case Mapping():
            return {_renamed_item(key, names): _renamed(each, names) for key, each in value.items()}
    return value


def _renamed_item(item: object, names: Names) -> object:
    match item:
        case str() if item.startswith(LEADER_OF):
            name = item.removeprefix(LEADER_OF)
            return f"{LEADER_OF}{names.get(name, name)}"
        case bool():
            return item
        case int() | str():
            return names.get(item, item)
    return _renamed(item, names)
