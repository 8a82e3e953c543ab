"""The limits of a rollout as the checks count them: each of them, one move beyond it and not before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.model.rollout_parts import CODES
from controller.rollout.room import Disk
from controller.rollout.states import MoveState
from simulator.safety.rollout_limits import Flying, Planned, exceeded, short_of_room
from transport.messages import RolloutMove, RolloutSettings

LEADER = 1


def flying(count: int, state: MoveState = MoveState.IN_FLIGHT) -> list[Flying]:
    """Return moves from broker 1, their leader, to broker 3, of 100 bytes each; or those back."""
    before, after = ((LEADER, 2), (3, 2)) if state is MoveState.IN_FLIGHT else ((3, 2), (LEADER, 2))
    moves = [RolloutMove("orders", number, after, before, size=100) for number in range(count)]
    return [Flying(Planned.marked("monday", move, CODES.index(state)), LEADER) for move in moves]


@pytest.mark.parametrize("state", [MoveState.IN_FLIGHT, MoveState.GOING_BACK])
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (RolloutSettings(into=2), "has 3 moves into broker 3, not at most 2"),
        (RolloutSettings(out_of=2), "has 3 moves out of broker 1, not at most 2"),
        (RolloutSettings(leaders=2), "has 3 moves that take broker 1 leaderships away, not at most 2"),
        (RolloutSettings(in_all=2), "has 3 moves in flight, not at most 2"),
        (RolloutSettings(bytes=200), "has 300 bytes in flight, not at most 200"),
    ],
)
def test_one_move_more_than_a_limit_allows_exceeds_it(settings: RolloutSettings, text: str, state: MoveState) -> None:
    moves = flying(3, state)
    assert list(exceeded(moves[0], moves, settings)) == [text]
    assert list(exceeded(moves[0], moves[:2], settings)) == []


def test_a_move_larger_than_the_limit_may_go_alone() -> None:
    moves = flying(2)
    assert list(exceeded(moves[0], moves[:1], RolloutSettings(bytes=50))) == []
    assert list(exceeded(moves[0], moves, RolloutSettings(bytes=50))) == ["has 200 bytes in flight, not at most 50"]


@pytest.mark.parametrize("state", [MoveState.IN_FLIGHT, MoveState.GOING_BACK])
def test_room_is_needed_for_all_that_is_in_flight_to_a_broker(state: MoveState) -> None:
    moves = [each.move for each in flying(2, state)]
    [receiver] = moves[0].adding
    short = {receiver: Disk(199, 199)}
    assert list(short_of_room(moves[0], moves, short)) == [
        f"though broker {receiver} has told of 199 bytes, and 200 are needed"
    ]
    assert list(short_of_room(moves[0], moves[:1], short)) == []
    assert list(short_of_room(moves[0], moves, {receiver: Disk(200, 200), 2: Disk(0, 0)})) == []


def test_a_broker_is_asked_for_its_room_before_a_move_begins() -> None:
    [one] = [each.move for each in flying(1)]
    assert list(short_of_room(one, [one], {})) == ["though broker 3 has not been asked for its room"]
    assert list(short_of_room(one, [one], {3: None})) == []
    empty = Planned("monday", replace(one.move, size=0), one.state)
    assert list(short_of_room(empty, [empty], {})) == []
