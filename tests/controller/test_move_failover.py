"""A controller that dies between any two rounds of a move: the next one completes it from any state."""

from __future__ import annotations

import pytest

from controller.events import ZkPartitionReassignment
from controller.model.state_machines import ReplicaPhase
from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.metadata import ReplicaAssignment
from transport.store import paths

ORIGIN, TARGET, BOTH = (1, 2, 3), (4, 5, 6), (4, 5, 6, 1, 2, 3)
ALL_SIX = (1, 2, 3, 4, 5, 6)

PHASE_A = ("U1", "(U1)")
PHASE_B = ("ISR", "(ISR)", "B3", "(B3)", "B4", "(B4)", "B6", "(B6)", "B7")


async def begin(bench: Bench, way: str) -> None:
    if way == "api":
        assert (await bench.move(TP, TARGET)).error is ErrorCode.NONE
    else:
        await bench.request_moves({TP: TARGET})
        await bench.handle(ZkPartitionReassignment())


async def finish(bench: Bench) -> None:
    """Let the followers catch up, if they have not yet."""
    if TP in bench.context.reassigning:
        await bench.alter_isr(TP, *ALL_SIX)


async def require_the_end(bench: Bench) -> None:
    assert await bench.read_assignment(TP) == bench.context.assignment(TP) == ReplicaAssignment(TARGET)
    state = await bench.read_state(TP)
    assert state == bench.context.leadership[TP]
    assert state.leader in TARGET
    assert sorted(state.isr) == sorted(TARGET)
    assert await bench.requested_moves() is None
    assert bench.context.reassigning == {}
    phases = {replica: phase for (_, replica), phase in bench.context.replica_phases.items()}
    assert phases == dict.fromkeys(TARGET, ReplicaPhase.ONLINE)
    # Every broker knows, and whoever was removed was told or will be.
    assert bench.seen.latest_metadata(TP) == bench.context.describe(TP)
    assert bench.seen.stopped(delete=True) == set(ORIGIN)
    assert {stray.broker_id for stray in bench.context.strays} == set(ORIGIN)
    names = (await bench.store.children([paths.STRAYS]))[0]
    assert names is not None
    assert len(names) == len(ORIGIN)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("way", ["api", "znode"])
@pytest.mark.parametrize("after", PHASE_A)
async def test_a_controller_that_dies_in_phase_a(bench: Bench, way: str, after: str) -> None:
    await bench.start(ORIGIN)
    await bench.crash(begin(bench, way), after=after)
    assert await bench.read_assignment(TP) == ReplicaAssignment(BOTH, TARGET, ORIGIN)
    bench.seen.clear()

    await bench.fail_over()
    # Phase A again: the adding replicas hear that they are new.
    new = {broker_id for tell in bench.seen.leader_and_isr() if tell.is_new for broker_id in tell.brokers}
    assert new == set(TARGET)
    assert "A1" in bench.seen.rounds
    assert (await bench.read_state(TP)).isr == ORIGIN
    assert list(bench.context.reassigning) == [TP]
    await finish(bench)
    await require_the_end(bench)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("way", "after"), [(way, after) for way in ("api", "znode") for after in PHASE_B if (way, after) != ("api", "B7")]
)
async def test_a_controller_that_dies_in_phase_b(bench: Bench, way: str, after: str) -> None:
    await bench.start(ORIGIN)
    await begin(bench, way)
    await bench.crash(bench.alter_isr(TP, *ALL_SIX), after=after)
    led_inside = (await bench.read_state(TP)).leader in TARGET
    bench.seen.rounds.clear()

    await bench.fail_over()
    assert "A1" not in bench.seen.rounds
    if led_inside:
        assert (await bench.read_state(TP)).leader == 4
        assert "elect" not in bench.seen.rounds
    await require_the_end(bench)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("after", PHASE_B[2:6])
async def test_a_controller_and_the_new_leader_that_die_together(bench: Bench, after: str) -> None:
    await bench.start(ORIGIN)
    await begin(bench, "znode")
    await bench.crash(bench.alter_isr(TP, *ALL_SIX), after=after)
    await bench.unregister(4)
    await bench.fail_over()
    # 4 left the ISR: the move waits for it, under the next member of the target.
    state = await bench.read_state(TP)
    assert state.leader == 5
    assert await bench.read_assignment(TP) == ReplicaAssignment(BOTH, TARGET, ORIGIN)
    await bench.revive(4)
    await bench.alter_isr(TP, *state.isr, 4)
    await require_the_end(bench)


@pytest.mark.requirement("A8")
async def test_every_controller_dies_once_in_every_round(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await begin(bench, "znode")
    for after in ("A1", "(A1)"):
        await bench.crash(bench.fail_over(), after=after)
    await bench.fail_over()
    await bench.crash(bench.alter_isr(TP, *ALL_SIX), after="ISR")
    for after in ("B3", "B6", "B7"):
        await bench.crash(bench.fail_over(), after=after)
    await bench.fail_over()
    await require_the_end(bench)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("after", ["U1", "(U1)", "B7"])
async def test_a_controller_that_dies_while_it_cancels(bench: Bench, after: str) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await bench.alter_isr(TP, 1, 2, 3, 4, 5)
    await bench.request_moves({TP: ORIGIN})
    await bench.crash(bench.handle(ZkPartitionReassignment()), after=after)
    await bench.fail_over()
    assert await bench.read_assignment(TP) == ReplicaAssignment(ORIGIN)
    assert await bench.leader_and_isr() == (1, ORIGIN)
    assert await bench.requested_moves() is None
    assert bench.seen.stopped(delete=True) == set(TARGET)
    assert {stray.broker_id for stray in bench.context.strays} == set(TARGET)


@pytest.mark.requirement("A8")
async def test_a_controller_that_dies_while_it_changes_an_order(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await bench.request_moves({TP: (3, 1, 2)})
    await bench.crash(bench.handle(ZkPartitionReassignment()), after="U1")
    await bench.fail_over()
    assert await bench.read_assignment(TP) == ReplicaAssignment((3, 1, 2))
    assert await bench.requested_moves() is None
