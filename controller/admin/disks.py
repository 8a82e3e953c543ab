"""The room on disks, as brokers tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.rollout.room import Disk, Places
from transport.errors import ErrorCode
from transport.kafka.volume import Volume
from transport.messages import UNKNOWN

_SAME: Final = 0.01
"""Two directories are perhaps on one disk if their free space differs by no more than this part of the disk."""


def disks_of(told: Mapping[int, BrokerLogDirs]) -> dict[int, Disk]:
    """Return what is free on each broker that tells it; directories that may be on one disk count once."""
    found = {broker: _disk(one) for broker, one in told.items()}
    return {broker: disk for broker, disk in found.items() if disk is not None}


def _disk(told: BrokerLogDirs) -> Disk | None:
    good = [one.path for one in told.log_dirs if one.error is ErrorCode.NONE]
    volumes = {path: told.volumes.get(path, Volume()) for path in good}
    if not volumes or any(volume.usable == UNKNOWN for volume in volumes.values()):
        return None
    paths = {path: volume.usable for path, volume in volumes.items()}
    return Disk(sum(one.usable for one in apart(volumes.values())), max(paths.values()), paths)


def apart(volumes: Iterable[Volume]) -> list[Volume]:
    """Return volumes of which no two may be the same."""
    found: list[Volume] = []
    for volume in sorted(volumes, key=lambda one: (one.total, one.usable)):
        if not found or not may_share(found[-1], volume):
            found.append(volume)
    return found


def may_share(one: Volume, larger: Volume) -> bool:
    """Return whether two volumes may be the same; `larger` has no less free space."""
    return one.total == larger.total and larger.usable - one.usable <= _SAME * one.total


def places_of(told: Mapping[int, BrokerLogDirs]) -> Places:
    """Return the directory of each replica, by partition and broker."""
    return {
        (log.tp, broker): one.path for broker, answer in told.items() for one in answer.log_dirs for log in one.replicas
    }
