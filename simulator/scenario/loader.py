"""Reads scenarios from YAML, and reports every fault with its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml
from attrs import evolve
from yaml import MappingNode, Node

from simulator.actions.requests import CreateTopic
from simulator.scenario.arguments import TOPICS, TOTALS
from simulator.scenario.disorder import check_disorder
from simulator.scenario.faults import Fault, ScenarioFault, Unreadable, unreadable
from simulator.scenario.language import TOP_KEYS
from simulator.scenario.matrix import Variant, variants
from simulator.scenario.model import PATIENCE, Expectations, Scenario
from simulator.scenario.names import Names
from simulator.scenario.shapes import pairs_of, read_keys
from simulator.settings import Settings
from transport.input_files import Limit, read_text

LIMIT: Final = Limit(4, "this is not a scenario")

_CREATING: Final = ("create_topic", "rewrite_topic", "place_topic", "recreate_topic")

QUICK_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""That of libyaml, if PyYAML was built with it: it needs a tenth of the time."""

MOST_VALUES: Final = 100_000
"""The maximum number of values in a document; the values that an alias repeats count each time."""


def load(path: Path) -> list[Scenario]:
    """Read the scenario in a file, or each of its variants. Raises ScenarioFault, UnreadableFile."""
    return parse(read_text(path, LIMIT), str(path))


def parse(text: str, path: str) -> list[Scenario]:
    """Read the text of a file; `path` is for messages. Raises ScenarioFault with all faults."""
    try:
        return [_scenario(variant, path) for variant in _variants(_document(text))]
    except Unreadable as error:
        raise ScenarioFault(path, error.faults) from None
    except RecursionError:
        raise ScenarioFault(path, [Fault(1, 1, "nested too deeply, or an alias contains itself")]) from None


def _document(text: str) -> MappingNode:
    try:
        try:
            document = yaml.compose(text, Loader=QUICK_LOADER)
        except yaml.YAMLError:  # the other loader names the place of a fault better
            document = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
        raise Unreadable(Fault(*place, f"not valid YAML: {error.problem or error.context}")) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise Unreadable(Fault(*place, f"not valid YAML: {error.reason}")) from None
    if document is None:
        raise Unreadable(Fault(1, 1, f"the file is empty: begin with {', '.join(TOP_KEYS)}"))
    if not isinstance(document, MappingNode):
        raise unreadable(document, f"a scenario is a mapping with the keys {', '.join(TOP_KEYS)}")
    if _count(document, {}) > MOST_VALUES:
        raise unreadable(document, f"more than {MOST_VALUES:,} values, counting aliases: shorten it")
    return document


def _count(node: Node, counted: dict[int, int]) -> int:
    """Return the number of values in a node; a repeated node is visited only once."""
    if id(node) not in counted:
        items = [] if isinstance(node, yaml.ScalarNode) else node.value
        values = [value for item in items for value in (item if isinstance(item, tuple) else (item,))]
        counted[id(node)] = 1 + sum(_count(value, counted) for value in values)
    return counted[id(node)]


def _variants(document: MappingNode) -> list[Variant]:
    matrix = _below(document, "matrix")
    if matrix is not None:
        found = TOP_KEYS["matrix"].shape.read(matrix, Names())
        if not all(found.values()):
            raise unreadable(matrix, "nothing would run: give each name one value or more")
    return list(variants(document, matrix))


def _scenario(variant: Variant, path: str) -> Scenario:
    document = variant.document
    values = read_keys(document, TOP_KEYS, _names(document))
    created, expected = _below(document, "topics") or document, _below(document, "expect") or document
    topics: tuple[CreateTopic, ...] = values.get("topics", ())
    load = _below(document, "load")
    if load is not None and not topics:
        raise unreadable(load, "no topic to write to: name one under topics")
    if not values.get("in_order", True):
        check_disorder(values.get("events", ()))
    return Scenario(
        path,
        variant.values,
        values.get("cluster", Settings()),
        topics,
        created.start_mark.line + 1,
        values.get("load"),
        values.get("events", ()),
        values.get("expect", Expectations()),
        expected.start_mark.line + 1,
        values.get("settles", PATIENCE),
        values.get("records", 0),
        values.get("seed"),
        values.get("in_order", True),
        values.get("lasts"),
    )


def _names(document: MappingNode) -> Names:
    """Return the names to which the rest of a document may refer."""
    in_order = _below(document, "in_order")
    known = Names(are_checked=not (isinstance(in_order, yaml.ScalarNode) and in_order.value == "false"))
    cluster, topics = _below(document, "cluster"), _below(document, "topics")
    counts: dict[str, int] = {}
    try:
        if cluster is not None:
            known = evolve(known, settings=TOP_KEYS["cluster"].shape.read(cluster, known))
        for node in [node for node in (topics, *_below_events(document, *_CREATING)) if node]:
            counts |= {topic.name: topic.count for topic in TOPICS.read(node, known)}
        known = evolve(known, topics=counts)
        for node in _below_events(document, "add_partitions"):
            known = evolve(known, topics={**known.topics, **TOTALS.read(node, known)})
    except Unreadable:  # the fault is reported later, when the whole document is read
        return evolve(known, are_known=False)
    return known


def _below_events(document: MappingNode, *verbs: str) -> list[Node]:
    """Return the arguments of these verbs in the events."""
    events = _below(document, "events")
    items: Any = events.value if isinstance(events, yaml.SequenceNode) else []
    mappings = [item for item in items if isinstance(item, MappingNode)]
    found = [_below(item, verb) for verb in verbs for item in mappings]
    return [node for node in found if node is not None]


def _below(mapping: MappingNode, name: str) -> Node | None:
    return next((value for key, value in pairs_of(mapping) if key.value == name), None)
