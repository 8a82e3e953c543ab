"""The ISR in its leader: the high watermark, joining and leaving, and the proposals to the controller."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from broker.reference.isr import FollowerProgress, next_high_watermark
from broker.reference.leadership import REFUSAL_PAUSE_SECONDS, Leadership, Settled
from tests.broker.cluster import state_of
from transport.errors import ErrorCode
from transport.messages import AlterPartitionItem, AlterPartitionResult, PartitionState

MAX_LAG = 10.0


def leadership_of(state: PartitionState, log_end: int = 0, live: Sequence[int] = (1, 2, 3)) -> Leadership:
    return Leadership(1, state, log_end, 0.0, max_lag=MAX_LAG, is_live=lambda broker: broker in live)


def proposal(leadership: Leadership, new_isr: tuple[int, ...]) -> AlterPartitionItem:
    state = leadership.state
    return AlterPartitionItem("t", "id-of-t", 0, state.leader_epoch, new_isr, state.partition_epoch)


def success(isr: tuple[int, ...], partition_epoch: int) -> AlterPartitionResult:
    return AlterPartitionResult("t", 0, ErrorCode.NONE, 1, 0, isr, partition_epoch)


@pytest.mark.parametrize(
    ("current", "log_ends", "expected"),
    [(0, [5], 5), (0, [5, 3, 4], 3), (3, [5, 3], 3), (4, [5, 2], 4), (0, [5, -1], 0)],
)
def test_the_high_watermark_is_the_least_log_end_and_never_goes_down(
    current: int, log_ends: list[int], expected: int
) -> None:
    assert next_high_watermark(current, log_ends) == expected


@pytest.mark.parametrize(
    ("fetches", "caught_up_at"),
    [
        ([(5, 5, 1.0)], 1.0),
        ([(4, 5, 1.0)], float("-inf")),
        ([(4, 5, 1.0), (5, 9, 2.0)], 1.0),  # it has all that there was at the fetch before
        ([(5, 5, 1.0), (5, 9, 2.0)], 1.0),
        ([(5, 5, 1.0), (6, 9, 2.0), (7, 12, 3.0)], 1.0),  # it copies, but falls behind
    ],
)
def test_a_follower_is_caught_up_when_it_has_what_there_was(
    fetches: list[tuple[int, int, float]], caught_up_at: float
) -> None:
    progress = FollowerProgress()
    for offset, leader_end, now in fetches:
        progress = progress.after_fetch(offset, leader_end, now)
    assert progress.caught_up_at == caught_up_at


@pytest.mark.parametrize(
    ("log_end", "high_watermark", "epoch_start", "in_sync"),
    [(5, 5, 5, True), (5, 6, 5, False), (5, 0, 6, False), (-1, 0, 0, False), (0, 0, 0, True)],
)
def test_who_joins_has_what_is_committed_and_what_the_epoch_began_with(
    log_end: int, high_watermark: int, epoch_start: int, *, in_sync: bool
) -> None:
    assert FollowerProgress(log_end).is_in_sync(high_watermark, epoch_start) is in_sync


def test_a_follower_that_caught_up_is_proposed_and_held_to_before_it_is_accepted() -> None:
    leadership = leadership_of(state_of(isr=(1,)), log_end=5)
    assert leadership.propose(5, 5, 0.0) is None
    leadership.record_fetch(2, 5, 5, 1.0)
    item = leadership.propose(5, 5, 1.0)
    assert item == proposal(leadership, (1, 2))
    assert leadership.propose(5, 5, 1.0) is None, "one is under way"
    assert leadership.maximal_isr == (1, 2)
    assert leadership.high_watermark(5, 8, 30.0) == 5, "8 is not on 2, which may be in the ISR already"
    assert leadership.settle(item, success((1, 2), 1), 1.0) is Settled.DONE
    assert (leadership.state.isr, leadership.state.partition_epoch) == ((1, 2), 1)


def test_a_member_that_lags_is_proposed_to_leave_and_held_to_until_it_has_left() -> None:
    leadership = leadership_of(state_of(), log_end=5)
    leadership.record_fetch(2, 6, 6, 11.0)
    assert leadership.propose(5, 6, MAX_LAG) is None
    item = leadership.propose(5, 6, MAX_LAG + 1)
    assert item == proposal(leadership, (1, 2))
    assert leadership.high_watermark(5, 6, MAX_LAG + 1) == 5
    leadership.settle(item, success((1, 2), 1), MAX_LAG + 1)
    assert leadership.high_watermark(5, 6, MAX_LAG + 1) == 6


def test_a_member_at_the_log_end_may_be_silent() -> None:
    leadership = leadership_of(state_of((1, 2)), log_end=5)
    leadership.record_fetch(2, 5, 5, 0.0)
    assert leadership.propose(5, 5, 100.0) is None


def test_a_replica_that_keeps_up_holds_the_high_watermark_so_that_it_can_join() -> None:
    leadership = leadership_of(state_of((1, 2), isr=(1,)), log_end=5)
    leadership.record_fetch(2, 5, 5, 1.0)
    assert leadership.high_watermark(5, 9, 1.0) == 5
    assert leadership.high_watermark(5, 9, 1.0 + MAX_LAG + 1) == 9


def test_a_dead_replica_neither_holds_the_high_watermark_nor_joins() -> None:
    leadership = leadership_of(state_of((1, 2), isr=(1,)), log_end=5, live=(1,))
    leadership.record_fetch(2, 5, 5, 1.0)
    assert leadership.high_watermark(5, 9, 1.0) == 9
    assert leadership.propose(5, 5, 1.0) is None


def test_a_member_outside_the_replica_set_stays_while_it_keeps_up_and_does_not_come_back() -> None:
    """KAFKA-9672."""
    leadership = leadership_of(state_of((1, 2), isr=(1, 2, 3)), log_end=5)
    for follower in (2, 3):
        leadership.record_fetch(follower, 5, 5, 1.0)
    assert leadership.propose(5, 5, 1.0) is None
    leadership.record_fetch(2, 6, 6, 12.0)
    item = leadership.propose(5, 6, 12.0)
    assert item == proposal(leadership, (1, 2))
    leadership.settle(item, success((1, 2), 1), 12.0)
    leadership.record_fetch(3, 6, 6, 12.0)
    assert leadership.propose(6, 6, 12.0) is None


def proposing() -> tuple[Leadership, AlterPartitionItem]:
    """Return leadership of which broker 2 has caught up, and the proposal to let it join."""
    leadership = leadership_of(state_of(isr=(1,)))
    leadership.record_fetch(2, 0, 0, 1.0)
    item = leadership.propose(0, 0, 1.0)
    assert item is not None
    return leadership, item


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_what_is_refused_is_dropped_and_proposed_again_later(error: ErrorCode) -> None:
    leadership, item = proposing()
    assert leadership.settle(item, AlterPartitionResult("t", 0, error), 1.0) is Settled.DONE
    assert leadership.maximal_isr == (1,)
    assert leadership.propose(0, 0, 1.0) is None
    assert leadership.propose(0, 0, 1.0 + REFUSAL_PAUSE_SECONDS) == item


def refused_to(leadership: Leadership, item: AlterPartitionItem | None, now: float) -> None:
    """Let the controller refuse a proposal."""
    assert item is not None
    assert leadership.settle(item, AlterPartitionResult("t", 0, ErrorCode.INELIGIBLE_REPLICA), now) is Settled.DONE


def test_a_replica_that_may_not_join_keeps_no_other_out() -> None:
    leadership = leadership_of(state_of((1, 2, 3, 4), isr=(1,)), live=(1, 2, 3, 4))
    for follower in (2, 3, 4):
        leadership.record_fetch(follower, 0, 0, 1.0)
    together = leadership.propose(0, 0, 1.0)
    assert together == proposal(leadership, (1, 2, 3, 4))
    refused_to(leadership, together, 1.0)
    # One after the other: any of them may be the one that is refused.
    now = 1.0 + REFUSAL_PAUSE_SECONDS
    refused_to(leadership, leadership.propose(0, 0, now), now)
    for epoch, isr in ((1, (1, 3)), (2, (1, 3, 4))):
        item = leadership.propose(0, 0, now)
        assert item == proposal(leadership, isr)
        leadership.settle(item, success(isr, epoch), now)
    assert leadership.propose(0, 0, now) is None
    now += REFUSAL_PAUSE_SECONDS
    assert leadership.propose(0, 0, now) == proposal(leadership, (1, 3, 4, 2))


def test_a_replica_that_may_not_join_keeps_nobody_in_who_lags() -> None:
    leadership = leadership_of(state_of((1, 2, 3), isr=(1, 2)), log_end=5)
    leadership.record_fetch(3, 5, 5, 12.0)
    item = leadership.propose(0, 5, 12.0)
    assert item == proposal(leadership, (1, 3))
    refused_to(leadership, item, 12.0)
    assert leadership.propose(0, 5, 12.0) == proposal(leadership, (1,))


def test_what_was_refused_is_forgotten_with_the_news() -> None:
    state = state_of((1, 2), isr=(1,))
    leadership = leadership_of(state)
    leadership.record_fetch(2, 0, 0, 1.0)
    refused_to(leadership, leadership.propose(0, 0, 1.0), 1.0)
    leadership.renew(state, 0, 1.0)  # as the controller repeats it after a refusal
    assert leadership.propose(0, 0, 1.0) is None
    leadership.renew(replace(state, leader_epoch=1, partition_epoch=1), 0, 1.0)
    leadership.record_fetch(2, 0, 0, 1.0)
    assert leadership.propose(0, 0, 1.0) == proposal(leadership, (1, 2))


@pytest.mark.parametrize("error", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH])
def test_what_is_overtaken_is_held_to_until_the_news_come(error: ErrorCode) -> None:
    state = state_of(isr=(1,))
    leadership = leadership_of(state)
    leadership.record_fetch(2, 0, 0, 1.0)
    item = leadership.propose(0, 0, 1.0)
    assert item is not None
    assert leadership.settle(item, AlterPartitionResult("t", 0, error), 1.0) is Settled.DONE
    assert (leadership.maximal_isr, leadership.is_overtaken) == ((1, 2), True)
    assert leadership.propose(0, 0, 100.0) is None
    leadership.renew(replace(state, partition_epoch=3), 0, 2.0)
    assert (leadership.maximal_isr, leadership.is_overtaken) == ((1,), False)
    assert leadership.propose(0, 0, 2.0) == proposal(leadership, (1, 2))


def test_what_may_have_been_written_is_sent_again() -> None:
    leadership, item = proposing()
    answer = AlterPartitionResult("t", 0, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert leadership.settle(item, answer, 1.0) is Settled.TRY_AGAIN
    assert leadership.maximal_isr == (1, 2)


def test_an_answer_to_an_older_proposal_changes_nothing() -> None:
    """KAFKA-12686."""
    leadership, item = proposing()
    leadership.renew(state_of(isr=(1,), leader_epoch=1, partition_epoch=4), 0, 2.0)
    assert leadership.settle(item, success((1, 2), 1), 2.0) is Settled.DONE
    assert leadership.state == state_of(isr=(1,), leader_epoch=1, partition_epoch=4)


def test_news_from_before_the_last_answer_are_no_news() -> None:
    leadership, item = proposing()
    leadership.settle(item, success((1, 2), 5), 1.0)
    leadership.renew(state_of(isr=(1,), partition_epoch=4), 0, 2.0)
    assert leadership.state.isr == (1, 2)


def test_a_new_leader_epoch_asks_who_joins_for_all_that_it_began_with() -> None:
    leadership = leadership_of(state_of(isr=(1,)), log_end=5)
    leadership.renew(state_of(isr=(1,), leader_epoch=1, partition_epoch=1), 8, 1.0)
    leadership.record_fetch(2, 5, 5, 1.0)
    assert leadership.propose(5, 8, 1.0) is None
    leadership.record_fetch(2, 8, 8, 2.0)
    assert leadership.propose(5, 8, 2.0) == proposal(leadership, (1, 2))
