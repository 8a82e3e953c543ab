"""The shapes of nodes, partitions, topics and steps in a scenario."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from attrs import frozen
from yaml import Node as YamlNode, ScalarNode

from simulator.actions.scene import LEADER_OF, SAME, WORDS, Node
from simulator.scenario.faults import Unfit, nearest, unreadable
from simulator.scenario.names import Names
from simulator.scenario.shapes import Schema, Shape, duration, found, is_null, list_of, scalar

ROUNDS: Final = (
    *("U1", "A1", "B3", "B4", "B6", "B7"),
    *("ISR", "elect", "order", "leave", "expel", "create", "adopt", "new", "resend", "metadata", "strays", "deleted"),
    *("brokers", "gone", "observed", "parents", "refused", "replicas", "storage", "topics", "loaded"),
    *("grow", "configs", "shutting down", "thaw"),
    *("mark", "delete", "stop", "remove", "rollouts", "marks"),
)
"""The names of the controller's rounds."""

PARTITION_PATTERN: Final = r".+-\d+"
ANYTHING: Final = "anything"


def _partition(name: str, names: Names) -> str:
    if not names.has_partition(name):
        advice = nearest(name, names.partitions) if names.topics else "no topic is created"
        raise Unfit(f"there is no partition {name!r}: {advice}")
    return name


def _topic(name: str, names: Names) -> str:
    if names.are_known and names.are_checked and name not in names.topics:
        advice = nearest(name, names.topics) if names.topics else "no topic is created"
        raise Unfit(f"there is no topic {name!r}: {advice}")
    return name


PARTITION: Final = scalar("a partition", _partition, {"type": "string", "pattern": f"^{PARTITION_PATTERN}$"})
"""A partition of a topic that the scenario creates."""

TOPIC: Final = scalar("a topic", _topic, {"type": "string"})
"""A topic that the scenario creates."""


def _id(text: str, names: Names, ids: tuple[int, ...]) -> int | None:
    return int(text) if text.isdecimal() and (int(text) in ids or not names.are_known) else None


def _ids(*, controllers: bool) -> Shape[int]:
    def parse(text: str, names: Names) -> int:
        ids = names.ids(brokers=True, controllers=controllers)
        id_ = _id(text, names, ids) if names.are_checked else int(text) if text.isdecimal() else None
        if id_ is None:
            raise Unfit(f"there is no node {text!r}: there are {names.text(ids)}")
        return id_

    return scalar("the id of a node", parse, {"type": "integer"})


BROKER_ID: Final = _ids(controllers=False)
NODE_ID: Final = _ids(controllers=True)
BROKERS: Final = list_of(BROKER_ID)
PARTITIONS: Final = list_of(PARTITION, or_one=True)
SECONDS: Final = duration()


def node(*, brokers: bool = True, controllers: bool = True) -> Shape[Node]:
    """Return the shape of a node: its id, or a word that stands for one when the event happens."""
    words = WORDS if controllers else (SAME,)
    leader = f", and '{LEADER_OF}TOPIC-NUMBER'" if brokers else ""

    def parse(text: str, names: Names) -> Node:
        ids = names.ids(brokers=brokers, controllers=controllers)
        if (id_ := _id(text, names, ids)) is not None:
            return id_
        if brokers and text.startswith(LEADER_OF):
            return LEADER_OF + _partition(text.removeprefix(LEADER_OF), names)
        if text not in words:
            known = ", ".join([names.text(ids), *words])
            raise Unfit(f"there is no node {text!r}: there are {known}{leader}")
        return text

    schemas: list[Schema] = [{"type": "integer"}]
    if words:
        schemas.append({"enum": list(words)})
    if brokers:
        schemas.append({"type": "string", "pattern": f"^{LEADER_OF}{PARTITION_PATTERN}$"})
    return scalar("a node", parse, *schemas)


def _setting(value: YamlNode, _: Names) -> str | None:
    if not isinstance(value, ScalarNode):
        raise unreadable(value, f"expected the value of a setting, found {found(value)}")
    return None if is_null(value) else str(value.value)


SETTING_VALUE: Final = Shape(_setting, {"type": ["string", "number", "boolean", "null"]})
"""The value of a setting as text; null means that the setting is inherited."""


class Reach(Enum):
    """The moments of a round for which an event can wait."""

    DECIDES = "decides"
    COMMITS = "commits"
    REACHES = "reaches"
    PUBLISHES = "publishes"


@frozen
class When:
    """The moment of a step: a controller decides, reaches (has put into effect), commits or publishes a round."""

    partition: str | None
    """None for a round of any subject."""

    reach: Reach
    round: str


_STEP: Final = rf"(\S+) ({'|'.join(reach.value for reach in Reach)}) (.+)"


def _when(text: str, names: Names) -> When:
    match = re.fullmatch(_STEP, text)
    if match is None:
        raise Unfit
    if match[3] not in ROUNDS:
        raise Unfit(f"unknown round {match[3]}: {nearest(match[3], ROUNDS)}")
    return When(None if match[1] == ANYTHING else _partition(match[1], names), Reach(match[2]), match[3])


WHEN: Final = scalar(
    "PARTITION decides, reaches, commits or publishes ROUND, such as 'orders-0 reaches U1'",
    _when,
    {"type": "string", "pattern": f"^{_STEP}$"},
)
"""A step, such as `orders-0 reaches U1`."""
