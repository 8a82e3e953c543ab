"""The progress of moves, by table: brokers' logs, and the reports made of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import define, evolve, field
from hypothesis import example, given, strategies as st
from msgspec.structs import replace

from controller.events import BrokerChange, ReassignmentProgress
from controller.model.rate_window import WINDOW_SECONDS, RateWindow
from controller.node import alarms
from controller.progress.report import Totals, totals, waits_for, with_progress
from controller.progress.tracker import STALLED_SECONDS, TURN_SECONDS, Moves, MoveTracker, MovingPartition, moves_of
from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.messages import (
    UNKNOWN,
    UNTHROTTLED,
    DescribeReassignmentsResponse,
    LogDir,
    LogDirReplica,
    ReassignmentDescription,
    ReplicaProgress,
)
from transport.metadata import BrokerRegistration, TopicPartition

OTHER = TopicPartition("orders", 1)
NOW_MS = 1_700_000_000_000
RECORD = 100
"""Bytes."""


def broker(broker_id: int, storage_id: str = "disk") -> BrokerRegistration:
    return BrokerRegistration(broker_id, "127.0.0.1", 9000 + broker_id, 1, storage_id=storage_id)


@define
class Room:
    """Moves of partitions led by 1, with what was told of them so far; time goes on as told."""

    partitions: dict[TopicPartition, MovingPartition] = field(factory=dict)
    live: dict[int, BrokerRegistration] = field(factory=lambda: {id_: broker(id_) for id_ in (1, 2, 3, 4, 5)})
    progress: MoveTracker = field(factory=MoveTracker)
    now: float = 100.0

    def move(self, *target: int, tp: TopicPartition = TP, isr: tuple[int, ...] = (1,), leader: int = 1) -> None:
        self.partitions[tp] = MovingPartition(tp, "id", leader, isr, target)
        self.look()

    def look(self) -> None:
        self.progress.follow(Moves(tuple(self.partitions.values()), tuple(self.live.values())), self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def told(self, broker_id: int, records: int | None, *, tp: TopicPartition = TP, size: int | None = None) -> None:
        """Have a broker say how many records its log has, None for no log."""
        replicas: tuple[LogDirReplica, ...] = ()
        if records is not None:
            size = records * RECORD if size is None else size
            replicas = (LogDirReplica(tp.topic, "id", tp.partition, size, records, 0),)
        self.progress.told(broker_id, [tp], (LogDir("/d", ErrorCode.NONE, replicas),), self.now)

    def copy(self, seconds: float, *rates: tuple[int, int], tp: TopicPartition = TP) -> None:
        """Let logs grow by so many records per second, and be asked once per second."""
        for _ in range(round(seconds)):
            self.wait(1)
            for broker_id, rate in rates:
                self.told(broker_id, self.progress.sizes(tp, broker_id)[1] + rate, tp=tp)

    def describe(self, tp: TopicPartition = TP) -> ReassignmentDescription:
        [described] = self.describe_all([tp]).reassignments
        return described

    def describe_all(self, tps: Sequence[TopicPartition]) -> DescribeReassignmentsResponse:
        all_moves = totals(self.progress, self.now)
        told = tuple(self._with_progress(self._plain(self.partitions[tp]), all_moves) for tp in tps)
        return DescribeReassignmentsResponse(told, rate=all_moves.rate, eta_ms=all_moves.eta_ms)

    def _with_progress(self, plain: ReassignmentDescription, all_moves: Totals) -> ReassignmentDescription:
        return with_progress(plain, self.progress, all_moves, self.now, NOW_MS)

    def _plain(self, move: MovingPartition) -> ReassignmentDescription:
        replicas = tuple(ReplicaProgress(r, in_sync=r in move.isr) for r in move.target)
        sets = (move.target, (), ())
        return ReassignmentDescription(
            *move.tp, 7, NOW_MS - 60_000, move.leader, UNTHROTTLED, *sets, move.isr, move.target, replicas
        )


def copying(records: int = 1000, done: int = 0) -> Room:
    """Make a room where 4 copies from 1."""
    room = Room()
    room.move(4)
    room.told(1, records)
    room.told(4, done)
    return room


# --- sizes and rates --------------------------------------------------------------------------------------------


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


# --- slow or stuck ----------------------------------------------------------------------------------------------


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


# --- setbacks ---------------------------------------------------------------------------------------------------


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


def test_an_empty_disk_is_a_setback() -> None:
    room = copying(1000, 500)
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


# --- the rest ---------------------------------------------------------------------------------------------------


def test_nothing_is_kept_of_what_no_longer_moves() -> None:
    room = copying(1000, 500)
    room.told(4, 10)
    room.progress.silent(4)
    room.partitions.clear()
    room.live.clear()
    room.look()
    progress = room.progress
    kept = progress.moves, progress._logs, progress._began, progress._setbacks, progress._flows, progress._silent  # noqa: SLF001
    assert [len(each) for each in kept] == [0] * 6
    room.told(4, 10)
    assert room.progress.sizes(TP, 4) == (UNKNOWN, UNKNOWN)


def test_a_window_keeps_a_handful_however_often_somebody_looks() -> None:
    window = RateWindow()
    for tick in range(10_000):
        window.add(tick / 100, tick)
    assert window.rate() == pytest.approx(100)
    assert len(window._marks) < 10  # noqa: SLF001


def test_a_window_that_somebody_looks_at_rarely_still_tells() -> None:
    window = RateWindow()
    for tick in range(5):
        window.add(tick * 100.0, tick * 1000)
    assert window.rate() == 10


async def test_the_controller_says_what_moves(bench: Bench) -> None:
    await bench.start((1, 2), (3, 4), brokers=(1, 2, 3, 4))
    assert moves_of(bench.context).partitions == ()
    await bench.move(TP, (3, 4))
    moves = moves_of(bench.context)
    topic_id = bench.context.topic_id("orders")
    assert moves.partitions == (MovingPartition(TP, topic_id, 1, (1, 2), (3, 4)),)
    assert [each.id for each in moves.brokers] == [1, 2, 3, 4]
    assert moves.partitions[0].measured == (1, 3, 4)


async def test_a_look_at_what_moves_is_due_while_something_does(bench: Bench) -> None:
    await bench.start((1, 2), (3, 4), brokers=(1, 2, 3, 4))
    due = ReassignmentProgress()

    def later() -> list[float]:
        event = alarms.alarms(bench.context, BrokerChange())
        assert [each for each in alarms.first_alarms(bench.context) if each[1] == due] == event
        return [seconds for seconds, each in event if each == due]

    assert later() == []
    await bench.move(TP, (3, 4))
    assert later() == [1.0]
    assert await bench.handle(due) == moves_of(bench.context)
    tps = [TopicPartition("orders", number) for number in range(10_000)]
    identity = bench.context.reassigning[TP]
    bench.context.reassigning.update(dict.fromkeys(tps, identity))
    assert later() == [5.0]
