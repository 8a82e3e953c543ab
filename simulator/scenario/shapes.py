"""The shapes of a scenario's parts: each reads a node of YAML, and has the JSON Schema of what it accepts.

A shape that cannot read a node raises Unreadable with every fault below that node, each with its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from attrs import AttrsInstance, field, fields, frozen
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from simulator.scenario.faults import Fault, Unfit, Unreadable, fault_at, nearest, unreadable
from simulator.scenario.names import Names

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")
U = TypeVar("U")

Schema = dict[str, Any]

_VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$[a-z_]+"}
"""A variable of the matrix, which may replace any value."""

_KINDS: Final[Mapping[type[Node], str]] = {MappingNode: "a mapping", SequenceNode: "a list"}


@frozen
class Shape(Generic[T_co]):
    """The notation of one kind of value: `read` returns the value of a node, or raises Unreadable."""

    read: Callable[[Node, Names], T_co]
    schema: Schema

    def then(self, build: Callable[[T_co], U]) -> Shape[U]:
        """Return the shape of what `build` makes of the value of this one; it may raise ValueError."""

        def read(node: Node, names: Names) -> U:
            value = self.read(node, names)
            try:
                return build(value)
            except ValueError as error:
                raise unreadable(node, str(error)) from None

        return Shape(read, self.schema)


def either(record: Shape[T], short: Shape[T]) -> Shape[T]:
    """Return the shape of a mapping with known keys, or a shorter form."""

    def read(node: Node, names: Names) -> T:
        return (record if isinstance(node, MappingNode) else short).read(node, names)

    return Shape(read, {"anyOf": [short.schema, record.schema]})


def optional(shape: Shape[T]) -> Shape[T | None]:
    """Return the shape of a value or null."""

    def read(node: Node, names: Names) -> T | None:
        return None if is_null(node) else shape.read(node, names)

    return Shape(read, {"anyOf": [shape.schema, {"type": "null"}]})


def found(node: Node) -> str:
    """Return a description of a node, for messages."""
    return repr(node.value) if isinstance(node, ScalarNode) else _KINDS[type(node)]


def is_null(node: Node) -> bool:
    """Return whether a node has no value."""
    return node.tag == "tag:yaml.org,2002:null"


def flow(node: Node) -> str:
    """Return a node as one line of YAML."""
    if isinstance(node, SequenceNode):
        return f"[{', '.join(map(flow, node.value))}]"
    if isinstance(node, MappingNode):
        return ", ".join(f"{flow(key)}: {flow(value)}" for key, value in node.value)
    return str(node.value)


# --- scalars ----------------------------------------------------------------------------------------------------


def scalar(expected: str, parse: Callable[[str, Names], T], *schemas: Schema) -> Shape[T]:
    """Return the shape of a scalar, described by `expected`; `parse` raises Unfit if the text does not fit."""

    def read(node: Node, names: Names) -> T:
        try:
            if isinstance(node, ScalarNode) and not is_null(node):
                return parse(node.value, names)
        except Unfit as error:
            if str(error):
                raise unreadable(node, str(error)) from None
        raise unreadable(node, f"expected {expected}, found {found(node)}")

    return Shape(read, {"anyOf": [*schemas, _VARIABLE]})


def text(expected: str, pattern: str = r".+") -> Shape[str]:
    """Return the shape of text that matches a pattern; `expected` describes it, with an example."""

    def parse(value: str, _: Names) -> str:
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise Unfit
        return value

    return scalar(expected, parse, {"type": "string", "pattern": f"^{pattern}$"})


def choice(words: tuple[str, ...]) -> Shape[str]:
    """Return the shape of one of several words."""

    def parse(word: str, _: Names) -> str:
        if word not in words:
            raise Unfit(f"unknown {word!r}: {nearest(word, words)}")
        return word

    return scalar(f"one of {', '.join(words)}", parse, {"enum": list(words)})


def number(expected: str, least: float = 0) -> Shape[float]:
    """Return the shape of a number of at least `least`."""

    def parse(value: str, _: Names) -> float:
        try:
            parsed = float(value)
        except ValueError:
            raise Unfit from None
        if not parsed >= least:  # NaN is not either
            raise Unfit
        return parsed

    return scalar(f"{expected}, {least:g} or more", parse, {"type": "number", "minimum": least})


def integer(expected: str, least: int = 0) -> Shape[int]:
    """Return the shape of an integer of at least `least`."""

    def parse(value: str, _: Names) -> int:
        if not re.fullmatch(r"-?\d+", value) or int(value) < least:
            raise Unfit
        return int(value)

    return scalar(f"{expected}, {least} or more", parse, {"type": "integer", "minimum": least})


def duration(least: float = 0) -> Shape[float]:
    """Return the shape of a time in seconds, written 500ms, 3s, 2m, or as a number of seconds."""
    pattern = r"(-?\d+(?:\.\d+)?)(ms|s|m)?"

    def parse(value: str, _: Names) -> float:
        match = re.fullmatch(pattern, value)
        seconds = least - 1 if match is None else float(match[1]) * {"ms": 0.001, "m": 60.0}.get(match[2], 1.0)
        if seconds < least:
            raise Unfit
        return seconds

    schemas: list[Schema] = [{"type": "number"}, {"type": "string", "pattern": f"^{pattern}$"}]
    return scalar("a time such as 3s, 500ms or 2m", parse, *schemas)


def _boolean(value: str, _: Names) -> bool:
    if value not in {"true", "false"}:
        raise Unfit
    return value == "true"


FLAG: Final = scalar("true or false", _boolean, {"type": "boolean"})


# --- lists and mappings -----------------------------------------------------------------------------------------


def list_of(item: Shape[T], *, or_one: bool = False) -> Shape[tuple[T, ...]]:
    """Return the shape of a list; with `or_one`, a single item stands for a list of it."""

    def read(node: Node, names: Names) -> tuple[T, ...]:
        if isinstance(node, SequenceNode):
            return tuple(collect(((item, each) for each in node.value), names))
        if not or_one:
            raise unreadable(node, f"expected a list, found {found(node)}")
        return (item.read(node, names),)

    array = {"type": "array", "items": item.schema}
    return Shape(read, {"anyOf": [array, item.schema if or_one else _VARIABLE]})


def map_of(key: Shape[K], value: Shape[T]) -> Shape[dict[K, T]]:
    """Return the shape of a mapping with arbitrary keys."""

    def read(node: Node, names: Names) -> dict[K, T]:
        pairs = pairs_of(node)
        keys = collect(((key, each) for each, _ in pairs), names)
        return dict(zip(keys, collect(((value, each) for _, each in pairs), names), strict=True))

    return Shape(read, {"type": "object", "additionalProperties": value.schema, "minProperties": 1})


_KEY: Final = "key"


@frozen
class Key:
    """One key of a record: the shape of its value, and its description."""

    shape: Shape[Any]
    text: str
    is_required: bool = False


def key(shape: Shape[Any], text: str, **default: Any) -> Any:  # noqa: ANN401  as attrs.field
    """Declare a field that is a key of a record; without `default` or `factory` it is required."""
    return field(metadata={_KEY: Key(shape, text, is_required=not default)}, **default)


def keys_of(cls: type[AttrsInstance]) -> dict[str, Key]:
    """Return the keys that the fields of a class declare."""
    return {each.name: each.metadata[_KEY] for each in fields(cls) if _KEY in each.metadata}


def record(build: Callable[..., T], keys: Mapping[str, Key]) -> Shape[T]:
    """Return the shape of a mapping with known keys, from which `build` makes a value, or raises ValueError."""
    values = Shape(lambda node, names: read_keys(node, keys, names), object_schema(keys))
    return values.then(lambda found: build(**found))


def object_schema(keys: Mapping[str, Key]) -> Schema:
    """Return the schema of a mapping with known keys."""
    required = [name for name, key in keys.items() if key.is_required]
    return {
        "type": "object",
        "properties": {name: {"description": key.text, **key.shape.schema} for name, key in keys.items()},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def read_keys(node: Node, keys: Mapping[str, Key], names: Names) -> dict[str, Any]:
    """Return the value of each key that is present. Raises Unreadable for unknown, duplicate and missing keys, too."""
    pairs = pairs_of(node)
    there = {key.value: value for key, value in pairs if key.value in keys}
    unknown = [key for key, _ in pairs if key.value not in keys]
    missing = [name for name, key in keys.items() if key.is_required and name not in there]
    faults = [
        *(fault_at(key, f"unknown key {key.value}: {nearest(key.value, keys)}") for key in unknown),
        *(fault_at(node, f"the key {name} is missing: {keys[name].text}") for name in missing),
    ]
    values = collect(((keys[name].shape, value) for name, value in there.items()), names, faults)
    return dict(zip(there, values, strict=True))


def pairs_of(node: Node) -> list[tuple[ScalarNode, Node]]:
    """Return the keys and values of a mapping. Raises Unreadable if it is not one, or has duplicate keys."""
    if not isinstance(node, MappingNode):
        raise unreadable(node, f"expected a mapping, found {found(node)}")
    lines: dict[str, int] = {}
    faults = []
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            faults.append(fault_at(key, "a key must be a word"))
        elif key.value in lines:
            faults.append(fault_at(key, f"duplicate key {key.value}, also in line {lines[key.value]}"))
        else:
            lines[key.value] = key.start_mark.line + 1
    if faults:
        raise Unreadable(*faults)
    return list(node.value)


def collect(readings: Iterable[tuple[Shape[T], Node]], names: Names, faults: Iterable[Fault] = ()) -> list[T]:
    """Return the values of all nodes. Raises Unreadable with the faults of all of them, and those given."""
    values, wrong = [], list(faults)
    for shape, node in readings:
        try:
            values.append(shape.read(node, names))
        except Unreadable as error:
            wrong += error.faults
    if wrong:
        raise Unreadable(*wrong)
    return values
