"""The arguments of verbs: nodes, topics, targets and kinds."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from simulator.actions.proposals import Flaw
from simulator.actions.requests import CreateTopic
from simulator.frames import APIS
from simulator.scenario.nouns import (
    BROKERS,
    PARTITION,
    TOPIC,
    node,
)
from simulator.scenario.shapes import (
    FLAG,
    Key,
    Shape,
    choice,
    either,
    integer,
    list_of,
    map_of,
    record,
    text,
)
from transport.errors import ErrorCode
from transport.messages import ElectionType

NODES: Final = list_of(node(), or_one=True)
BROKER_NODES: Final = list_of(node(controllers=False), or_one=True)
CONTROLLER_NODES: Final = list_of(node(brokers=False), or_one=True)
TOPIC_NAMES: Final = list_of(TOPIC, or_one=True)
TARGETS: Final = map_of(PARTITION, BROKERS)
SETTING: Final = text("the name of a setting")
TOTALS: Final = map_of(TOPIC, integer("a number of partitions", 1))


def _assignment(rows: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    if not rows:
        raise ValueError("a topic has one partition or more: write [[1, 2, 3]]")
    return {"assignment": rows}


COUNTS: Final = record(
    dict[str, Any],
    {
        "partitions": Key(integer("a number of partitions", 1), "The number of partitions."),
        "replication_factor": Key(integer("a number of replicas", 1), "The number of replicas of each."),
    },
)
TOPICS: Final = map_of(
    text("a topic's name", r"[a-zA-Z0-9._-]{1,249}"), either(COUNTS, list_of(BROKERS).then(_assignment))
).then(lambda topics: tuple(CreateTopic(name, **how) for name, how in topics.items()))


def words(kind: type[Enum]) -> Shape[Any]:
    """Return the shape of the members of an enumeration, by their names in lower case."""
    members = {member.name.lower(): member for member in kind}
    return choice(tuple(members)).then(members.__getitem__)


def only(topics: tuple[CreateTopic, ...]) -> CreateTopic:
    """Return the only one of topics. Raises ValueError if there are others."""
    if len(topics) != 1:
        raise ValueError("name one topic here")
    return topics[0]


FLAWS: Final = {flaw.name.lower(): flaw for flaw in Flaw}
KINDS: Final = {kind.name.lower(): kind for kind in ElectionType}
ERROR: Final = choice(tuple(code.name.lower() for code in ErrorCode)).then(lambda name: ErrorCode[name.upper()])
REQUESTED: Final = Key(choice(APIS), "The api of the request; by default any that is about leadership.")
ONE_WAY: Final = Key(FLAG, "Whether messages to the nodes still arrive.")
