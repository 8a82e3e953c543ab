"""A dump of the cluster's state as its brokers tell it, with the sizes of logs and disks: what planning reads.

What a broker does not tell stays unknown, and is said: nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from controller.admin.active_controller import ClusterUnreachable
from controller.admin.broker_log_dirs import BrokerLogDirs, all_denied
from controller.admin.client import AdminClient
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.disks import apart, may_share
from controller.admin.kafka_progress import Sizes
from controller.admin.least_isrs import least_isrs_in
from controller.admin.visibility import WHOLE, Visibility, undescribed
from transport.acls import Operation, needs
from transport.errors import ApiError, ErrorCode
from transport.kafka.volume import Volume
from transport.messages import (
    UNKNOWN,
    BrokerEndpoint,
    ConfigResource,
    ConfigResourceType,
    LogDir,
    MetadataResponse,
    PartitionState,
)
from transport.metadata import LEADER_DURING_DELETE
from transport.wire import WireError

_MAY_SHARE: Final = "some of its log directories may be on one disk"


@frozen
class ClusterDump:
    """The state of a cluster: `others` is everything but the partitions, and `gaps` says what is not known.

    `partial` is the first gap if topics are hidden from the client; None if it sees all of them.
    """

    partitions: list[dict[str, Any]]
    others: dict[str, Any]
    gaps: list[str]
    partial: str | None = None

    def loads(self) -> Iterator[dict[str, Any]]:
        """Yield a row with the size of each partition whose size is known."""
        for row in self.partitions:
            if row["bytes"] is not None:
                yield {name: row[name] for name in ("topic", "partition", "bytes")}


async def dump_cluster(admin: ClusterAdmin, *, shared_disks: bool | None = None, disks_remedy: str = "") -> ClusterDump:
    """Read metadata, the log directories of all brokers, and min.insync.replicas of topics; see `dump_of`.

    Raises ApiError, WireError.
    """
    metadata = await admin.read_metadata()
    dirs = await admin.describe_log_dirs([broker.id for broker in metadata.brokers])
    least = await _least_isrs(admin, {state.topic for state in metadata.partitions})
    visibility = await admin.visibility(undescribed(metadata, dirs))
    return dump_of(
        metadata,
        dirs,
        least,
        visibility,
        shared_disks=shared_disks,
        disks_remedy=disks_remedy,
        cluster_id=await admin.cluster_id(),
    )


async def _least_isrs(admin: ClusterAdmin, topics: Iterable[str]) -> Mapping[str, int]:
    """Return min.insync.replicas of topics; those whose settings cannot be read are missing."""
    try:
        if isinstance(admin, AdminClient):
            resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(topics)]
            return least_isrs_in(await admin.describe_configs(resources))
        # The classes of Kafka's messages take a while to import.
        from controller.admin.kafka_admin import KafkaAdmin  # noqa: PLC0415
        from controller.admin.kafka_summary import least_isrs  # noqa: PLC0415

        assert isinstance(admin, KafkaAdmin), "there are no other clusters with all operations"
        return await least_isrs(admin.cluster, topics)
    except (ApiError, ClusterUnreachable, WireError):
        return {}


def dump_of(
    metadata: MetadataResponse,
    dirs: Mapping[int, BrokerLogDirs],
    least: Mapping[str, int] = MappingProxyType({}),
    visibility: Visibility = WHOLE,
    *,
    shared_disks: bool | None = None,
    disks_remedy: str = "",
    cluster_id: str | None = None,
) -> ClusterDump:
    """Combine metadata and log directories into a dump, with the id of the cluster if it has one.

    `least` has min.insync.replicas of the topics of which it is known. `visibility` is the part of the cluster that
    the client sees. `shared_disks` says whether directories of a broker that may be on one disk are; if that is None,
    the disk is not known, and the gap about it names the `disks_remedy`: how the user says so.
    """
    kept = [state for state in metadata.partitions if state.leader != LEADER_DURING_DELETE]
    deleted = {state.topic for state in metadata.partitions} - {state.topic for state in kept}
    sizes, places = Sizes.of(dirs), _places(dirs)
    disks = {id_: _disk(told, shared=shared_disks) for id_, told in dirs.items()}
    epoch = _known(metadata.controller_epoch)
    # Without an epoch it may be any broker that passes requests on to the controller.
    controller = None if epoch is None or metadata.controller is None else metadata.controller.id
    others = {
        "controller": {"id": controller, "epoch": epoch},
        "cluster_id": cluster_id,
        "partial": visibility.lacking_topics,
        "brokers": [_broker(one, dirs.get(one.id, BrokerLogDirs()), disks.get(one.id)) for one in metadata.brokers],
        "reassign_partitions": [],
        "delete_topics": sorted(deleted),
        "undecodable": [],
    }
    ordered = sorted(kept, key=lambda state: state.tp)
    rows = [_partition(state, sizes, places, least.get(state.topic)) for state in ordered]
    gaps = [*visibility.lacking, *_gaps(dirs, disks, rows, disks_remedy)]
    return ClusterDump(rows, others, gaps, visibility.lacking_topics)


def _known(number: int | None) -> int | None:
    return None if number in (None, UNKNOWN) else number


# --- brokers ----------------------------------------------------------------------------------------------------


def _broker(broker: BrokerEndpoint, told: BrokerLogDirs, disk: int | str | None) -> dict[str, Any]:
    dirs = [_log_dir(one, told.volumes.get(one.path, Volume())) for one in told.log_dirs]
    return {
        "id": broker.id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "epoch": None,
        "disk": disk if isinstance(disk, int) else None,
        "log_dirs": dirs,
    }


def _log_dir(log_dir: LogDir, volume: Volume) -> dict[str, Any]:
    return {
        "path": log_dir.path,
        "error": None if log_dir.error is ErrorCode.NONE else log_dir.error.name,
        "bytes": sum(log.size for log in log_dir.replicas),
        "total_bytes": _known(volume.total),
        "usable_bytes": _known(volume.usable),
    }


def _disk(told: BrokerLogDirs, *, shared: bool | None) -> int | str:
    """Return the bytes that a broker's logs may take: those that they take and those that are free.

    If that is not known, return why.
    """
    if told.fault:
        return told.fault
    usable = [one for one in told.log_dirs if one.error is ErrorCode.NONE]
    volumes = [told.volumes.get(one.path, Volume()) for one in usable]
    if UNKNOWN in [volume.usable for volume in volumes] or not volumes:
        return "the broker does not tell how large its disks are"
    if shared is None and _may_share(volumes):
        return _MAY_SHARE
    free = sum(volume.usable for volume in (apart(volumes) if shared else volumes))
    return free + sum(log.size for one in usable for log in one.replicas)


def _may_share(volumes: list[Volume]) -> bool:
    ordered = sorted(volumes, key=lambda volume: (volume.total, volume.usable))
    return any(may_share(a, b) for a, b in pairwise(ordered))


# --- partitions -------------------------------------------------------------------------------------------------

_Places = Mapping[tuple[int, str, int], str]
"""The directory of each replica, by broker, topic and partition."""


def _places(dirs: Mapping[int, BrokerLogDirs]) -> _Places:
    return {
        (broker, log.topic, log.partition): one.path
        for broker, told in dirs.items()
        for one in told.log_dirs
        for log in one.replicas
    }


def _partition(state: PartitionState, sizes: Sizes, places: _Places, least_isr: int | None) -> dict[str, Any]:
    phase = "OnlinePartition" if state.leader >= 0 else "OfflinePartition"
    return {
        "topic": state.topic,
        "partition": state.partition,
        "topic_id": state.topic_id or None,
        "replicas": state.replicas,
        "adding_replicas": state.adding_replicas,
        "removing_replicas": state.removing_replicas,
        "leader": state.leader,
        "isr": state.isr,
        "leader_epoch": state.leader_epoch,
        "controller_epoch": _known(state.controller_epoch),
        "partition_state": phase,
        "min_insync_replicas": least_isr,
        "bytes": _size(state, sizes),
        "log_dirs": [places.get((broker, *state.tp)) for broker in state.replicas],
    }


def _size(state: PartitionState, sizes: Sizes) -> int | None:
    """Return the size of a partition's log on its leader, or else that of its largest replica; None if unknown."""
    led = sizes.at(state.leader, state.tp)
    if led != UNKNOWN:
        return led
    return _known(max((sizes.at(broker, state.tp) for broker in state.replicas), default=UNKNOWN))


