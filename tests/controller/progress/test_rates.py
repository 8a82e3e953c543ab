"""Sizes, rates and times left of moves."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.model.rate_window import WINDOW_SECONDS
from controller.progress.report import Totals, waits_for, with_progress
from controller.progress.tracker import MoveTracker
from tests.controller.conftest import TP
from tests.controller.progress.moving import NOW_MS, OTHER, RECORD, Room, copying, totals
from transport.messages import (
    UNKNOWN,
    UNTHROTTLED,
    ReplicaProgress,
)


def test_nothing_is_known_before_brokers_are_asked() -> None:
    room = Room()
    room.move(4, 5)
    described = room.describe()
    assert described.waits_for == "brokers 4, 5 to join the ISR"
    assert {described.rate, described.eta_ms, described.stalled_since_ms} == {UNKNOWN}
    assert {replica.log_bytes for replica in described.progress} == {UNKNOWN}


@pytest.mark.requirement("B5")
def test_a_replica_has_an_offset_a_size_and_a_lag() -> None:
    room = copying(1000, 300)
    assert room.describe().progress == (ReplicaProgress(4, 300, 700, 30_000, 100_000),)


def test_of_a_move_that_began_just_now_only_its_replicas_are_known() -> None:
    unheard = replace(copying().describe(), topic="unheard", waits_for="", progress=())
    described = with_progress(unheard, MoveTracker(), Totals(), 1.0, NOW_MS)
    assert (described.waits_for, described.eta_ms) == ("broker 4 to join the ISR", UNKNOWN)


def test_a_slow_copy_has_a_rate_and_a_time_left() -> None:
    room = copying()
    room.copy(30, (4, 10))
    described = room.describe()
    assert described.waits_for == "broker 4: 70.0 kB and 700 records behind"
    assert (described.rate, described.eta_ms, described.stalled_since_ms) == (10 * RECORD, 70_000, UNKNOWN)


@pytest.mark.parametrize(
    ("leader", "follower", "text"),
    [
        (UNTHROTTLED, 50_000, ", throttled to 50.0 kB/s"),
        (2_000, UNTHROTTLED, ", throttled to 2.0 kB/s"),
        (UNTHROTTLED, UNTHROTTLED, ""),
    ],
)
def test_a_throttle_is_named(leader: int, follower: int, text: str) -> None:
    room = copying()
    described = room.describe()
    throttled = tuple(replace(replica, throttle=follower) for replica in described.progress)
    described = replace(described, leader_throttle=leader, progress=throttled)
    words = waits_for(described, room.progress.copies(TP, room.now))
    assert words == f"broker 4: 100.0 kB and 1000 records behind{text}"


def test_what_the_leader_takes_in_meanwhile_makes_it_longer() -> None:
    room = copying()
    room.copy(20, (1, 5), (4, 10))
    described = room.describe()
    assert described.progress[0].offset_lag == 900
    assert (described.rate, described.eta_ms) == (10 * RECORD, 180_000)


def test_a_copy_that_is_slower_than_the_leader_grows_has_no_end() -> None:
    room = copying()
    room.copy(20, (1, 20), (4, 10))
    described = room.describe()
    assert described.waits_for == "broker 4: 120.0 kB and 1200 records behind, and leader 1 grows faster than it copies"
    assert (described.rate, described.eta_ms) == (10 * RECORD, UNKNOWN)


def test_a_time_left_that_nobody_lives_to_see_is_not_told() -> None:
    room = copying()
    room.told(1, 10**17, size=9 * 10**18)
    room.wait(20)
    room.told(4, 1, size=1)
    described, everything = room.describe(), room.describe_all([])
    assert (described.eta_ms, everything.eta_ms) == (UNKNOWN, UNKNOWN)


def test_a_copy_that_keeps_up_with_a_busy_leader_is_almost_there() -> None:
    room = copying(1000, 990)
    room.copy(20, (1, 10), (4, 10))
    assert room.describe().eta_ms == 1000


def test_the_last_replica_says_how_long_a_move_takes() -> None:
    room = copying()
    room.move(4, 5, 1)
    room.told(5, 0)
    room.copy(10, (4, 10), (5, 90))
    described = room.describe()
    assert (described.rate, described.eta_ms) == (100 * RECORD, 90_000)


def test_a_rate_follows_a_change_within_its_window() -> None:
    room = copying(100_000)
    room.copy(60, (4, 100))
    room.copy(2 * WINDOW_SECONDS, (4, 5))
    assert room.describe().rate == 5 * RECORD


def test_all_moves_have_a_rate_of_which_completed_ones_are_a_part() -> None:
    room = copying()
    room.move(5, tp=OTHER)
    room.told(1, 1000, tp=OTHER)
    room.told(5, 0, tp=OTHER)
    for _ in range(10):
        room.copy(1, (4, 10))
        room.look()
    del room.partitions[TP]  # the rest came between two looks
    room.wait(10)
    room.look()
    now = totals(room.progress, room.now)
    assert (now.moves, now.bytes_left, now.rate) == (1, 1000 * RECORD, 1000 * RECORD / 20)
    everything = room.describe_all([OTHER])
    assert (everything.rate, everything.eta_ms) == (5000, 20_000)
