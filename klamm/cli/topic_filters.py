"""The filters of Kafka's kafka-topics: partitions that lack something, and topics without Kafka's own.

A filter asks no more of a cluster than its kind can tell: metadata, and min.insync.replicas of the topics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache, wraps
from typing import Final, TypeVar

import click

from controller.admin.cluster_admin import ClusterAdmin
from klamm.cli.connect import Cluster
from klamm.cli.decorators import with_options
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.errors import ApiError, ErrorCode, reason_of
from transport.messages import ConfigResource, ConfigResourceType, MetadataResponse, PartitionState
from transport.metadata import INTERNAL_TOPICS, LEADER_DURING_DELETE

T = TypeVar("T")


class Lack(Enum):
    """The lack of a partition; the value names the option, and the partitions that it lists."""

    REPLICAS = "under-replicated-partitions"
    LEADER = "unavailable-partitions"
    MIN_ISR = "under-min-isr-partitions"
    SPARE_REPLICAS = "at-min-isr-partitions"


_HELP: Final = {
    Lack.REPLICAS: "Only partitions of which a replica is not in sync.",
    Lack.LEADER: "Only partitions without a live leader.",
    Lack.MIN_ISR: "Only partitions with fewer replicas in sync than min.insync.replicas, or without a live leader.",
    Lack.SPARE_REPLICAS: "Only partitions with just min.insync.replicas replicas in sync.",
}
_NONE_LACKS: Final = {
    Lack.REPLICAS: "no partition is under-replicated",
    Lack.LEADER: "no partition is unavailable",
    Lack.MIN_ISR: "no partition is under its min.insync.replicas",
    Lack.SPARE_REPLICAS: "no partition is at its min.insync.replicas",
}


def none_lacks(lack: Lack) -> str:
    """Return the line for a list without partitions."""
    return _NONE_LACKS[lack]


def lack_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add a flag for each kind of lack; the command receives the one given as `lack`, or None."""

    @wraps(command)
    def with_lack(**options: object) -> T:
        given = [lack for lack in Lack if options.pop(lack.name.lower())]
        if len(given) > 1:
            names = " and ".join(f"--{lack.value}" for lack in given)
            raise click.UsageError(f"{names} are different lists: ask for one at a time")
        return command(lack=given[0] if given else None, **options)

    flags = [click.option(f"--{lack.value}", lack.name.lower(), is_flag=True, help=_HELP[lack]) for lack in Lack]
    return with_options(with_lack, flags)


exclude_internal_option: Final = click.option(
    "--exclude-internal", is_flag=True, help="Leave out the topics of Kafka's own, such as __consumer_offsets."
)
"""The option that leaves out the topics of Kafka's own."""


def has_patterns(names: Iterable[str]) -> bool:
    """Return whether some of the names are patterns; no name of a topic has these characters."""
    return any(sign in name for name in names for sign in "*?[")


def matching(names: Collection[str], states: Iterable[PartitionState]) -> list[PartitionState]:
    """Return the partitions of topics that a name or pattern matches; those of all topics without names."""
    plain = set(names)
    patterns = [name for name in names if has_patterns([name])]

    @cache
    def is_meant(topic: str) -> bool:
        return not names or topic in plain or any(fnmatchcase(topic, pattern) for pattern in patterns)

    return [state for state in states if is_meant(state.topic)]


def require_topics(names: Iterable[str], states: Iterable[PartitionState]) -> None:
    """Raise click.ClickException if there is no topic of a name; a pattern may match none."""
    unknown = sorted({name for name in names if not has_patterns([name])} - {state.topic for state in states})
    if unknown:
        raise click.ClickException(f"there is no topic {', '.join(unknown)}: see `klamm topic list`")


def without_internal(states: Iterable[PartitionState]) -> list[PartitionState]:
    """Return the partitions of topics that are not Kafka's own."""
    return [state for state in states if state.topic not in INTERNAL_TOPICS]


async def lacking(
    cluster: Cluster, admin: ClusterAdmin, metadata: MetadataResponse, lack: Lack
) -> list[PartitionState]:
    """Return the partitions that lack something; those being deleted lack nothing.

    Raises ApiError if the settings of a topic that has to be judged by them may not be read.
    """
    kept = [state for state in metadata.partitions if state.leader != LEADER_DURING_DELETE]
    if lack is Lack.REPLICAS:
        return [state for state in kept if state.is_under_replicated]
    live = {broker.id for broker in metadata.brokers}
    leaderless = [state for state in kept if state.leader not in live]
    if lack is Lack.LEADER:
        return leaderless
    async with cluster.settings_of(admin) as settings:
        least = await _least_isrs(settings, {state.topic for state in kept})
    # A topic that is missing has been deleted meanwhile.
    spare = {state.tp: len(state.isr) - least[state.topic] for state in kept if state.topic in least}
    if lack is Lack.SPARE_REPLICAS:
        return [state for state in kept if spare.get(state.tp) == 0]
    # A replica that is dead stays in the ISR if it is the last one, and takes no records.
    dead = {state.tp for state in leaderless}
    return [state for state in kept if state.tp in spare and (spare[state.tp] < 0 or state.tp in dead)]


async def _least_isrs(admin: ClusterAdmin, topics: Collection[str]) -> dict[str, int]:
    """Return min.insync.replicas of topics. Raises ApiError unless a topic is gone."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(topics)]
    found: dict[str, int] = {}
    for one in await admin.describe_configs(resources) if resources else ():
        if one.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        values = [entry.value for entry in one.entries if entry.name == MIN_INSYNC_REPLICAS]
        if one.error is not ErrorCode.NONE or not values:
            name = one.resource.name
            why = reason_of(one.error, one.message)
            raise ApiError(one.error, f"{MIN_INSYNC_REPLICAS} of topic {name} is not known: {why}")
        found[one.resource.name] = int(values[0])
    return found
