"""The variants of a scenario with a matrix: copies of its document with values in place of `$NAME`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from string import Template

from attrs import frozen
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from simulator.scenario.faults import nearest, unreadable
from simulator.scenario.shapes import flow

Values = Mapping[str, Node]


@frozen
class Variant:
    """A document with one value for each name, and these values as text."""

    values: Mapping[str, str]
    document: MappingNode


def variants(document: MappingNode, matrix: Node | None) -> Iterator[Variant]:
    """Yield the variants of a document whose matrix has been checked as a mapping to lists. Raises Unreadable."""
    rows = [] if matrix is None else [(key.value, value.value) for key, value in matrix.value]
    for values in product(*(nodes for _, nodes in rows)):
        named: dict[str, Node] = dict(zip((name for name, _ in rows), values, strict=True))
        pairs = [(key, value if value is matrix else _filled(value, named)) for key, value in document.value]
        words = {name: flow(node) for name, node in named.items()}
        yield Variant(words, MappingNode(document.tag, pairs, document.start_mark, document.end_mark))


def _filled(node: Node, values: Values) -> Node:
    if isinstance(node, ScalarNode):
        return _filled_scalar(node, values)
    if isinstance(node, SequenceNode):
        items = [_filled(item, values) for item in node.value]
        return SequenceNode(node.tag, items, node.start_mark, node.end_mark)
    pairs = [(_filled(key, values), _filled(value, values)) for key, value in node.value]
    return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)


def _filled_scalar(node: ScalarNode, values: Values) -> Node:
    if "$" not in node.value:
        return node
    if node.value[1:] in values:
        value = values[node.value[1:]]
        return type(value)(value.tag, value.value, node.start_mark, node.end_mark)
    try:
        text = Template(node.value).substitute({name: flow(value) for name, value in values.items()})
    except KeyError as error:
        name = str(error.args[0])
        cure = nearest(name, values) if values else f"write matrix: {{{name}: [...]}} above"
        raise unreadable(node, f"the matrix has no {name}: {cure}") from None
    except ValueError:
        raise unreadable(node, "a $ stands before a name of the matrix") from None
    return ScalarNode(node.tag, text, node.start_mark, node.end_mark)
