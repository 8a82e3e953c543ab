"""The moves of a rollout from outside: which begin next."""

from __future__ import annotations

from controller.rollout.backlog import WIDTH
from controller.rollout.choosing import Limits, Standing
from controller.rollout.moves import Move
from controller.rollout.states import FORTH
from klamm.cli.rollout.work import Work

LIMITS = Limits(into=10, out_of=2)


def moves_of(leader: int, count: int, *, first: int = 0) -> list[Move]:
    """Return moves of a leader's partitions to broker 9."""
    return [Move("t", number, (leader, 2), (leader, 9)) for number in range(first, first + count)]


def test_any_number_of_moves_of_a_leader_that_sends_enough_hold_up_no_others() -> None:
    moves = [*moves_of(1, 2 * WIDTH), *moves_of(3, 1, first=2 * WIDTH)]
    work = Work(FORTH, moves)
    standing = Standing({move.tp: move.before[0] for move in moves})
    assert [move.partition for move in work.choose(LIMITS, standing, 0).begin] == [0, 1]
    work.begin(moves[:2], 0)
    chosen = work.choose(LIMITS, standing, 0)
    assert [move.partition for move in chosen.begin] == [2 * WIDTH]
    assert [str(wait) for wait in chosen.waits.values()] == ["broker 1 sends 2 replicas, the most at once"]


def test_any_number_of_moves_without_a_leader_hold_up_no_others() -> None:
    moves = [*moves_of(1, 2 * WIDTH), *moves_of(3, 1, first=2 * WIDTH)]
    standing = Standing({moves[-1].tp: 3})
    assert [move.partition for move in Work(FORTH, moves).choose(LIMITS, standing, 0).begin] == [2 * WIDTH]
