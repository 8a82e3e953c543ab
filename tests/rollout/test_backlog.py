"""Lanes: what waits, and what a million moves cost."""

from __future__ import annotations

import sys
import tracemalloc

from hypothesis import given, strategies as st

from controller.rollout.backlog import NO_COPY, Backlog
from controller.rollout.choosing import InFlight, Limits, Standing, choose
from controller.rollout.moves import Move, interned

MANY = 100_000


def move(number: int, to: int | None) -> Move:
    return Move("t", number, (1,), (1,) if to is None else (to,), 10)


def test_each_lane_has_the_moves_to_one_broker() -> None:
    backlog = Backlog.of([move(0, 8), move(1, 9), move(2, 8), move(3, None)])
    assert backlog.candidates() == [0, 1, 2, 3]
    assert backlog.candidates(lambda broker: broker != 8) == [0, 1, 3]
    assert backlog.sizes == {8: 2, 9: 1, NO_COPY: 1}


def test_urgent_moves_come_first_from_wherever_they_are() -> None:
    backlog = Backlog.of([move(n, 8) for n in range(100)])
    backlog.urge([70])
    assert backlog.candidates(width=5) == [70, 0, 1, 2, 3, 4]
    backlog.take(70)
    assert backlog.candidates(width=5) == [0, 1, 2, 3, 4]
    assert list(backlog.waiting()) == [n for n in range(100) if n != 70]


def test_a_lane_has_what_is_put_back_in_its_place() -> None:
    backlog = Backlog.of([move(n, 8) for n in range(4)])
    for number in (1, 2, 0):
        backlog.take(number)
    assert list(backlog.waiting()) == [3]
    backlog.put_back(1)
    assert (len(backlog), list(backlog.waiting())) == (2, [1, 3])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 29)), max_size=80))
def test_what_waits_is_as_if_kept_in_a_set(steps: list[tuple[bool, int]]) -> None:
    moves = [move(n, n % 3 or None) for n in range(30)]
    backlog, waiting = Backlog.of(moves), set(range(30))
    for takes, number in steps:
        if takes and number in waiting:
            backlog.take(number)
            waiting.remove(number)
        elif not takes and number not in waiting:
            backlog.put_back(number)
            waiting.add(number)
    assert set(backlog.waiting()) == waiting
    assert len(backlog) == len(waiting)
    assert backlog.candidates() == sorted(waiting)


def test_a_hundred_thousand_moves_cost_little_and_a_choice_looks_at_few() -> None:
    tracemalloc.start()
    made = interned(
        Move(
            f"topic-{n % 2000}",
            n // 2000 + 500,
            (n % 300, n % 300 + 1, n % 300 + 2),
            (n % 299, n % 299 + 2, 301),
            10**9 + n,
        )
        for n in range(MANY)
    )
    moves = list(made)
    backlog = Backlog.of(moves)
    each = tracemalloc.get_traced_memory()[0] / MANY
    tracemalloc.stop()
    limits, standing = Limits(), Standing({move.tp: move.before[0] for move in moves[:20_000]})
    in_flight = [InFlight(move) for move in moves[:500]]
    for number in range(500):
        backlog.take(number)
    candidates = [moves[number] for number in backlog.candidates()]
    choice = choose(candidates, in_flight, limits, standing)
    sys.stdout.write(f"{each:.0f} bytes a move; a choice among {len(candidates):,}\n")
    assert each < 300
    assert len(candidates) < 2_000
    assert len(choice.begin) + len(choice.waits) == len(candidates)
