"""The settings of topics and brokers in a cluster of Kafka's.

Any broker knows those of topics and the default of all brokers, and only a broker itself knows its own.

Two kinds of records that moves make of throttles have another form than in clusters of ours. Kafka lets topics have no
settings but its own: the replicas that a move has added are recorded outside the cluster, and here all throttled ones
that are named one by one count as those of moves, so that a broker keeps its rate while one of them moves. Brokers may
have any settings, but Kafka does not tell the values of those that it does not know: the earlier rate of a broker is
part of the name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import trio
from msgspec.structs import replace

from controller.admin.kafka_cluster import ATTEMPT_SECONDS, KafkaCluster
from transport.dynamic_configs import (
    ALL_REPLICAS,
    FOLLOWER_RATE_BEFORE_MOVES,
    FOLLOWER_REPLICAS_OF_MOVES,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_RATE_BEFORE_MOVES,
    LEADER_REPLICAS_OF_MOVES,
    LEADER_THROTTLED_REPLICAS,
)
from transport.errors import ApiError, ErrorCode
from transport.kafka.changing import alter_configs
from transport.kafka.reading import configs
from transport.kafka.volume import HIDDEN
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ResourceConfigs,
    ResourceError,
)
from transport.metadata import number_in
from transport.wire import WireError

MOST_TOPICS: Final = 1_000
"""The number of topics whose settings one request asks for. A topic has about forty."""

_OF_MOVES: Final = {
    LEADER_THROTTLED_REPLICAS: LEADER_REPLICAS_OF_MOVES,
    FOLLOWER_THROTTLED_REPLICAS: FOLLOWER_REPLICAS_OF_MOVES,
}
_BEFORE_MOVES: Final = (LEADER_RATE_BEFORE_MOVES, FOLLOWER_RATE_BEFORE_MOVES)
_OF_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
_SET: Final = "set"
"""The value of a setting whose name says everything."""

_RATE_IS_HIDDEN: Final = (
    "broker {} has a rate of its own that its release of Kafka does not tell, so it could not be restored: delete it "
    "with kafka-configs, or move without a throttle"
)
_ONLY_ITSELF: Final = "Kafka takes and tells the settings of a broker only at this broker"


# --- reading ----------------------------------------------------------------------------------------------------


async def describe(
    cluster: KafkaCluster, resources: Sequence[ConfigResource], names: Sequence[str] | None = None
) -> tuple[ResourceConfigs, ...]:
    """Return the settings in effect, all or those named. A broker that does not answer has an error instead."""
    found: dict[ConfigResource, ResourceConfigs] = {}
    anywhere = [one for one in resources if _broker_of(one) is None]
    for start in range(0, len(anywhere), MOST_TOPICS):
        answer = await cluster.ask(configs(anywhere[start : start + MOST_TOPICS], names))
        found |= {one.resource: _with_moves(one) for one in answer}

    async def ask(resource: ConfigResource, broker_id: int) -> None:
        try:
            [told] = await cluster.ask_broker(broker_id, configs([resource], names), ATTEMPT_SECONDS)
            found[resource] = _of_broker(told, is_complete=names is None)
        except (ApiError, WireError) as error:
            found[resource] = ResourceConfigs(resource, (), *_absence(broker_id, error))

    async with trio.open_nursery() as nursery:
        for resource in resources:
            if (broker_id := _broker_of(resource)) is not None:
                nursery.start_soon(ask, resource, broker_id)
    return tuple(found[resource] for resource in resources if resource in found)


def _broker_of(resource: ConfigResource) -> int | None:
    """Return the id of the broker that has to be asked; None for any."""
    return number_in(resource.name) if resource.type is ConfigResourceType.BROKER else None


def _absence(broker_id: int, error: ApiError | WireError) -> tuple[ErrorCode, str]:
    if isinstance(error, ApiError) and error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
        return error.code, error.message
    why = f"broker {broker_id} is not alive" if isinstance(error, ApiError) else str(error)
    return ErrorCode.BROKER_NOT_AVAILABLE, f"{why}: {_ONLY_ITSELF}"


def _with_moves(told: ResourceConfigs) -> ResourceConfigs:
    """Add to a topic's settings those that say which throttled replicas moves have added."""
    if told.resource.type is not ConfigResourceType.TOPIC:
        return told
    return replace(told, entries=(*told.entries, *_of_moves(told.entries)))


def _of_moves(entries: Iterable[ConfigEntry]) -> Iterator[ConfigEntry]:
    for entry in entries:
        name = _OF_MOVES.get(entry.name)
        if name is not None and entry.value not in ("", ALL_REPLICAS):
            yield ConfigEntry(name, entry.value, entry.source)


