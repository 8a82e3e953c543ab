"""The time that a plan takes: before, and while it runs."""

from __future__ import annotations

import pytest

from controller.rollout.choosing import Limits
from controller.rollout.forecast import SHORTEST_SECONDS, Forecast, TimeLeft, forecast
from controller.rollout.moves import Move

MOVES = [Move("t", n, (1, 2), (1, 3), 100) for n in range(10)]
LEADERS = {move.tp: 1 for move in MOVES}


def test_a_plan_takes_as_long_as_its_busiest_broker() -> None:
    assert forecast(MOVES, LEADERS, Limits(into=2, out_of=5), 50) == Forecast(1000, 5, 20.0, 3)
    assert forecast(MOVES, LEADERS, Limits(in_all=1), None) == Forecast(1000, 10, None, 3)
    assert forecast([], {}, Limits(), 50) == Forecast(0, 0, 0.0, None)


def test_time_left_is_by_the_rate_so_far() -> None:
    left = TimeLeft()
    left.add(0, 1000)
    assert (left.rate, left.seconds, left.error) == (None, None, None)
    left.add(10, 800)
    assert (left.rate, left.seconds) == (20, 40)


def test_a_few_seconds_tell_no_rate() -> None:
    left = TimeLeft()
    left.add(0, 1000)
    left.add(SHORTEST_SECONDS - 1, 991)
    assert (left.rate, left.seconds, left.error) == (None, None, None)
    left.add(SHORTEST_SECONDS, 990)
    assert (left.rate, left.seconds) == (1, 990)


def test_an_even_course_has_no_error() -> None:
    left = TimeLeft()
    for second in range(50):
        left.add(second, 1000 - 20 * second)
    assert left.error == pytest.approx(0)
    assert left.seconds == pytest.approx(1)


def test_a_course_that_slows_down_has_one() -> None:
    left = TimeLeft()
    for second in range(20):
        left.add(second, 1000 - 20 * second)
    for second in range(20, 80):
        left.add(second, 620 - 5 * (second - 20))
    assert left.error is not None
    assert left.error > 0.3


def test_a_course_of_days_keeps_few_marks_and_forgets_early_rates() -> None:
    left = TimeLeft()
    for second in range(0, 200_000, 5):
        left.add(second, 10**9 - (1000 * second if second < 100_000 else 10**8 + 10 * (second - 100_000)))
    assert left.rate == pytest.approx(10, rel=0.2)
    assert len(left._marks) <= 65  # noqa: SLF001


def test_the_time_left_of_a_course_of_days_is_known_at_each_moment() -> None:
    left, hours = TimeLeft(), 48
    total = 1000 * hours * 3600
    for second in range(0, hours * 3600, 5):
        left.add(second, total - 1000 * second)
        if second >= SHORTEST_SECONDS:
            assert left.seconds == pytest.approx(hours * 3600 - second)


def test_bytes_copied_before_the_first_moment_do_not_count_for_the_rate() -> None:
    left = TimeLeft()
    left.add(0, 1000)
    left.correct(600)
    left.add(10, 390)
    assert (left.rate, left.seconds) == (1, 390)


def test_an_error_of_more_than_the_whole_is_none() -> None:
    left = TimeLeft()
    left.add(0, 10_000)
    left.add(10, 9_999)
    for second in range(20, 100, 10):
        left.add(second, 9_999 - 100 * (second - 10))
    assert left.error is None
