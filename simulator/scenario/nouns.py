"""The shapes of nodes, partitions, topics and steps in a scenario."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen
from yaml import Node as YamlNode
from yaml import ScalarNode

from simulator.actions.scene import LEADER_OF, WORDS, Node
from simulator.scenario.faults import nearest, unreadable
from simulator.scenario.model import Reach, When
from simulator.scenario.names import Names
from simulator.scenario.shapes import VARIABLE, Schema, Shape, found, is_null

ROUNDS: Final = (
    *("U1", "A1", "A2", "B1", "B3", "B4", "B5", "B6", "B7", "B8"),
    *("ISR", "elect", "order", "shrink", "expel", "create", "adopt", "new", "resend", "metadata", "strays", "deleted"),
    *("brokers", "gone", "observed", "parents", "refused", "replicas", "storage", "topics", "loaded"),
    *("mark", "delete", "stop", "remove"),
)
"""The names of the controller's rounds."""

PARTITION: Final = r".+-\d+"
ANYTHING: Final = "anything"


@frozen
class NodeShape(Shape[Node]):
    """A node: its id, or a word that stands for one when the event happens."""

    brokers_only: bool = False
    controllers_only: bool = False

    def read(self, node: YamlNode, names: Names) -> Node:
        """Return the id or the word."""
        text = node.value if isinstance(node, ScalarNode) else ""
        ids = names.ids(brokers=not self.controllers_only, controllers=not self.brokers_only)
        if text.isdecimal() and (int(text) in ids or not names.are_known):
            return int(text)
        if text.startswith(LEADER_OF) and not self.controllers_only:
            return LEADER_OF + PartitionName().check(node, text.removeprefix(LEADER_OF), names)
        if text in self._words:
            return str(text)
        known = [names.text(ids), *self._words]
        leader = "" if self.controllers_only else f", and '{LEADER_OF}TOPIC-NUMBER'"
        raise unreadable(node, f"there is no node {found(node)}: there are {', '.join(known)}{leader}")

    def schema(self) -> Schema:
        """Return a schema of an id or a word."""
        words = [{"enum": list(self._words)}] if self._words else []
        leader = {"type": "string", "pattern": f"^{LEADER_OF}{PARTITION}$"}
        return {"anyOf": [{"type": "integer"}, *words, *([] if self.controllers_only else [leader]), VARIABLE]}

    @property
    def _words(self) -> tuple[str, ...]:
        return () if self.brokers_only else WORDS


@frozen
class NodeId(Shape[int]):
    """The id of a broker, or of any node."""

    brokers_only: bool = True

    def read(self, node: YamlNode, names: Names) -> int:
        """Return the id."""
        text = node.value if isinstance(node, ScalarNode) else ""
        ids = names.ids(brokers=True, controllers=not self.brokers_only)
        if text.isdecimal() and (int(text) in ids or not names.are_known):
            return int(text)
        raise unreadable(node, f"there is no node {found(node)}: there are {names.text(ids)}")

    def schema(self) -> Schema:
        """Return an integer."""
        return {"anyOf": [{"type": "integer"}, VARIABLE]}


@frozen
class PartitionName(Shape[str]):
    """A partition of a topic that the scenario creates."""

    def read(self, node: YamlNode, names: Names) -> str:
        """Return the name."""
        return self.check(node, node.value if isinstance(node, ScalarNode) else "", names)

    def check(self, node: YamlNode, text: str, names: Names) -> str:
        """Check a name, which may be part of a node, and return it."""
        if not names.has_partition(text):
            advice = nearest(text, names.partitions) if names.topics else "no topic is created"
            raise unreadable(node, f"there is no partition {text!r}: {advice}")
        return text

    def schema(self) -> Schema:
        """Return a string with a pattern."""
        return {"anyOf": [{"type": "string", "pattern": f"^{PARTITION}$"}, VARIABLE]}


@frozen
class TopicName(Shape[str]):
    """A topic that the scenario creates."""

    def read(self, node: YamlNode, names: Names) -> str:
        """Return the name."""
        text = node.value if isinstance(node, ScalarNode) else ""
        if names.are_known and text not in names.topics:
            advice = nearest(text, names.topics) if names.topics else "no topic is created"
            raise unreadable(node, f"there is no topic {text!r}: {advice}")
        return text

    def schema(self) -> Schema:
        """Return a string."""
        return {"anyOf": [{"type": "string"}, VARIABLE]}


@frozen
class SettingValue(Shape[str | None]):
    """The value of a setting as text; null means that the setting is inherited."""

    def read(self, node: YamlNode, names: Names) -> str | None:
        """Return the text."""
        del names
        if not isinstance(node, ScalarNode):
            raise unreadable(node, f"expected the value of a setting, found {found(node)}")
        return None if is_null(node) else str(node.value)

    def schema(self) -> Schema:
        """Return any scalar."""
        return {"type": ["string", "number", "boolean", "null"]}


@frozen
class WhenShape(Shape[When]):
    """A step, such as `orders-0 reaches A2`."""

    pattern: str = r"(\S+) (decides|reaches|publishes) (\S+)"

    def read(self, node: YamlNode, names: Names) -> When:
        """Return the step."""
        match = re.fullmatch(self.pattern, node.value) if isinstance(node, ScalarNode) else None
        if match is None:
            raise unreadable(
                node,
                "expected PARTITION decides, reaches or publishes ROUND, "
                f"such as 'orders-0 reaches A2', found {found(node)}",
            )
        if match[3] not in ROUNDS:
            raise unreadable(node, f"unknown round {match[3]}: {nearest(match[3], ROUNDS)}")
        partition = None if match[1] == ANYTHING else PartitionName().check(node, match[1], names)
        return When(partition, Reach(match[2]), match[3])

    def schema(self) -> Schema:
        """Return a string with a pattern."""
        return {"anyOf": [{"type": "string", "pattern": f"^{self.pattern}$"}, VARIABLE]}
