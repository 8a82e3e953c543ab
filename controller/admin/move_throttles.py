"""Throttles of moves (KIP-73): set before moves begin and lifted when they end, without touching other settings.

Kafka's own settings do the throttling. A second setting, written in the same transaction, records what was added for
moves: for a topic the replicas that were named, for a broker its earlier rates. So another process than the one that
set a throttle can remove exactly that throttle. A broker keeps its rate while replicas of moves in progress are
throttled there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_record import Pairs
from transport.dynamic_configs import (
    FOLLOWER_RATE_BEFORE_MOVES,
    FOLLOWER_REPLICAS_OF_MOVES,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_RATE_BEFORE_MOVES,
    LEADER_REPLICAS_OF_MOVES,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    parse_replicas,
    render_replicas,
)
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    PartitionState,
)
from transport.metadata import TopicPartition

NONE_BEFORE: Final = "-1"


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


def replicas_of(
    states: Iterable[PartitionState], targets: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[Side, ByTopic]:
    """Return the replicas to throttle: existing ones as leaders, added ones as followers."""
    leading: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    following: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    for state in states:
        target = targets.get(state.tp, ())
        origin = state.origin_replicas
        adding = [r for r in target if r not in origin]
        if adding:
            leading[state.topic] |= {(state.partition, r) for r in origin}
            following[state.topic] |= {(state.partition, r) for r in adding}
    sides = ((LEADERS, leading), (FOLLOWERS, following))
    return {side: {topic: frozenset(pairs) for topic, pairs in found.items()} for side, found in sides}


async def throttle(
    admin: ClusterAdmin, states: Iterable[PartitionState], targets: Mapping[TopicPartition, tuple[int, ...]], rate: int
) -> None:
    """Throttle moves to `rate` bytes per second, before they begin or in progress. Raises ApiError, WireError."""
    wanted = replicas_of(states, targets)
    topics = await own_settings(admin, topics_named({topic for found in wanted.values() for topic in found}))
    brokers = await own_settings(
        admin, brokers_of({b for found in wanted.values() for pairs in found.values() for _, b in pairs})
    )
    changes = [slowed(resource, own, wanted, rate) for resource, own in brokers.items()]
    await alter(admin, [*changes, *(_named(resource, own, wanted) for resource, own in topics.items())])


async def lift(admin: ClusterAdmin, over: Collection[TopicPartition]) -> bool:
    """Remove the throttle of completed moves; return whether there was one. Raises ApiError, WireError."""
    ongoing = await admin.list_partition_reassignments()
    moving = {move.tp for move in ongoing}
    ended = frozenset(over) - moving
    topics = await own_settings(admin, topics_named({tp.topic for tp in ended | moving}))
    gone = [_unnamed(resource, own, ended) for resource, own in topics.items()]
    brokers = {broker.id for broker in (await admin.read_metadata(())).brokers}
    brokers |= {b for own in topics.values() for side in (LEADERS, FOLLOWERS) for _, b in pairs_of_moves(own, side)}
    free = [restored(r, own, topics, moving) for r, own in (await own_settings(admin, brokers_of(brokers))).items()]
    changes = [change for change in (*gone, *free) if change.configs]
    await alter(admin, changes)
    return bool(changes)


# --- the alterations: pure --------------------------------------------------------------------------------------

Own = Mapping[str, str]
"""A topic's or broker's settings by name."""


def slowed(resource: ConfigResource, own: Own, wanted: Mapping[Side, ByTopic], rate: int) -> AlterConfigsResource:
    """Set a broker's rates, and record those that it had before the first of the current moves."""
    configs = []
    for side, topics in wanted.items():
        if any(b == int(resource.name) for pairs in topics.values() for _, b in pairs):
            configs.append(set_to(side.rate, str(rate)))
            if side.rate_before not in own:
                configs.append(set_to(side.rate_before, own.get(side.rate, NONE_BEFORE)))
    return AlterConfigsResource(resource, tuple(configs))


def _named(resource: ConfigResource, own: Own, wanted: Mapping[Side, ByTopic]) -> AlterConfigsResource:
    """Add replicas to a topic's throttled ones, and record those that were not among them before."""
    configs = []
    for side, topics in wanted.items():
        named = parse_replicas(own.get(side.replicas, ""))
        new = frozenset() if named is None else topics.get(resource.name, frozenset()) - named
        if new:
            configs += _merged(side, ConfigOperation.APPEND, new)
    return AlterConfigsResource(resource, tuple(configs))


def _unnamed(resource: ConfigResource, own: Own, ended: Collection[TopicPartition]) -> AlterConfigsResource:
    configs = []
    for side in (LEADERS, FOLLOWERS):
        over = frozenset(pair for pair in pairs_of_moves(own, side) if TopicPartition(resource.name, pair[0]) in ended)
        if over:
            configs += _merged(side, ConfigOperation.SUBTRACT, over)
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
        if before != NONE_BEFORE:
            configs.append(set_to(side.rate, before))
        elif side.rate in own:
            configs.append(delete(side.rate))
    return AlterConfigsResource(resource, tuple(configs))


def pairs_of_moves(own: Own, side: Side) -> Pairs:
    """Return the throttled replicas of a topic that moves have added."""
    return parse_replicas(own.get(side.replicas_of_moves, "")) or frozenset()


def _merged(side: Side, operation: ConfigOperation, pairs: Pairs) -> list[AlterableConfig]:
    text = render_replicas(pairs)
    return [AlterableConfig(name, operation, text) for name in (side.replicas, side.replicas_of_moves)]


def set_to(name: str, value: str) -> AlterableConfig:
    """Return the change that sets a setting."""
    return AlterableConfig(name, ConfigOperation.SET, value)


def delete(name: str) -> AlterableConfig:
    """Return the change that deletes a setting."""
    return AlterableConfig(name, ConfigOperation.DELETE)


# --- requests ---------------------------------------------------------------------------------------------------


def topics_named(names: Iterable[str]) -> list[ConfigResource]:
    """Return the resources of topics, in the order of their names."""
    return [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(names)]


def brokers_of(ids: Iterable[int]) -> list[ConfigResource]:
    """Return the resources of brokers, in the order of their ids."""
    return [ConfigResource(ConfigResourceType.BROKER, str(id_)) for id_ in sorted(ids)]


_IS_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.BROKER_NOT_AVAILABLE})
_OWN_SOURCES: Final = frozenset({"DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG"})


async def own_settings(
    admin: ClusterAdmin, resources: Sequence[ConfigResource]
) -> dict[ConfigResource, dict[str, str]]:
    """Return the own settings of topics and brokers; deleted ones are left out, as nothing remains to be removed."""
    found = await admin.describe_configs(resources) if resources else ()
    for item in found:
        if item.error not in {ErrorCode.NONE, *_IS_GONE}:
            raise ApiError(item.error, item.message)
    return {
        item.resource: {entry.name: entry.value for entry in item.entries if entry.source in _OWN_SOURCES}
        for item in found
        if item.error is ErrorCode.NONE
    }


async def alter(admin: ClusterAdmin, changes: Iterable[AlterConfigsResource]) -> None:
    """Make changes, if there are any. Raises ApiError for the first that is refused."""
    wanted = [change for change in changes if change.configs]
    for outcome in await admin.incremental_alter_configs(wanted) if wanted else ():
        if outcome.error is not ErrorCode.NONE:
            raise ApiError(outcome.error, f"{outcome.resource.name}: {outcome.message or outcome.error.name}")