# --- what is not known ------------------------------------------------------------------------------------------


def _gaps(
    dirs: Mapping[int, BrokerLogDirs],
    disks: Mapping[int, int | str],
    rows: Iterable[Mapping[str, Any]],
    disks_remedy: str,
) -> Iterator[str]:
    silent = [f"broker {id_}: {told.fault}" for id_, told in dirs.items() if told.fault]
    unsized = sum(row["bytes"] is None for row in rows)
    if all_denied(dirs):
        # The same is missing at all brokers: it is said once.
        yield f"sizes and log directories are not known, only counts are: {needs(Operation.DESCRIBE)}"
        return
    if silent:
        yield f"the logs of some brokers are not known ({'; '.join(silent)})"
    if unsized:
        yield f"the sizes of {unsized:,} partitions are not known"
    reasons: dict[str, list[str]] = {}
    for id_, disk in disks.items():
        if isinstance(disk, str) and not dirs[id_].fault:
            reasons.setdefault(disk, []).append(str(id_))
    for reason, brokers in reasons.items():
        named = f"broker{'s' if len(brokers) > 1 else ''} {', '.join(brokers)}"
        cure = f"{disks_remedy}, or " if disks_remedy and reason == _MAY_SHARE else ""
        yield f"the disk of {named} is not known: {reason}: {cure}give it with --brokers-table to plan with it"
