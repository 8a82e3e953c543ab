"""Moves that are slow, moves that are stuck, and what they wait for."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.progress.tracker import STALLED_SECONDS, TURN_SECONDS
from tests.controller.conftest import TP
from tests.controller.progress.moving import NOW_MS, OTHER, Room, copying, totals
from transport.messages import (
    UNKNOWN,
)


@pytest.mark.requirement("B5")
def test_a_copy_that_gets_nothing_is_stuck_since_its_last_byte() -> None:
    room = copying()
    room.copy(5, (4, 10))
    for _ in range(round(STALLED_SECONDS) - 1):
        room.copy(1, (4, 0))
        assert room.describe().stalled_since_ms == UNKNOWN
    room.copy(3, (4, 0))
    described = room.describe()
    assert described.stalled_since_ms == NOW_MS - 12_000
    assert (described.rate, described.eta_ms) == (0, UNKNOWN)
    text = "broker 4, which does not fetch from leader 1: 95.0 kB and 950 records behind, nothing came for 12 s"
    assert described.waits_for == text
    assert totals(room.progress, room.now).stalled == 1

    room.copy(1, (4, 1))
    assert room.describe().stalled_since_ms == UNKNOWN


def test_who_gets_much_at_long_intervals_is_not_stuck_between() -> None:
    """An answer to a fetch comes whole: over a slow link that takes long."""
    room = copying()
    for _ in range(3):
        room.copy(8, (4, 0))
        room.copy(1, (4, 100))
    room.copy(26, (4, 0))
    assert room.describe().stalled_since_ms == UNKNOWN
    room.copy(1, (4, 0))
    assert room.describe().stalled_since_ms == NOW_MS - 27_000


def test_who_copies_other_partitions_of_the_leader_first_is_not_stuck_for_a_while() -> None:
    room = copying(1000)
    room.move(4, tp=OTHER)
    room.told(1, 10_000, tp=OTHER)
    room.told(4, 0, tp=OTHER)
    room.copy(TURN_SECONDS - 1, (4, 10), tp=OTHER)
    described = room.describe()
    assert described.waits_for == "broker 4, which copies other partitions first: 100.0 kB and 1000 records behind"
    assert described.stalled_since_ms == UNKNOWN
    assert described.eta_ms == room.describe_all([]).eta_ms > 0
    room.copy(1, (4, 10), tp=OTHER)
    assert "does not fetch" in room.describe().waits_for


def test_a_dead_broker_is_named_at_once() -> None:
    room = copying()
    room.copy(3, (4, 10))
    del room.live[4]
    room.look()
    described = room.describe()
    assert (described.waits_for, described.stalled_since_ms) == ("broker 4, which is not alive", NOW_MS)


def test_a_log_that_cannot_be_used_is_named_at_once() -> None:
    room = copying()
    room.partitions[TP] = evolve(room.partitions[TP], offline=(4,))
    room.look()
    described = room.describe()
    assert described.waits_for == "broker 4, whose log directory is offline"
    assert described.stalled_since_ms == NOW_MS


@pytest.mark.parametrize(
    ("who", "text"),
    [
        (4, "broker 4, which does not answer: it was 100.0 kB and 1000 records behind, and nothing came for {} s"),
        (1, "broker 4: it was 100.0 kB and 1000 records behind, nothing came for {} s, and leader 1 does not answer"),
    ],
)
def test_a_broker_that_does_not_answer_is_named_and_after_a_while_it_is_stuck(who: int, text: str) -> None:
    room = copying()
    room.wait(5)
    room.progress.silent(who)
    assert (room.describe().waits_for, room.describe().stalled_since_ms) == (text.format(5), UNKNOWN)
    room.wait(5)
    assert (room.describe().waits_for, room.describe().stalled_since_ms) == (text.format(10), NOW_MS - 10_000)
    room.told(who, 1000)
    assert "answer" not in room.describe().waits_for


def test_a_leader_that_does_not_take_a_replica_in_is_named() -> None:
    room = copying(1000, 1000)
    assert room.describe().waits_for == "broker 4 to join the ISR"
    assert room.describe().eta_ms == 0
    room.copy(STALLED_SECONDS, (4, 0))
    described = room.describe()
    assert described.waits_for == "broker 4 to be taken into the ISR: it has had all of leader 1 for 10 s"
    assert described.stalled_since_ms == NOW_MS - 10_000


def test_a_service_that_says_no_sizes_is_never_stuck() -> None:
    room = Room()
    room.move(4)
    room.wait(1000)
    described = room.describe()
    assert (described.waits_for, described.stalled_since_ms) == ("broker 4 to join the ISR", UNKNOWN)


@pytest.mark.parametrize(
    ("isr", "leader", "text"),
    [
        ((1, 4, 5), 4, "its last steps"),
        ((1, 4, 5), 1, "a live leader among brokers 4, 5"),
        ((1, 2), -1, "a leader: none of the ISR is alive, which is brokers 1, 2"),
    ],
)
def test_what_is_up_to_the_controller_or_to_the_isr_is_said(isr: tuple[int, ...], leader: int, text: str) -> None:
    room = Room()
    room.move(4, 5, isr=isr, leader=leader)
    assert room.describe().waits_for == text
