"""Throttles of moves (KIP-73): set before moves begin and lifted when they end, without touching other settings.

Kafka's own settings do the throttling. A second setting, written in the same transaction, records what was added for
moves: for a topic the replicas that were named, for a broker its earlier rates. So another process than the one that
set a throttle can remove exactly that throttle. A broker keeps its rate while replicas of moves in progress are
throttled there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.throttle_settings import (
    FOLLOWERS,
    LEADERS,
    ByTopic,
    Side,
    brokers_of,
    named,
    pairs_of_moves,
    restored,
    slowed,
    topics_named,
    unnamed,
)
from transport.errors import ApiError, ErrorCode, reason_of
from transport.messages import (
    AlterConfigsResource,
    ConfigResource,
    PartitionState,
)
from transport.metadata import TopicPartition

Alter = Callable[[ClusterAdmin, Sequence[AlterConfigsResource]], Awaitable[None]]
"""Makes changes that lift throttles, as `alter` does, or only looks at them."""


class NotThrottled(ApiError):
    """The settings of a topic or broker cannot be read, or not be changed."""

    def __init__(self, resource: ConfigResource, code: ErrorCode, message: str) -> None:
        super().__init__(code, message)
        self.resource = resource


async def alter(admin: ClusterAdmin, changes: Iterable[AlterConfigsResource], *, validate_only: bool = False) -> None:
    """Make changes if there are any, or only check them. Raises NotThrottled for the first that is refused."""
    wanted = [change for change in changes if change.configs]
    if not wanted:
        return
    for outcome in await admin.incremental_alter_configs(wanted, validate_only=validate_only):
        if outcome.error is not ErrorCode.NONE:
            text = f"{outcome.resource.name}: {reason_of(outcome.error, outcome.message)}"
            raise NotThrottled(outcome.resource, outcome.error, text)


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
    await alter(admin, [*changes, *(named(resource, own, wanted) for resource, own in topics.items())])


async def lift(admin: ClusterAdmin, over: Collection[TopicPartition], change: Alter = alter) -> bool:
    """Remove the throttle of completed moves; return whether there was one. Raises ApiError, WireError."""
    ongoing = await admin.list_partition_reassignments()
    moving = {move.tp for move in ongoing}
    ended = frozenset(over) - moving
    topics = await own_settings(admin, topics_named({tp.topic for tp in ended | moving}))
    gone = [unnamed(resource, own, ended) for resource, own in topics.items()]
    brokers = {broker.id for broker in (await admin.read_metadata(())).brokers}
    brokers |= {b for own in topics.values() for side in (LEADERS, FOLLOWERS) for _, b in pairs_of_moves(own, side)}
    free = [restored(r, own, topics, moving) for r, own in (await own_settings(admin, brokers_of(brokers))).items()]
    changes = [each for each in (*gone, *free) if each.configs]
    if changes:
        await change(admin, changes)
    return bool(changes)


# --- requests ---------------------------------------------------------------------------------------------------


_IS_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.BROKER_NOT_AVAILABLE})
_OWN_SOURCES: Final = frozenset({"DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG"})


async def own_settings(
    admin: ClusterAdmin, resources: Sequence[ConfigResource]
) -> dict[ConfigResource, dict[str, str]]:
    """Return the own settings of topics and brokers; deleted ones are left out, as nothing remains to be removed."""
    found = await admin.describe_configs(resources) if resources else ()
    for item in found:
        if item.error not in {ErrorCode.NONE, *_IS_GONE}:
            raise NotThrottled(item.resource, item.error, item.message)
    return {
        item.resource: {entry.name: entry.value for entry in item.entries if entry.source in _OWN_SOURCES}
        for item in found
        if item.error is ErrorCode.NONE
    }
