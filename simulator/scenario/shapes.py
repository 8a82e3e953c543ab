"""The shapes of a scenario's parts: each reads a node of YAML, and describes what it accepts as JSON Schema.

A shape that cannot read a node raises Unreadable with every fault below that node, each with its place.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from attrs import frozen
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from simulator.scenario.faults import Fault, Unreadable, fault_at, nearest, unreadable
from simulator.scenario.names import Names

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")

Schema = dict[str, Any]

VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$[a-z_]+"}
"""A variable of the matrix, which may replace any value."""

_KINDS: Final[Mapping[type[Node], str]] = {MappingNode: "a mapping", SequenceNode: "a list"}


class Shape(ABC, Generic[T_co]):
    """The notation of one kind of value."""

    @abstractmethod
    def read(self, node: Node, names: Names) -> T_co:
        """Return the value of a node. Raises Unreadable."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the JSON Schema of this shape."""


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


@frozen
class Anything(Shape[Node]):
    """Any value."""

    def read(self, node: Node, names: Names) -> Node:
        """Return the node."""
        del names
        return node

    def schema(self) -> Schema:
        """Return the schema that accepts anything."""
        return {}


@frozen
class Built(Shape[T]):
    """A value built from the value that another shape reads."""

    shape: Shape[Any]
    build: Callable[[Any], T]

    def read(self, node: Node, names: Names) -> T:
        """Read and build."""
        return self.build(self.shape.read(node, names))

    def schema(self) -> Schema:
        """Return the schema of the shape."""
        return self.shape.schema()


@frozen
class Either(Shape[T]):
    """A mapping with known keys, or a shorter form."""

    record: Shape[T]
    short: Shape[T]

    def read(self, node: Node, names: Names) -> T:
        """Read the node in either form."""
        return (self.record if isinstance(node, MappingNode) else self.short).read(node, names)

    def schema(self) -> Schema:
        """Return a schema of both forms."""
        return {"anyOf": [self.short.schema(), self.record.schema()]}


# --- scalars ----------------------------------------------------------------------------------------------------


@frozen
class Text(Shape[str]):
    """Text that matches a pattern; `what` describes it, with an example."""

    what: str
    pattern: str = r".+"

    def read(self, node: Node, names: Names) -> str:
        """Return the text."""
        del names
        if isinstance(node, ScalarNode) and not is_null(node) and re.fullmatch(self.pattern, node.value, re.DOTALL):
            return str(node.value)
        raise unreadable(node, f"expected {self.what}, found {found(node)}")

    def schema(self) -> Schema:
        """Return a string with a pattern."""
        return {"anyOf": [{"type": "string", "pattern": f"^{self.pattern}$"}, VARIABLE]}


@frozen
class Choice(Shape[str]):
    """One of several words."""

    words: tuple[str, ...]

    def read(self, node: Node, names: Names) -> str:
        """Return the word."""
        del names
        if isinstance(node, ScalarNode) and node.value in self.words:
            return str(node.value)
        text = node.value if isinstance(node, ScalarNode) else ""
        raise unreadable(node, f"unknown {found(node)}: {nearest(text, self.words)}")

    def schema(self) -> Schema:
        """Return an enumeration."""
        return {"anyOf": [{"enum": list(self.words)}, VARIABLE]}


@frozen
class Number(Shape[float]):
    """A number of at least `least`."""

    what: str
    least: float = 0

    def read(self, node: Node, names: Names) -> float:
        """Return the number."""
        del names
        try:
            value = float(node.value) if isinstance(node, ScalarNode) else None
        except ValueError:
            value = None
        if value is None or not value >= self.least:
            raise unreadable(node, f"expected {self.what}, {self.least:g} or more, found {found(node)}")
        return value

    def schema(self) -> Schema:
        """Return a number with a minimum."""
        return {"anyOf": [{"type": "number", "minimum": self.least}, VARIABLE]}


@frozen
class Int(Shape[int]):
    """An integer of at least `least`."""

    what: str
    least: int = 0

    def read(self, node: Node, names: Names) -> int:
        """Return the number."""
        del names
        if isinstance(node, ScalarNode) and re.fullmatch(r"-?\d+", node.value) and int(node.value) >= self.least:
            return int(node.value)
        raise unreadable(node, f"expected {self.what}, {self.least} or more, found {found(node)}")

    def schema(self) -> Schema:
        """Return an integer with a minimum."""
        return {"anyOf": [{"type": "integer", "minimum": self.least}, VARIABLE]}


