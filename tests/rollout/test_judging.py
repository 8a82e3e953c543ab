"""The outcome of a move, by the partition's assignment in the cluster."""

from __future__ import annotations

import pytest

from controller.rollout.judging import Course, Judgement, judge
from controller.rollout.moves import Move
from transport.metadata import ReplicaAssignment

MOVE = Move("t", 0, (1, 2), (3, 2))
C = Course


@pytest.mark.parametrize(
    ("replicas", "adding", "removing", "was_seen", "expected"),
    [
        ((1, 2), (), (), False, Judgement(C.WAITING)),
        ((1, 2), (), (), True, Judgement(C.OVERRIDDEN, "somebody else cancelled it")),
        ((2, 1), (), (), True, Judgement(C.OVERRIDDEN, "somebody else cancelled it")),
        ((2, 1), (), (), False, Judgement(C.OVERRIDDEN, "has replicas [2, 1], not [1, 2]")),
        ((3, 2, 1), (3,), (1,), False, Judgement(C.IN_FLIGHT)),
        ((4, 2, 1), (4,), (1,), True, Judgement(C.OVERRIDDEN, "is being moved to [4, 2], not [1, 2]")),
        ((3, 2), (), (), True, Judgement(C.ENDED)),
        ((3, 2), (), (), False, Judgement(C.ENDED)),
        ((5, 6), (), (), False, Judgement(C.OVERRIDDEN, "has replicas [5, 6], not [1, 2]")),
    ],
)
def test_what_became_of_a_move(
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    was_seen: bool,
    expected: Judgement,
) -> None:
    assert judge(MOVE, ReplicaAssignment(replicas, adding, removing), was_seen=was_seen) == expected


def test_a_partition_that_is_gone_or_another_one() -> None:
    assert judge(MOVE, None) == Judgement(C.FAILED, "there is no such partition")
    assert judge(MOVE, None, is_deleted=True) == Judgement(C.DELETED, "its topic was deleted")
    said = judge(MOVE, ReplicaAssignment((1, 2)), is_other_topic=True)
    assert said == Judgement(C.OVERRIDDEN, "its topic was deleted and created again")
