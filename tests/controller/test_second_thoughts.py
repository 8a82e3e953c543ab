"""Cancel and override at each step of a move, under the same controller and the next one, lose nothing.

Between B4 and B6 the ISR is the target alone: whoever goes back then, as the original does, deletes the last copies.
"""

from __future__ import annotations

import pytest

from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.metadata import ReplicaAssignment

ORIGIN, TARGET, OTHER = (1, 2, 3), (4, 5, 6), (7, 8, 9)
NINE = tuple(range(1, 10))

BEFORE_THE_ISR_SHRINKS = ("U1", "(U1)", "ISR", "(ISR)", "B3", "(B3)")
TARGET_ALONE = ("B4", "(B4)")
OVER = ("B6", "(B6)")

GOALS = pytest.mark.parametrize("goal", [ORIGIN, OTHER], ids=["cancel", "override"])


async def interrupted(bench: Bench, after: str) -> None:
    """Let a controller die at a step of the move from ORIGIN to TARGET."""
    await bench.start(ORIGIN, brokers=NINE)
    if after in {"U1", "(U1)"}:
        await bench.crash(bench.move(TP, TARGET), after=after)
    else:
        await bench.move(TP, TARGET)
        await bench.crash(bench.alter_isr(TP, *ORIGIN, *TARGET), after=after)
    bench.seen.rounds.clear()


async def require(bench: Bench, replicas: tuple[int, ...], *, deleted: tuple[int, ...]) -> None:
    """Require that the partition is on just these replicas, all in the ISR, and what else has been deleted."""
    assert await bench.read_assignment(TP) == bench.context.assignment(TP) == ReplicaAssignment(replicas)
    state = await bench.read_state(TP)
    assert state.leader in replicas
    assert sorted(state.isr) == sorted(replicas)
    assert bench.context.reassigning == {}
    assert await bench.requested_moves() is None
    assert {stray.broker_id for stray in bench.context.strays} == bench.seen.stopped(delete=True) == set(deleted)


async def catch_up(bench: Bench) -> None:
    """Let all replicas catch up, if a move waits for that."""
    if TP in bench.context.reassigning:
        await bench.alter_isr(TP, *bench.context.assignment(TP).replicas)


# --- asked in the store, before the next controller is in office ------------------------------------------------


@pytest.mark.requirement("A8", "A11")
@GOALS
@pytest.mark.parametrize("after", BEFORE_THE_ISR_SHRINKS)
async def test_until_the_isr_shrinks_the_next_controller_does_as_it_is_asked(
    bench: Bench, after: str, goal: tuple[int, ...]
) -> None:
    await interrupted(bench, after)
    await bench.request_moves({TP: goal})
    await bench.fail_over()
    assert (await bench.read_state(TP)).isr == ORIGIN
    assert bench.context.assignment(TP).origin_replicas == ORIGIN
    await catch_up(bench)
    await require(bench, goal, deleted=TARGET if goal == ORIGIN else (*ORIGIN, *TARGET))


@pytest.mark.requirement("A8", "A11")
@GOALS
@pytest.mark.parametrize("after", TARGET_ALONE)
async def test_while_the_target_is_alone_in_the_isr_the_next_controller_refuses_and_ends_the_move(
    bench: Bench, after: str, goal: tuple[int, ...]
) -> None:
    await interrupted(bench, after)
    assert (await bench.read_state(TP)).isr == TARGET
    await bench.request_moves({TP: goal})
    await bench.fail_over()
    assert "U1" not in bench.seen.rounds
    await require(bench, TARGET, deleted=ORIGIN)


@pytest.mark.requirement("A8", "A11")
@GOALS
@pytest.mark.parametrize("after", OVER)
async def test_once_the_target_is_stored_as_the_replicas_it_is_a_move_from_there(
    bench: Bench, after: str, goal: tuple[int, ...]
) -> None:
    await interrupted(bench, after)
    assert await bench.read_assignment(TP) == ReplicaAssignment(TARGET)
    await bench.request_moves({TP: goal})
    await bench.fail_over()
    assert await bench.read_assignment(TP) == ReplicaAssignment((*goal, *TARGET), goal, TARGET)
    assert (await bench.read_state(TP)).isr == TARGET
    await catch_up(bench)
    # Those that are wanted again are strays no more.
    assert {stray.broker_id for stray in bench.context.strays} == {*ORIGIN, *TARGET} - set(goal)
    assert await bench.read_assignment(TP) == ReplicaAssignment(goal)


# --- asked through the api --------------------------------------------------------------------------------------


@pytest.mark.requirement("A8", "A11")
@GOALS
@pytest.mark.parametrize("fails_over", [False, True])
@pytest.mark.parametrize("isr", [ORIGIN, (1, 2, 3, 4), (1, 2, 3, 5, 6)])
async def test_a_move_that_waits_does_as_it_is_asked(
    bench: Bench, goal: tuple[int, ...], isr: tuple[int, ...], *, fails_over: bool
) -> None:
    await bench.begin_move(ORIGIN, TARGET, brokers=NINE)
    if isr != ORIGIN:
        await bench.alter_isr(TP, *isr)
    if fails_over:
        await bench.fail_over()
    assert (await bench.move(TP, None if goal == ORIGIN else goal)).error is ErrorCode.NONE
    await catch_up(bench)
    await require(bench, goal, deleted=TARGET if goal == ORIGIN else (*ORIGIN, *TARGET))


@pytest.mark.requirement("A8", "A11")
@GOALS
@pytest.mark.parametrize("after", [*TARGET_ALONE, *OVER])
async def test_whoever_asks_after_the_next_controller_ended_the_move_is_told_or_moves_on(
    bench: Bench, after: str, goal: tuple[int, ...]
) -> None:
    await interrupted(bench, after)
    await bench.fail_over()
    await require(bench, TARGET, deleted=ORIGIN)
    answer = await bench.move(TP, None if goal == ORIGIN else goal)
    if goal == ORIGIN:
        assert answer.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        await require(bench, TARGET, deleted=ORIGIN)
    else:
        assert answer.error is ErrorCode.NONE
        assert await bench.read_assignment(TP) == ReplicaAssignment((*OTHER, *TARGET), OTHER, TARGET)


@pytest.mark.requirement("A8", "A11")
@GOALS
@pytest.mark.parametrize("after", TARGET_ALONE)
async def test_a_target_that_is_alone_in_the_isr_and_dead_is_waited_for_whatever_is_asked(
    bench: Bench, after: str, goal: tuple[int, ...]
) -> None:
    await interrupted(bench, after)
    await bench.unregister(*TARGET)
    await bench.fail_over()
    before = await bench.read_assignment(TP), await bench.read_state(TP)
    assert before[0] == ReplicaAssignment((*TARGET, *ORIGIN), TARGET, ORIGIN)
    refused = await bench.move(TP, None if goal == ORIGIN else goal)
    assert refused.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refused.message == "no live member of the ISR would be left to lead"
    assert (await bench.read_assignment(TP), await bench.read_state(TP)) == before

    await bench.revive(*TARGET)
    await catch_up(bench)
    assert await bench.read_assignment(TP) == ReplicaAssignment(TARGET)
