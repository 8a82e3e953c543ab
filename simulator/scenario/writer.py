"""Writes the plan of a random run as a scenario, which reads back as the same plan."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Final, cast

import yaml
from attrs import Attribute, AttrsInstance, fields

from simulator.actions.requests import CreateTopic
from simulator.actions.scene import Action, Request, Strike
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.plan import RunPlan
from simulator.scenario.disorder import MOMENTS
from simulator.scenario.faults import Unreadable
from simulator.scenario.language import SETTINGS
from simulator.scenario.loader import QUICK_LOADER
from simulator.scenario.names import Names
from simulator.scenario.nouns import ANYTHING
from simulator.scenario.verb import RENAMED, Verb
from simulator.scenario.verbs import VERBS
from simulator.settings import Settings

Plain = Any
"""A value of YAML: a scalar, a list or a mapping."""

WIDTH: Final = 110

_KEYS: Final = {field: key for key, field in RENAMED.items()}
_REACHES: Final = {moment: reach for reach, moment in MOMENTS.items()}


def write_plan(plan: RunPlan) -> str:
    """Return a plan as the text of a scenario. Raises ValueError if an action has no form in the language."""
    events = [_lines(_event(happening), bullet="  - ") for happening in plan.happenings]
    top = "".join(_lines(_top(plan), bullet=""))
    return top + ("events:\n" + "".join(map("".join, events)) if events else "")


def write_action(action: Action) -> str:
    """Return an action as one line. Raises ValueError if it has no form in the language."""
    return " ".join(f"{key} {_bare(value)}" for key, value in plain_action(action).items())


def plain_action(action: Action) -> dict[str, Plain]:
    """Return an action as a mapping of its verb, and of what ends it. Raises ValueError."""
    if isinstance(action, Lasting):
        ends = [plain_action(end) for end in action.ends]
        return {**plain_action(action.fault), "for": _plain(action.seconds), "then": ends}
    for name, verb in VERBS.items():
        if verb.kind is type(action):
            for argument in _arguments(action):
                if _reads_as(verb, argument) == action:
                    return {name: argument}
    raise ValueError(f"no verb says {action}")


def _top(plan: RunPlan) -> dict[str, Plain]:
    cluster = plain_settings(plan.settings)
    top: dict[str, Plain] = {"seed": plan.seed, "in_order": False}
    top |= {"cluster": cluster} if cluster else {}
    top |= {"topics": _plain(plan.topics)} if plan.topics else {}
    top |= {"records": plan.records} if plan.records else {}
    if plan.load:
        top["load"] = {"per_second": _plain(plan.records_per_second), "partitions": _plain(plan.load)}
    return {**top, "lasts": _plain(plan.seconds)}


def plain_settings(settings: Settings) -> dict[str, Plain]:
    """Return the settings that are not the usual ones."""
    usual = Settings(brokers=settings.brokers)
    changed = {name: getattr(settings, name) for name in SETTINGS if getattr(settings, name) != getattr(usual, name)}
    if "broker_ids" not in changed and settings.brokers != Settings().brokers:
        changed = {"brokers": settings.brokers, **changed}
    return {name: _plain(value) for name, value in changed.items()}


def _event(happening: Happening) -> dict[str, Plain]:
    event: dict[str, Plain] = {"at": _plain(happening.at)}
    step = happening.step
    if step is not None:
        event["when"] = f"{step.partition or ANYTHING} {_REACHES[step.moment].value} {step.round}"
        event |= {"after": _plain(step.delay)} if step.delay else {}
    return event | plain_action(happening.action)


# --- arguments of verbs -----------------------------------------------------------------------------------------


def _arguments(action: Action) -> Iterator[Plain]:
    """Yield the possible notations of an action's fields, short ones first."""
    yield True
    kind = cast("type[AttrsInstance]", type(action))
    told = [field for field in fields(kind) if not _is_default(field, action)]
    for field in told:
        value = _plain(getattr(action, field.name))
        yield _one(value)
        if isinstance(value, Mapping):
            yield next(iter(value)) if len(value) == 1 else list(value)
        yield value
    by_key = {_KEYS.get(field.name, field.name): _plain(getattr(action, field.name)) for field in told}
    yield {key: _one(value) for key, value in by_key.items()}
    yield by_key
    if isinstance(action, CreateTopic):
        yield _topics((action,))


def _one(value: Plain) -> Plain:
    """Return the item of a list that has only one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _is_default(field: Attribute[Any], action: Action) -> bool:
    factory = getattr(field.default, "factory", None)
    return bool(getattr(action, field.name) == (field.default if factory is None else factory()))


def _reads_as(verb: Verb, argument: Plain) -> Action | None:
    """Return the action that a verb makes of an argument; None if it cannot be read."""
    node = yaml.compose(_flow(argument), Loader=QUICK_LOADER)
    assert node is not None, "an argument is not empty"
    try:
        return verb.shape.read(node, Names(are_known=False))
    except Unreadable:
        return None


def _plain(value: object) -> Plain:
    """Return a value as it is written in a scenario."""
    match value:
        case CreateTopic():
            return _topics((value,))
        case [CreateTopic(), *_]:
            return _topics(cast("Sequence[CreateTopic]", value))
        case Strike() | Request():
            return plain_action(value)
        case Mapping():
            return {_plain(key): _plain(each) for key, each in value.items()}
        case tuple() | list():
            return [_plain(each) for each in value]
        case Enum():
            return value.name.lower()
        case float():
            return _number(value)
    return value


def _topics(topics: Sequence[CreateTopic]) -> dict[str, Plain]:
    return {topic.name: _plain(topic.assignment) if topic.assignment else _counts(topic) for topic in topics}


def _counts(topic: CreateTopic) -> dict[str, int]:
    return {"partitions": topic.partitions, "replication_factor": topic.replication_factor}


def _number(value: float) -> Plain:
    return int(value) if value.is_integer() else value


# --- text -------------------------------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    """Writes floating point numbers without exponents, which the language does not have."""

    def ignore_aliases(self, data: object) -> bool:
        """Write everything out."""
        del data
        return True


def _represent_float(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    text = str(value) if value in (float("inf"), float("-inf")) else format(Decimal(repr(value)), "f")
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_Dumper.add_representer(float, _represent_float)


def _flow(value: Plain) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=WIDTH, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def _bare(value: Plain) -> str:
    """Return a value as one line, a mapping without braces."""
    text = " ".join(_flow(value).split())
    return text[1:-1] if isinstance(value, Mapping) else text


def _lines(mapping: Mapping[str, Plain], bullet: str) -> Iterator[str]:
    """Yield the lines of a mapping, one key per line, in a list if there is a `bullet`."""
    indent = " " * len(bullet)
    for number, (key, value) in enumerate(mapping.items()):
        first, *more = f"{key}: {_flow(value)}".splitlines()
        yield f"{indent if number else bullet}{first}\n"
        yield from (textwrap.indent(f"{line}\n", f"{indent}  ") for line in more)
