"""The replication quota: the bytes available, and the time until the next attempt."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from broker.replication_quota import BURST_SECONDS, LONGEST_PAUSE_SECONDS, SHARE_SECONDS, ReplicationQuota
from transport.settings import LONG_MAX


def quota(rate: int, at: float = 100.0) -> ReplicationQuota:
    made = ReplicationQuota()
    made.alter(rate, at)
    return made


def test_without_a_rate_there_is_always_room() -> None:
    free = ReplicationQuota()
    free.record(10**12, 1.0)
    assert (free.is_limited, free.rate, free.room(1.0), free.pause(1.0)) == (False, LONG_MAX, LONG_MAX, 0.0)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(
    ("elapsed", "room"),
    [(0.0, 0), (SHARE_SECONDS / 2, 0), (SHARE_SECONDS * 1.01, 101), (0.5, 500), (1.0, 1000), (1000.0, 1000)],
)
def test_what_is_not_used_is_saved_for_a_second(elapsed: float, room: int) -> None:
    assert quota(1000).room(100.0 + elapsed) == pytest.approx(room, abs=1)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(
    ("rate", "used", "pause"),
    {
        "nothing saved yet": (1000, 0, SHARE_SECONDS),
        "a record that was too large": (1000, 300, 0.3 + SHARE_SECONDS),
        "one that takes minutes": (1000, 10**6, LONGEST_PAUSE_SECONDS),
        "no byte at all": (0, 0, LONGEST_PAUSE_SECONDS),
        "a byte in ten seconds": (1, 10, LONGEST_PAUSE_SECONDS),
    }.values(),
)
def test_after_a_pause_there_is_room_again(rate: int, used: int, pause: float) -> None:
    limited = quota(rate)
    limited.record(used, 100.0)
    assert limited.room(100.0) == 0
    assert limited.pause(100.0) == pytest.approx(pause)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("rate", [1, 7, 1000, 123_457, 10**9])
@pytest.mark.parametrize("records", [(100,), (1, 5000, 3), (1_000_000,)])
def test_who_waits_as_told_keeps_to_the_rate(rate: int, records: Sequence[int]) -> None:
    limited, now, copied = quota(rate, 0.0), 0.0, 0
    for number in range(2000):
        pause = limited.pause(now)
        if pause:
            now += pause
            assert now > now - pause
        else:
            record = records[number % len(records)]
            limited.record(record, now)
            copied += record
    # A record is never cut, so the last one may exceed it.
    assert copied <= rate * (now + BURST_SECONDS) + max(records)


def test_another_rate_holds_at_once_and_keeps_what_is_owed() -> None:
    limited = quota(1000)
    limited.record(500, 100.0)
    limited.alter(5000, 100.0)
    assert limited.pause(100.0) == pytest.approx(0.1 + SHARE_SECONDS)
    limited.alter(LONG_MAX, 100.0)
    assert limited.room(100.0) == LONG_MAX
    limited.alter(1000, 200.0)
    assert limited.room(200.5) == pytest.approx(500, abs=1)
