"""The changes of settings by which moves are throttled, and their throttles lifted: pure.

Kafka's own settings do the throttling. A second setting, written in the same transaction, records what was added for
moves: for a topic the replicas that were named, for a broker its earlier rates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

from attrs import frozen

from controller.admin.move_record import Pairs
from transport.dynamic_configs import (
    BROKER_SETTINGS,
    FOLLOWER_RATE_BEFORE_MOVES,
    FOLLOWER_REPLICAS_OF_MOVES,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_RATE_BEFORE_MOVES,
    LEADER_REPLICAS_OF_MOVES,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    MOVE_SETTINGS,
    TOPIC_SETTINGS,
    parse_replicas,
    render_replicas,
)
from transport.kafka.volume import HIDDEN
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
)
from transport.metadata import TopicPartition
from transport.settings import InvalidSetting, Kind

NONE_BEFORE: Final = "-1"

_SETTINGS: Final = {**TOPIC_SETTINGS, **BROKER_SETTINGS, **MOVE_SETTINGS}


@frozen
class Side:
    """The settings of one side of replication, leaders or followers."""

    replicas: str
    replicas_of_moves: str
    rate: str
    rate_before: str


LEADERS: Final = Side(
    LEADER_THROTTLED_REPLICAS, LEADER_REPLICAS_OF_MOVES, LEADER_THROTTLED_RATE, LEADER_RATE_BEFORE_MOVES
)
FOLLOWERS: Final = Side(
    FOLLOWER_THROTTLED_REPLICAS, FOLLOWER_REPLICAS_OF_MOVES, FOLLOWER_THROTTLED_RATE, FOLLOWER_RATE_BEFORE_MOVES
)

ByTopic = Mapping[str, Pairs]


Own = Mapping[str, str]
"""A topic's or broker's settings by name."""


def slowed(resource: ConfigResource, own: Own, wanted: Mapping[Side, ByTopic], rate: int) -> AlterConfigsResource:
    """Set a broker's rates, and record those that it had before the first of the current moves."""
    configs = []
    for side, topics in wanted.items():
        if any(b == int(resource.name) for pairs in topics.values() for _, b in pairs):
            configs.append(set_to(side.rate, str(rate)))
            if side.rate_before not in own:
                configs.append(set_to(side.rate_before, _valid(own, side.rate) or NONE_BEFORE))
            elif _valid(own, side.rate_before) is None:
                configs.append(set_to(side.rate_before, NONE_BEFORE))
    return AlterConfigsResource(resource, tuple(configs))


def named(resource: ConfigResource, own: Own, wanted: Mapping[Side, ByTopic]) -> AlterConfigsResource:
    """Add replicas to a topic's throttled ones, and record those that were not among them before."""
    configs = []
    for side, topics in wanted.items():
        named = _pairs_in(own, side.replicas)
        new = frozenset() if named is None else topics.get(resource.name, frozenset()) - named
        if new:
            configs += _merged(own, side, ConfigOperation.APPEND, new)
    return AlterConfigsResource(resource, tuple(configs))


def unnamed(resource: ConfigResource, own: Own, ended: Collection[TopicPartition]) -> AlterConfigsResource:
    """Remove the replicas of ended moves from a topic's throttled ones, those that were added for moves."""
    configs = []
    for side in (LEADERS, FOLLOWERS):
        over = frozenset(pair for pair in pairs_of_moves(own, side) if TopicPartition(resource.name, pair[0]) in ended)
        if over:
            configs += _merged(own, side, ConfigOperation.SUBTRACT, over)
    return AlterConfigsResource(resource, tuple(configs))


def restored(
    resource: ConfigResource, own: Own, topics: Mapping[ConfigResource, Own], moving: Collection[TopicPartition]
) -> AlterConfigsResource:
    """Restore a broker's earlier rates on each side on which no move in progress throttles its replicas."""
    configs = []
    for side in (LEADERS, FOLLOWERS):
        before = own.get(side.rate_before)
        in_use = {
            broker
            for topic, settings in topics.items()
            for partition, broker in pairs_of_moves(settings, side)
            if TopicPartition(topic.name, partition) in moving
        }
        if before is None or int(resource.name) in in_use:
            continue
        configs.append(delete(side.rate_before))
        if before != NONE_BEFORE and _valid(own, side.rate_before) is not None:
            configs.append(set_to(side.rate, before))
        elif side.rate in own:
            configs.append(delete(side.rate))
    return AlterConfigsResource(resource, tuple(configs))


def pairs_of_moves(own: Own, side: Side) -> Pairs:
    """Return the throttled replicas of a topic that moves have added."""
    return _pairs_in(own, side.replicas_of_moves) or frozenset()


def _pairs_in(own: Own, name: str) -> Pairs | None:
    """Return the replicas in a setting, None for all of them. Others may have written a value that names none."""
    try:
        return parse_replicas(own.get(name, ""))
    except ValueError:
        return frozenset()


def _valid(own: Own, name: str) -> str | None:
    """Return the value of a setting; None if there is a value that is invalid, or none where the default is no text.

    A value that a release of Kafka hides may be valid: `kafka_settings.alter` refuses to record it.
    """
    setting = _SETTINGS[name]
    text = own.get(name, "" if setting.kind is Kind.REPLICAS else None)
    if text == HIDDEN:
        return text
    if text is not None:
        with suppress(InvalidSetting):
            setting.parse(text)
            return text
    return None


def _merged(own: Own, side: Side, operation: ConfigOperation, pairs: Pairs) -> list[AlterableConfig]:
    """Return the changes that append replicas to both lists of a side, or subtract them."""
    changes = []
    for name in (side.replicas, side.replicas_of_moves):
        if _valid(own, name) is not None:
            changes.append(AlterableConfig(name, operation, render_replicas(pairs)))
            continue
        # Only a valid list can be merged with another. What can be read of this one is kept.
        before = _pairs_in(own, name) or frozenset()
        after = before | pairs if operation is ConfigOperation.APPEND else before - pairs
        changes.append(set_to(name, render_replicas(after)))
    return changes


def set_to(name: str, value: str) -> AlterableConfig:
    """Return the change that sets a setting."""
    return AlterableConfig(name, ConfigOperation.SET, value)


def delete(name: str) -> AlterableConfig:
    """Return the change that deletes a setting."""
    return AlterableConfig(name, ConfigOperation.DELETE)


def topics_named(names: Iterable[str]) -> list[ConfigResource]:
    """Return the resources of topics, in the order of their names."""
    return [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(names)]


def brokers_of(ids: Iterable[int]) -> list[ConfigResource]:
    """Return the resources of brokers, in the order of their ids."""
    return [ConfigResource(ConfigResourceType.BROKER, str(id_)) for id_ in sorted(ids)]
