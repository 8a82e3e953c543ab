"""The room on the disks of brokers, as far as they tell it."""

from __future__ import annotations

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.disks import disks_of
from controller.rollout.room import Disk
from transport.errors import ErrorCode
from transport.kafka.volume import Volume
from transport.messages import LogDir


def told(*volumes: Volume, error: ErrorCode = ErrorCode.NONE) -> BrokerLogDirs:
    dirs = tuple(LogDir(f"/{n}", error, ()) for n in range(len(volumes)))
    return BrokerLogDirs(dirs, volumes={f"/{n}": volume for n, volume in enumerate(volumes)})


def test_disks_of_their_own_add_up_and_one_that_may_be_shared_counts_once() -> None:
    found = disks_of({1: told(Volume(100, 30), Volume(100, 60)), 2: told(Volume(1000, 600), Volume(1000, 605))})
    assert found == {1: Disk(90, 60, {"/0": 30, "/1": 60}), 2: Disk(600, 605, {"/0": 600, "/1": 605})}


def test_what_a_broker_does_not_tell_is_left_out() -> None:
    assert (
        disks_of({1: BrokerLogDirs(fault="away"), 2: told(Volume()), 3: told(Volume(10, 5), error=ErrorCode(56))}) == {}
    )
