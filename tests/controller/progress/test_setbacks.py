"""Setbacks: bytes left that grow, which needs a reason."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from tests.controller.conftest import TP
from tests.controller.progress.moving import NOW_MS, RECORD, Room, broker, copying, totals
from transport.errors import ErrorCode
from transport.messages import (
    UNKNOWN,
    LogDir,
    LogDirReplica,
)


@pytest.mark.requirement("B5")
def test_a_log_that_was_cut_is_a_setback() -> None:
    room = copying(1000, 500)
    room.told(4, 400)
    room.copy(1, (4, 10))
    described = room.describe()
    assert (described.progress[0].log_bytes, described.setback) == (
        41_000,
        "broker 4 cut its log from offset 500 back to 400",
    )
    room.copy(5, (4, 10))
    assert room.describe().rate == 10 * RECORD


@pytest.mark.parametrize("is_away", [False, True])
def test_an_empty_disk_is_a_setback(is_away: bool) -> None:
    room = copying(1000, 500)
    if is_away:
        del room.live[4]
        room.look()
    room.live[4] = broker(4, "another disk")
    room.look()
    room.told(4, None)
    described = room.describe()
    assert (described.progress[0].log_bytes, described.setback) == (0, "broker 4 came back with an empty disk")


def test_records_that_are_deleted_for_their_age_are_a_setback() -> None:
    room = copying(1000, 500)
    room.told(4, 510, size=100)
    assert room.describe().setback == "broker 4 deleted old records"


def test_another_target_is_a_setback() -> None:
    room = copying(1000, 500)
    room.move(5)
    assert room.describe().setback == "its target was changed from [4] to [5]"
    del room.partitions[TP]
    room.look()
    assert room.progress.setback(TP) == ""


@pytest.mark.parametrize("what", ["a namesake", "a failed directory"])
def test_what_says_nothing_about_the_log_changes_nothing(what: str) -> None:
    room = copying(1000, 500)
    dirs = {
        "a namesake": LogDir("/d", ErrorCode.NONE, (LogDirReplica("orders", "another id", 0, 0, 0, 0),)),
        "a failed directory": LogDir("/d", ErrorCode.KAFKA_STORAGE_ERROR, ()),
    }
    broker_id = 1 if what == "a namesake" else 4
    room.progress.told(broker_id, [TP], (dirs[what],), room.now)
    assert room.describe() == copying(1000, 500).describe()


step = st.one_of(
    st.tuples(st.just("told"), st.sampled_from([1, 4, 5]), st.integers(0, 20)),
    st.tuples(st.just("gone"), st.sampled_from([4, 5]), st.just(0)),
    st.tuples(st.just("wait"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("disk"), st.sampled_from([4, 5]), st.integers(0, 3)),
    st.tuples(st.just("dies"), st.sampled_from([1, 4, 5]), st.just(0)),
    st.tuples(st.just("silent"), st.sampled_from([1, 4, 5]), st.just(0)),
    st.tuples(st.just("target"), st.sampled_from([4, 5]), st.sampled_from([1, 4, 5])),
    st.tuples(st.just("isr"), st.sampled_from([1, 4, 5]), st.just(0)),
)


@example([("target", 4, 1), ("disk", 4, 0), ("told", 1, 0)])  # the leader is of the target, and has less
@given(st.lists(step, max_size=30))
def test_bytes_fall_only_with_a_reason_and_the_numbers_agree(steps: list[tuple[str, int, int]]) -> None:
    room = copying(20)
    for kind, a, b in steps:
        before = room.describe()
        act(room, kind, a, b)
        after = room.describe()
        sizes = {replica.broker: replica.log_bytes for replica in before.progress}
        for replica in after.progress:
            if replica.log_bytes < sizes.get(replica.broker, UNKNOWN):
                assert f"broker {replica.broker} " in after.setback or "target" in after.setback
        assert min(after.rate, after.eta_ms, after.stalled_since_ms) >= UNKNOWN
        assert after.stalled_since_ms == UNKNOWN or (after.eta_ms == UNKNOWN and after.stalled_since_ms <= NOW_MS)
        assert after.waits_for
        now = totals(room.progress, room.now)
        assert now.stalled == (after.stalled_since_ms != UNKNOWN)
        assert min(now.bytes_left, now.rate + 1, now.eta_ms + 1) >= 0


def act(room: Room, kind: str, a: int, b: int) -> None:
    match kind:
        case "told" | "gone":
            room.told(a, b if kind == "told" else None)
        case "wait":
            room.wait(a)
        case "disk":
            room.live[a] = broker(a, f"disk {b}")
            room.look()
        case "dies":
            if room.live.pop(a, None) is None:
                room.live[a] = broker(a)
            room.look()
        case "silent":
            room.progress.silent(a)
        case "target":
            room.move(*dict.fromkeys((a, b)))
        case "isr":
            room.move(*room.partitions[TP].target, isr=(1, a))