@frozen
class Duration(Shape[float]):
    """A time in seconds, written 500ms, 3s, 2m, or as a number of seconds."""

    least: float = 0
    pattern: str = r"(-?\d+(?:\.\d+)?)(ms|s|m)?"

    def read(self, node: Node, names: Names) -> float:
        """Return the seconds."""
        del names
        match = re.fullmatch(self.pattern, node.value) if isinstance(node, ScalarNode) else None
        seconds = None if match is None else float(match[1]) * {"ms": 0.001, "m": 60.0}.get(match[2], 1.0)
        if seconds is None or seconds < self.least:
            raise unreadable(node, f"expected a time such as 3s, 500ms or 2m, found {found(node)}")
        return seconds

    def schema(self) -> Schema:
        """Return a number, or a string with a unit."""
        return {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{self.pattern}$"}, VARIABLE]}


@frozen
class Flag(Shape[bool]):
    """true or false."""

    def read(self, node: Node, names: Names) -> bool:
        """Return the boolean."""
        del names
        if isinstance(node, ScalarNode) and node.value in {"true", "false"}:
            return str(node.value) == "true"
        raise unreadable(node, f"expected true or false, found {found(node)}")

    def schema(self) -> Schema:
        """Return a boolean."""
        return {"anyOf": [{"type": "boolean"}, VARIABLE]}


# --- lists and mappings -----------------------------------------------------------------------------------------


@frozen
class ListOf(Shape[tuple[T, ...]]):
    """A list; with `or_one`, a single item stands for a list of it."""

    item: Shape[T]
    or_one: bool = False

    def read(self, node: Node, names: Names) -> tuple[T, ...]:
        """Return the items."""
        if self.or_one and not isinstance(node, SequenceNode):
            return (self.item.read(node, names),)
        if not isinstance(node, SequenceNode):
            raise unreadable(node, f"expected a list, found {found(node)}")
        return tuple(collect((self.item.read, item, names) for item in node.value))

    def schema(self) -> Schema:
        """Return an array."""
        array = {"type": "array", "items": self.item.schema()}
        return {"anyOf": [array, self.item.schema() if self.or_one else VARIABLE]}


@frozen
class MapOf(Shape[dict[K, T]], Generic[K, T]):
    """A mapping with arbitrary keys."""

    key: Shape[K]
    value: Shape[T]

    def read(self, node: Node, names: Names) -> dict[K, T]:
        """Return the mapping."""
        pairs = pairs_of(node)
        keys = collect((self.key.read, key, names) for key, _ in pairs)
        return dict(zip(keys, collect((self.value.read, value, names) for _, value in pairs), strict=True))

    def schema(self) -> Schema:
        """Return an object."""
        return {"type": "object", "additionalProperties": self.value.schema(), "minProperties": 1}


@frozen
class Key(Generic[T]):
    """One key of a record: the shape of its value, and its description."""

    shape: Shape[T]
    text: str
    is_required: bool = False


@frozen
class Record(Shape[T]):
    """A mapping with known keys, from which `build` makes a value."""

    build: Callable[..., T]
    keys: Mapping[str, Key[Any]]

    def read(self, node: Node, names: Names) -> T:
        """Read all keys that are present."""
        values = read_keys(node, self.keys, names)
        try:
            return self.build(**values)
        except ValueError as error:
            raise unreadable(node, str(error)) from None

    def schema(self) -> Schema:
        """Return an object with only these properties."""
        return object_schema(self.keys)


def object_schema(keys: Mapping[str, Key[Any]]) -> Schema:
    """Return the schema of a mapping with known keys."""
    required = [name for name, key in keys.items() if key.is_required]
    return {
        "type": "object",
        "properties": {name: {"description": key.text, **key.shape.schema()} for name, key in keys.items()},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def read_keys(node: Node, keys: Mapping[str, Key[Any]], names: Names) -> dict[str, Any]:
    """Return the value of each key that is present. Raises Unreadable for unknown, duplicate and missing keys, too."""
    pairs = pairs_of(node)
    unknown = [
        fault_at(key, f"unknown key {key.value}: {nearest(key.value, keys)}")
        for key, _ in pairs
        if key.value not in keys
    ]
    there = {key.value: value for key, value in pairs if key.value in keys}
    missing = [
        fault_at(node, f"the key {name} is missing: {key.text}")
        for name, key in keys.items()
        if key.is_required and name not in there
    ]
    values = collect(((keys[name].shape.read, value, names) for name, value in there.items()), unknown + missing)
    return dict(zip(there, values, strict=True))


def pairs_of(node: Node) -> list[tuple[ScalarNode, Node]]:
    """Return the keys and values of a mapping. Raises Unreadable if it is not one, or has duplicate keys."""
    if not isinstance(node, MappingNode):
        raise unreadable(node, f"expected a mapping, found {found(node)}")
    pairs = [(key, value) for key, value in node.value if isinstance(key, ScalarNode)]
    seen: dict[str, Node] = {}
    faults = [fault_at(key, "a key must be a word") for key, _ in node.value if not isinstance(key, ScalarNode)]
    for key, _ in pairs:
        if key.value in seen:
            before = seen[key.value].start_mark.line + 1
            faults.append(fault_at(key, f"the key {key.value} is there already, in line {before}"))
        seen[key.value] = key
    if faults:
        raise Unreadable(*faults)
    return pairs


Reading = tuple[Callable[[Node, Names], T], Node, Names]


def collect(readings: Iterable[Reading[T]], faults: Iterable[Fault] = ()) -> list[T]:
    """Return the results of all readings. Raises Unreadable with the faults of all of them."""
    results, wrong = [], list(faults)
    for result in _attempts(readings):
        if isinstance(result, Unreadable):
            wrong += result.faults
        else:
            results.append(result)
    if wrong:
        raise Unreadable(*wrong)
    return results


def _attempts(readings: Iterable[Reading[T]]) -> Iterator[T | Unreadable]:
    for read, node, names in readings:
        try:
            yield read(node, names)
        except Unreadable as error:
            yield error
