"""One verb of scenarios: its action, and the notation of its argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from simulator.actions.scene import Action
from simulator.scenario.shapes import FLAG, Key, Shape, either, record

RENAMED: Final = {"from": "others", "to": "receivers", "then": "strikes"}
"""The keys of verbs that are not the names of the actions' fields."""


@frozen
class Verb:
    """A kind of action, and the shape of its argument, which makes one."""

    kind: type[Action]
    shape: Shape[Action]
    text: str


def verb(
    kind: type[Action], argument: Shape[Any], build: Callable[[Any], Action] | None = None, text: str | None = None
) -> Verb:
    """Return a verb described by `text`, or else by the first paragraph of the action's docstring."""
    paragraph = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    return Verb(kind, argument.then(build or kind), text or " ".join(paragraph.split()))


def nothing(kind: type[Action]) -> Verb:
    """Return a verb that needs no argument; it is written `true`."""
    return verb(kind, FLAG, lambda _: kind())


def by_keys(
    kind: type[Action],
    keys: Mapping[str, Key],
    short: Shape[Any] | None = None,
    build: Callable[..., Action] | None = None,
    text: str | None = None,
) -> Verb:
    """Return a verb whose argument is a mapping of the action's fields, or a shorter form of its first one."""

    def fields(**values: Any) -> dict[str, Any]:
        return {RENAMED.get(name, name): value for name, value in values.items()}

    argument = record(fields, keys)
    if short is not None:
        argument = either(argument, short.then(lambda value: {next(iter(keys)): value}))
    make: Callable[..., Action] = build or kind
    return verb(kind, argument, lambda values: make(**values), text)