def _of_broker(told: ResourceConfigs, *, is_complete: bool) -> ResourceConfigs:
    if is_complete and told.error is ErrorCode.NONE and not told.entries:
        text = f"node {told.resource.name} is a controller, which has no settings: name a broker"
        return replace(told, error=ErrorCode.INVALID_REQUEST, message=text)
    return replace(told, entries=tuple(map(_with_value, told.entries)))


def _with_value(entry: ConfigEntry) -> ConfigEntry:
    """Return a broker's setting; the value of an earlier rate is taken from its name."""
    for name in _BEFORE_MOVES:
        if entry.name.startswith(f"{name}."):
            return ConfigEntry(name, entry.name.removeprefix(f"{name}."), entry.source)
    return entry


# --- changing ---------------------------------------------------------------------------------------------------


async def alter(
    cluster: KafkaCluster, resources: Sequence[AlterConfigsResource], *, validate_only: bool = False
) -> tuple[ResourceError, ...]:
    """Change settings, or only let Kafka check the changes; none if a rate would be recorded that is not known.

    Raises OutcomeUnknown.
    """
    refused = [one.resource for one in resources if _has_hidden_rate(one)]
    if refused:
        texts = ((resource, _RATE_IS_HIDDEN.format(resource.name)) for resource in refused)
        return tuple(ResourceError(resource, ErrorCode.INVALID_CONFIG, text) for resource, text in texts)
    found: dict[ConfigResource, ResourceError] = {}
    anywhere = [one for one in resources if _broker_of(one.resource) is None]
    if anywhere:
        safe = await _with_first_items(cluster, anywhere)
        found |= {
            one.resource: one for one in await cluster.change_any(alter_configs(safe, validate_only=validate_only))
        }
    for one in resources:
        broker_id = _broker_of(one.resource)
        if broker_id is not None:
            found[one.resource] = await _alter_broker(cluster, broker_id, one, validate_only=validate_only)
    return tuple(found[one.resource] for one in resources if one.resource in found)


def _has_hidden_rate(change: AlterConfigsResource) -> bool:
    return any(_is_new(one) and one.value == HIDDEN for one in change.configs)


def _appends(change: AlterConfigsResource) -> bool:
    return any(one.operation is ConfigOperation.APPEND for one in change.configs)


async def _with_first_items(
    cluster: KafkaCluster, wanted: Sequence[AlterConfigsResource]
) -> Sequence[AlterConfigsResource]:
    """Return changes that set a list which a topic does not have, where they would append to it.

    Kafka 2.4 fails to append to such a list. The releases up to 2.8 append to its empty text: a list of throttled
    replicas then begins with nothing, which no broker can read; those that are started end at once.
    """
    appending = [one.resource for one in wanted if _appends(one)]
    if not appending:
        return wanted
    told = await describe(cluster, appending)
    own = {one.resource: {entry.name for entry in one.entries if _is_of_topic(entry)} for one in told}
    return [
        replace(one, configs=tuple(_first_item(change, own.get(one.resource, set())) for change in one.configs))
        for one in wanted
    ]


def _is_of_topic(entry: ConfigEntry) -> bool:
    """Return whether a topic has a value of its own that is not empty."""
    return entry.source == _OF_TOPIC and entry.value != ""


def _first_item(change: AlterableConfig, own: Collection[str]) -> AlterableConfig:
    is_first = change.operation is ConfigOperation.APPEND and change.name not in own
    return replace(change, operation=ConfigOperation.SET) if is_first else change


async def _alter_broker(
    cluster: KafkaCluster, broker_id: int, wanted: AlterConfigsResource, *, validate_only: bool
) -> ResourceError:
    try:
        changes = await _with_names(cluster, broker_id, wanted)
        [answer] = await cluster.change_broker(broker_id, alter_configs([changes], validate_only=validate_only))
    except ApiError as error:
        return ResourceError(wanted.resource, *_absence(broker_id, error))
    return answer


async def _with_names(cluster: KafkaCluster, broker_id: int, wanted: AlterConfigsResource) -> AlterConfigsResource:
    """Return changes that have the values of earlier rates in their names."""
    gone = [one.name for one in wanted.configs if _is_record(one) and one.operation is ConfigOperation.DELETE]
    kept = [one for one in wanted.configs if not _is_record(one)]
    new = [AlterableConfig(f"{one.name}.{one.value}", one.operation, _SET) for one in wanted.configs if _is_new(one)]
    old: list[AlterableConfig] = []
    if gone:
        [told] = await cluster.ask_broker(broker_id, configs([wanted.resource]), ATTEMPT_SECONDS)
        names = [entry.name for entry in told.entries if _with_value(entry).name in gone]
        old = [AlterableConfig(name, ConfigOperation.DELETE) for name in names]
    return replace(wanted, configs=(*kept, *new, *old))


def _is_record(change: AlterableConfig) -> bool:
    return change.name in _BEFORE_MOVES


def _is_new(change: AlterableConfig) -> bool:
    return _is_record(change) and change.operation is ConfigOperation.SET
