"""Makes the actions of a plan simpler: fewer targets, usual values, faults that do not end, no steps, ids for words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from attrs import Attribute, AttrsInstance, evolve, fields

from simulator.actions.scene import LEADER_OF, Action, Request, Strike
from simulator.random_run.happenings import Happening, InTurn, Lasting
from simulator.random_run.plan import RunPlan
from simulator.shrinking.trials import Trials

_NODES: Final = "nodes"
_DIGITS: Final = (0, 1, 2, 3)


def simplify_actions(trials: Trials) -> None:
    """Try simpler actions, from the last to the first, as long as one is found."""
    for place in reversed(range(len(trials.best.happenings))):
        while trials.first(_simpler_plans(trials.best, place)) is not None:
            pass


def _simpler_plans(plan: RunPlan, place: int) -> Iterator[RunPlan]:
    before = plan.happenings[place]
    for happening in _simpler_happenings(before, plan.settings.broker_ids):
        yield evolve(plan, happenings=(*plan.happenings[:place], happening, *plan.happenings[place + 1 :]))


def _simpler_happenings(happening: Happening, brokers: Sequence[int]) -> Iterator[Happening]:
    if happening.step is not None:
        yield evolve(happening, step=None)
        if happening.step.delay:
            yield evolve(happening, step=evolve(happening.step, delay=0.0))
    for action in simpler(happening.action, brokers):
        yield evolve(happening, action=action)


def simpler(action: Action, brokers: Sequence[int] = ()) -> Iterator[Action]:
    """Yield actions that are simpler than one by a little; `brokers` are ids that may stand for words."""
    if isinstance(action, Lasting):
        yield action.fault
    if isinstance(action, InTurn):
        yield from action.strikes
    for field in fields(cast("type[AttrsInstance]", type(action))):
        for value in _simpler_values(field, getattr(action, field.name), brokers):
            try:
                yield evolve(cast("Any", action), **{field.name: value})
            except ValueError:
                continue


def _simpler_values(field: Attribute[Any], value: object, brokers: Sequence[int]) -> Iterator[object]:
    factory = getattr(field.default, "factory", None)
    usual = field.default if factory is None else factory()
    if value != usual and isinstance(usual, bool | int | float | str | tuple | None):
        yield usual
    if field.name == _NODES:
        yield from _ids(value, brokers)
    yield from _smaller(value, brokers)


def _ids(nodes: object, brokers: Sequence[int]) -> Iterator[tuple[int, ...]]:
    match nodes:
        case (str() as word,) if word.startswith(LEADER_OF):
            yield from ((id_,) for id_ in brokers)


def _smaller(value: object, brokers: Sequence[int]) -> Iterator[object]:
    """Yield values with one item less, with simpler items, or with fewer digits."""
    match value:
        case Strike() | Request():
            yield from simpler(value, brokers)
        case Mapping():
            yield from _smaller_mappings(value, brokers)
        case tuple():
            yield from _smaller_tuples(value, brokers)
        case float():
            yield from rounder(value)


def _smaller_mappings(value: Mapping[Any, object], brokers: Sequence[int]) -> Iterator[dict[Any, object]]:
    if len(value) > 1:
        for key in value:
            yield {other: each for other, each in value.items() if other != key}
    for key, each in value.items():
        for smaller in _smaller(each, brokers):
            yield {**value, key: smaller}


def _smaller_tuples(value: tuple[object, ...], brokers: Sequence[int]) -> Iterator[tuple[object, ...]]:
    if len(value) > 1:
        for place in reversed(range(len(value))):
            yield (*value[:place], *value[place + 1 :])
    for place, each in enumerate(value):
        for smaller in _smaller(each, brokers):
            yield (*value[:place], smaller, *value[place + 1 :])


def rounder(seconds: float) -> Iterator[float]:
    """Yield numbers near one, with fewer digits."""
    for digits in _DIGITS:
        rounded = round(seconds, digits)
        if rounded == seconds:
            return
        yield rounded
