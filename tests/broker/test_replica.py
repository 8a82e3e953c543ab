"""Logs that diverge: the leader's answer and the follower's truncation, until both are equal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from broker.reference.leadership import Leadership
from broker.reference.log import Log
from broker.reference.replica import CONSUMER, Replica
from tests.broker.cluster import state_of
from transport.errors import ApiError, ErrorCode
from transport.messages import FetchPartition, PartitionState, Record
from transport.metadata import TopicPartition

TP = TopicPartition("t", 0)
NOW_LED = state_of((1, 2), leader_epoch=9)


def records(epochs: str, source: str = "") -> list[Record]:
    """Return a record for each digit, which is its epoch; equal epoch and rank mean equal values."""
    return [Record(int(epoch), f"{epoch}@{offset}{source}".encode()) for offset, epoch in enumerate(epochs)]


def begin(state: PartitionState, log_end: int) -> Leadership:
    return Leadership(state.leader, state, log_end, 0.0, max_lag=10.0, is_live=lambda _: True)


@contextmanager
def replica(
    directory: Path, name: str, epochs: str, *, leads: bool, state: PartitionState = NOW_LED
) -> Iterator[Replica]:
    log = Log(directory / name)
    log.append(records(epochs))
    it = Replica(TP, log, state)
    if leads:
        it.lead(state, partial(begin, state), 0.0)
    yield it
    it.close()


def catch_up(follower: Replica, leader: Replica) -> int:
    """Fetch until nothing is new; return how often."""
    for count in range(100):
        asked = follower.next_fetch(40)
        result = leader.read(2, asked, 40)
        if not result.records and result.diverging_epoch == -1:
            return count
        follower.take(asked, result)
    pytest.fail("the follower does not come to an end")


@pytest.mark.parametrize(
    ("leader", "follower"),
    [
        ("0011", ""),
        ("0011", "00"),
        ("0011", "0011"),
        ("0011", "00111"),
        ("0022", "001111"),
        ("0333", "0112"),
        ("3", "012"),
        ("", "01"),
        ("000002", "0001"),
        ("00002", "00011133"),
    ],
)
def test_a_follower_ends_with_its_leaders_log(tmp_path: Path, leader: str, follower: str) -> None:
    with (
        replica(tmp_path, "leader", leader, leads=True) as ours,
        replica(tmp_path, "follower", follower, leads=False) as theirs,
    ):
        catch_up(theirs, ours)
        assert theirs.log.read(0, 10_000, theirs.log.end_offset) == ours.log.read(0, 10_000, ours.log.end_offset)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(1, 3)), max_size=8))
def test_whatever_was_written_where_a_follower_ends_with_its_leaders_log(
    tmp_path_factory: pytest.TempPathFactory, terms: list[tuple[str, int, int]]
) -> None:
    """Each term, one of two replicas leads: it may copy what the other has of its log first, then appends."""
    directory = tmp_path_factory.mktemp("logs")
    with ExitStack() as stack:
        both = {
            name: stack.enter_context(replica(directory, name, "", leads=False, state=state_of((1, 2))))
            for name in "ab"
        }
        for epoch, (name, copied, written) in enumerate((*terms, ("a", 99, 1)), start=1):
            leader, follower = both[name], both["b" if name == "a" else "a"]
            state = state_of((1, 2), leader_epoch=epoch)
            leader.follow(state)
            leader.lead(state, partial(begin, state), 0.0)
            follower.follow(state)
            for number in range(written):
                leader.append([b"%d-%d" % (epoch, number)])
            for _ in range(copied):
                asked = follower.next_fetch(20)
                follower.take(asked, leader.read(2, asked, 20))
        logs = [it.log.read(0, 10_000, it.log.end_offset) for it in both.values()]
        assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("epoch", "code"), [(8, ErrorCode.FENCED_LEADER_EPOCH), (10, ErrorCode.UNKNOWN_LEADER_EPOCH), (9, None), (-1, None)]
)
def test_who_fetches_under_another_leader_epoch_is_refused(tmp_path: Path, epoch: int, code: ErrorCode | None) -> None:
    with replica(tmp_path, "leader", "0", leads=True) as leader:
        asked = FetchPartition("t", 0, 0, 100, current_leader_epoch=epoch)
        if code is None:
            assert len(leader.read(2, asked, 100).records) == 1
        else:
            with pytest.raises(ApiError) as refusal:
                leader.read(2, asked, 100)
            assert refusal.value.code is code


def test_a_follower_whose_log_parts_from_the_leaders_does_not_count_as_caught_up(tmp_path: Path) -> None:
    with (
        replica(tmp_path, "leader", "0022", leads=True) as leader,
        replica(tmp_path, "follower", "0011", leads=False) as follower,
    ):
        leader.note_fetch(2, follower.next_fetch(100), 1.0)
        leader.advance(1.0)
        assert leader.high_watermark == 0
        catch_up(follower, leader)
        leader.note_fetch(2, follower.next_fetch(100), 1.0)
        leader.advance(1.0)
        assert leader.high_watermark == 4


def test_a_consumer_sees_what_is_committed_and_a_stranger_nothing(tmp_path: Path) -> None:
    with replica(tmp_path, "leader", "000", leads=True) as leader:
        asked = FetchPartition("t", 0, 0, 1000)
        assert leader.read(CONSUMER, asked, 1000).records == ()
        leader.note_fetch(2, replace(asked, fetch_offset=2), 0.0)
        leader.advance(0.0)
        assert len(leader.read(CONSUMER, asked, 1000).records) == 2
        assert len(leader.read(2, asked, 1000).records) == 3
        with pytest.raises(ApiError, match="broker 7 has no replica of t-0"):
            leader.read(7, asked, 1000)
        with pytest.raises(ApiError, match="OFFSET_OUT_OF_RANGE"):
            leader.read(CONSUMER, replace(asked, fetch_offset=4), 1000)


def test_there_is_news_exactly_when_reading_does_not_come_back_empty(tmp_path: Path) -> None:
    with replica(tmp_path, "leader", "0022", leads=True) as leader:
        leader.note_fetch(2, FetchPartition("t", 0, 2, 100), 0.0)
        leader.advance(0.0)
        assert leader.high_watermark == 2
        for reader, offset, last_epoch, epoch in product((CONSUMER, 2, 7), range(-1, 7), range(-1, 4), (-1, 8, 9)):
            asked = FetchPartition("t", 0, offset, 100, epoch, last_epoch)
            try:
                result = leader.read(reader, asked, 100)
                is_empty = not result.records and result.diverging_epoch == -1
            except ApiError:
                is_empty = False
            assert leader.has_news(reader, asked) is not is_empty, (reader, asked)


def test_an_answer_to_a_question_of_the_past_is_not_taken(tmp_path: Path) -> None:
    with (
        replica(tmp_path, "leader", "000", leads=True) as leader,
        replica(tmp_path, "follower", "0", leads=False) as follower,
    ):
        asked = follower.next_fetch(100)
        answer = leader.read(2, asked, 100)
        follower.follow(replace(NOW_LED, leader_epoch=10))
        follower.take(asked, answer)
        assert follower.log.end_offset == 1


def test_a_follower_of_a_deleted_topic_neither_gets_nor_holds_records_of_its_successor(tmp_path: Path) -> None:
    """Both are in leader epoch 0, so the topic id alone tells them apart (KIP-516)."""
    deleted = state_of((1, 2), topic_id="deleted")
    with (
        replica(tmp_path, "leader", "000", leads=True, state=state_of((1, 2))) as leader,
        replica(tmp_path, "follower", "00", leads=False, state=deleted) as follower,
    ):
        asked = follower.next_fetch(1000)
        for answer in (lambda: leader.note_fetch(2, asked, 1.0), lambda: leader.read(2, asked, 1000)):
            with pytest.raises(ApiError, match="INCONSISTENT_TOPIC_ID: t-0 is of id-of-t, not of deleted"):
                answer()
        leader.advance(1.0)
        assert leader.high_watermark == 0


def test_a_leader_whose_epoch_is_below_that_of_its_log_appends_nothing(tmp_path: Path) -> None:
    """This happens after somebody has damaged the state of the partition."""
    with replica(tmp_path, "leader", "003", leads=True, state=state_of((1, 2), leader_epoch=2)) as ours:
        with pytest.raises(ApiError, match="has records of leader epoch 3, and its leader has epoch 2"):
            ours.append([b"value"])
        assert ours.log.end_offset == 3
