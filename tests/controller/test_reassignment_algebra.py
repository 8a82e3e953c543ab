"""The algebra of reassignments (KIP-455): the rows of Kafka's ControllerContextTest, and properties of any chain."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from controller.model.faults import target_fault
from controller.model.reassignment import completed, is_caught_up, reassign_to
from transport.metadata import ReplicaAssignment

Ids = tuple[int, ...]

MOVING = ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))


@pytest.mark.parametrize(
    ("assignment", "target"),
    [
        (ReplicaAssignment((1, 2, 3, 4, 5, 6), (2, 3, 4), (1, 5, 6)), (2, 3, 4)),
        (ReplicaAssignment((1, 2, 3, 4), (), (1, 4)), (2, 3)),
        (ReplicaAssignment((1, 2, 3, 4), (4,), (2,)), (1, 3, 4)),
    ],
)
def test_the_target_is_what_is_not_removed(assignment: ReplicaAssignment, target: Ids) -> None:
    assert assignment.target_replicas == target


@pytest.mark.parametrize(
    ("current", "target", "expected"),
    [
        ((1, 2, 3, 4), (4, 2, 5, 3), ReplicaAssignment((4, 2, 5, 3, 1), (5,), (1,))),
        ((1, 2, 3), (4, 5, 6), MOVING),
        ((1, 2, 3), (3, 1, 2), ReplicaAssignment((3, 1, 2))),
        ((1, 2, 3), (1, 2), ReplicaAssignment((1, 2, 3), (), (3,))),
        ((1, 2), (2, 1, 3), ReplicaAssignment((2, 1, 3), (3,))),
    ],
)
def test_a_move_stores_target_then_leftovers(current: Ids, target: Ids, expected: ReplicaAssignment) -> None:
    assert reassign_to(ReplicaAssignment(current), target) == expected


@pytest.mark.parametrize(
    "assignment",
    [ReplicaAssignment((1, 2, 3)), MOVING, ReplicaAssignment((4, 2, 3, 1), (4,), (1,))],
)
def test_moving_to_where_it_moves_changes_nothing(assignment: ReplicaAssignment) -> None:
    assert reassign_to(assignment, assignment.target_replicas) == assignment


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ((7, 8, 9), ReplicaAssignment((7, 8, 9, 1, 2, 3), (7, 8, 9), (1, 2, 3))),
        ((1, 2, 3), ReplicaAssignment((1, 2, 3))),
        ((4, 1, 7), ReplicaAssignment((4, 1, 7, 2, 3), (4, 7), (2, 3))),
    ],
)
def test_an_override_goes_back_to_the_true_original_set(target: Ids, expected: ReplicaAssignment) -> None:
    assert reassign_to(MOVING, target) == expected


def test_a_finished_move_leaves_the_target() -> None:
    assert completed(MOVING) == ReplicaAssignment((4, 5, 6))


@pytest.mark.parametrize(
    ("isr", "is_ready"),
    [((1, 2, 3), False), ((1, 4, 5), False), ((4, 5, 6), True), ((1, 2, 6, 5, 4), True), ((), False)],
)
def test_phase_b_waits_for_the_whole_target(isr: Ids, is_ready: bool) -> None:
    assert is_caught_up(MOVING, isr) is is_ready


@pytest.mark.requirement("A3")
@pytest.mark.parametrize(
    ("target", "text"),
    [
        ((), "empty"),
        ((4, 5, 4), "names a broker twice"),
        ((4, -1), "negative"),
        ((4, 2**31), "above 2147483647"),
        ((4, 7, 8), "[7, 8], which are not alive"),
        ((1, 2, 9), "[9], which are not alive"),
    ],
)
def test_a_target_is_refused_with_the_reason(target: Ids, text: str) -> None:
    fault = target_fault(ReplicaAssignment((1, 2, 3)), target, live={2, 3, 4, 5, 6})
    assert fault is not None
    assert text in fault[1]


@pytest.mark.requirement("A3")
@pytest.mark.parametrize(
    ("current", "target"),
    [
        (ReplicaAssignment((1, 2, 3)), (1, 2, 4)),
        (ReplicaAssignment((1, 2, 3)), (3, 2, 1)),
        (MOVING, (1, 2, 3)),
        (MOVING, (6, 1)),
    ],
    ids=["kept", "reordered", "cancelled", "overridden"],
)
def test_a_replica_that_is_kept_may_be_dead(current: ReplicaAssignment, target: Ids) -> None:
    assert target_fault(current, target, live={4, 5, 6}) is None


@pytest.mark.requirement("A3")
def test_a_replica_that_is_being_added_counts_as_added() -> None:
    assert target_fault(MOVING, (5, 6, 1), live={1, 2, 3, 6}) is not None


replica_sets = st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=5).map(tuple)


@given(origin=replica_sets, targets=st.lists(replica_sets, min_size=1, max_size=6))
def test_after_any_chain_of_moves_only_origin_and_last_target_count(origin: Ids, targets: list[Ids]) -> None:
    moving = ReplicaAssignment(origin)
    for target in targets:
        moving = reassign_to(moving, target)
    # As sets: the order of those that stay follows the target.
    assert set(moving.origin_replicas) == set(origin)
    assert moving.target_replicas == targets[-1]
    assert len(set(moving.replicas)) == len(moving.replicas)
    assert set(moving.replicas) == set(origin) | set(targets[-1])
    assert set(moving.adding_replicas) == set(targets[-1]) - set(origin)
    assert set(moving.removing_replicas) == set(origin) - set(targets[-1])
    assert completed(moving) == ReplicaAssignment(targets[-1])
