"""The reading of a cluster at one look, by a reader for each kind of cluster.

A reader asks for little. A controller of ours counts for itself, so that it is asked for partitions only while it
counts some at risk. Kafka's brokers, and ZooKeeper, count nothing: their partitions are counted here. Settings are
taken as known for a minute.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import click
import trio
from attrs import define, evolve, field, frozen
from msgspec.structs import replace

from controller.admin.active_controller import ClusterUnreachable
from controller.admin.client import AdminClient
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.least_isrs import least_isrs_in
from controller.admin.move_admin import MoveAdmin
from controller.admin.reassignments import ReassignmentDescriptions
from controller.admin.visibility import WHOLE, Visibility
from klamm.cli.connect import Cluster
from klamm.cli.rollout.described import report_of
from klamm.cli.rollout.report import Report
from transport.errors import ApiError
from transport.messages import (
    UNKNOWN,
    ConfigResource,
    ConfigResourceType,
    DescribeClusterResponse,
    MetadataResponse,
    PartitionState,
    ReassignmentDescription,
)
from transport.wire import UnsupportedApi, WireError

if TYPE_CHECKING:
    from controller.admin.kafka_admin import KafkaAdmin

_SETTINGS_SECONDS: Final = 60.0
_UNREAD: Final = (ApiError, ClusterUnreachable, WireError, click.ClickException)
_NO_MOVES: Final = ReassignmentDescriptions({})

Least = Mapping[str, int]
"""min.insync.replicas of topics, as far as it is known."""


@frozen
class Reading:
    """A cluster at one moment. `partitions` has at least those that are at risk."""

    cluster: DescribeClusterResponse
    moves: tuple[ReassignmentDescription, ...] = ()
    rate: int = UNKNOWN
    eta_ms: int = UNKNOWN
    partitions: tuple[PartitionState, ...] = ()
    least: Least = field(factory=dict)
    rollouts: tuple[Report, ...] = ()
    """Those that the controller carries out."""

    visibility: Visibility = WHOLE
    """The part of the cluster that we see."""

    @property
    def lacking(self) -> tuple[str, ...]:
        """A line for each thing that is hidden from us."""
        return self.visibility.lacking_counts(self.cluster.under_min_isr)


class Reader(Protocol):
    """Reads one kind of cluster."""

    async def look(self) -> Reading:
        """Return the cluster as it is now. Raises ApiError, ClusterUnreachable, StoreError, WireError."""


@asynccontextmanager
async def open_reader(cluster: Cluster) -> AsyncIterator[Reader]:
    """Open a reader for the kind of the cluster. Raises as `Cluster.open_moves`."""
    async with cluster.open_moves() as admin:
        if isinstance(admin, AdminClient):
            yield OwnReader(admin, Settings(partial(_least_of_own, cluster, admin)), Rights(admin.visibility))
        elif isinstance(admin, ClusterAdmin):
            yield _reader_of_kafka(admin)
        else:
            yield ZnodeReader(admin)


def _reader_of_kafka(admin: ClusterAdmin) -> Reader:
    # The classes of Kafka's messages take a while to import.
    from controller.admin.kafka_admin import KafkaAdmin
    from controller.admin.kafka_summary import least_isrs

    assert isinstance(admin, KafkaAdmin), "there are no other clusters with all operations"
    return KafkaReader(
        admin, Settings(partial(least_isrs, admin.cluster)), Rights(partial(admin.visibility, settings=True))
    )


@define
class Settings:
    """min.insync.replicas of topics, asked for again once a minute, and at once for topics that are new."""

    _ask: Callable[[Collection[str]], Awaitable[Least]]
    _known: dict[str, int] = field(factory=dict)
    _asked: set[str] = field(factory=set)
    _until: float = field(factory=lambda: trio.current_time() + _SETTINGS_SECONDS)

    async def of(self, topics: Collection[str]) -> Least:
        """Return what is known of topics; what cannot be read is missing."""
        if trio.current_time() >= self._until:
            self._asked.clear()
            self._until = trio.current_time() + _SETTINGS_SECONDS
        new = set(topics) - self._asked
        if new:
            self._asked |= new
            self._known |= await self._ask(sorted(new))
        return {name: self._known[name] for name in topics if name in self._known}


async def _least_of_own(cluster: Cluster, admin: AdminClient, topics: Collection[str]) -> Least:
    """Return min.insync.replicas of topics under a controller of ours, whose brokers may be Kafka's."""
    try:
        async with cluster.settings_of(admin) as settings:
            return await _least_isrs(settings, topics)
    except _UNREAD:
        return {}


