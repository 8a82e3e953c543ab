"""Open parts of a rollout's plan."""

from __future__ import annotations

from controller.model.rollout_parts import CODES, Part
from controller.rollout.states import MoveState, Phase
from transport.messages import RolloutMove
from transport.store.rollouts import StoredMarks, StoredPart


def test_a_move_that_is_left_out_and_then_moved_by_hand_is_subtracted_once() -> None:
    planned = [RolloutMove("t", number, (3,), (1,), "id", 100) for number in range(2)]
    marks = StoredMarks(bytes([CODES.index(MoveState.DONE)] * 2))
    part = Part.of(StoredPart(0, 2, 200, 200), planned, marks, 0, Phase.UNDOING)
    part.leave_out(0)
    assert part.left == 100
    part.mark(0, MoveState.OVERRIDDEN, "an administrator has moved it")
    assert (part.left, len(part.backlog)) == (100, 1)
    part.mark(1, MoveState.GOING_BACK)
    part.mark(1, MoveState.BACK)
    assert (part.left, part.is_over) == (0, True)