async def _least_isrs(admin: ClusterAdmin, topics: Collection[str]) -> Least:
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
    return least_isrs_in(await admin.describe_configs(resources))


@define
class Rights:
    """The part of a cluster that we see, asked for again once a minute."""

    _ask: Callable[[], Awaitable[Visibility]]
    _known: Visibility | None = None
    _until: float = 0.0

    async def visibility(self) -> Visibility:
        """Return what we see."""
        if self._known is None or trio.current_time() >= self._until:
            self._known = await self._ask()
            self._until = trio.current_time() + _SETTINGS_SECONDS
        return self._known


@define
class OwnReader:
    """Reads a cluster whose controller is ours."""

    _admin: AdminClient
    _settings: Settings
    _rights: Rights
    _has_rollouts: bool = True
    """False under a controller of an earlier release, which carries out none."""

    async def look(self) -> Reading:
        """Return the cluster as the controller tells it, in two questions if nothing moves and nothing is at risk."""
        cluster = await self._admin.describe_cluster()
        moves = await self._admin.describe_reassignments() if cluster.being_reassigned else _NO_MOVES
        partitions: tuple[PartitionState, ...] = ()
        visibility = WHOLE
        if cluster.offline or cluster.under_replicated or cluster.under_min_isr:
            partitions = (await self._admin.read_metadata()).partitions
            visibility = await self._rights.visibility()
        least = await self._settings.of({state.topic for state in partitions})
        reading = _reading(cluster, moves, partitions, least)
        return evolve(reading, rollouts=await self._rollouts(), visibility=visibility)

    async def _rollouts(self) -> tuple[Report, ...]:
        if not self._has_rollouts:
            return ()
        try:
            return tuple(map(report_of, await self._admin.describe_rollouts()))
        except UnsupportedApi:
            self._has_rollouts = False
            return ()


@frozen
class KafkaReader:
    """Reads a cluster of Kafka's, through its brokers."""

    _admin: KafkaAdmin
    _settings: Settings
    _rights: Rights

    async def look(self) -> Reading:
        """Return the cluster as its brokers tell it."""
        from controller.admin.kafka_summary import controller_of

        found = await self._admin.read_metadata()
        visibility = await self._rights.visibility()
        controller, epoch = await controller_of(self._admin.cluster, found)
        least = await self._settings.of({state.topic for state in found.partitions})
        counts = _counted(replace(found, controller=controller, controller_epoch=epoch), least)
        if not visibility.sees_moves:
            counts = replace(counts, being_reassigned=UNKNOWN)
        reading = _reading(counts, await _moves_of(self._admin, found), found.partitions, least)
        return evolve(reading, visibility=visibility)


@frozen
class ZnodeReader:
    """Reads a cluster under Kafka's own controller through its znodes, which do not tell the defaults of settings."""

    _admin: MoveAdmin

    async def look(self) -> Reading:
        """Return the cluster as it is in ZooKeeper."""
        found = await self._admin.read_metadata()
        return _reading(_counted(found, {}), await _moves_of(self._admin, found), found.partitions, {})


async def _moves_of(admin: MoveAdmin, found: MetadataResponse) -> ReassignmentDescriptions:
    moving = any(state.is_being_reassigned for state in found.partitions)
    return await admin.describe_reassignments() if moving else _NO_MOVES


def _counted(found: MetadataResponse, least: Least) -> DescribeClusterResponse:
    from controller.admin.kafka_summary import counted

    return counted(found, least)


def _reading(
    cluster: DescribeClusterResponse,
    moves: ReassignmentDescriptions,
    partitions: tuple[PartitionState, ...],
    least: Least,
) -> Reading:
    return Reading(cluster, tuple(moves.values()), moves.rate, moves.eta_ms, partitions, least)
