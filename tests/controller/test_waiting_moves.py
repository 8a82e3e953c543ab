"""Moves that have to wait: they do no harm meanwhile, and continue by themselves."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.events import TopicChange
from controller.handlers import reassignments
from controller.model.facts import BrokerGone
from controller.model.state_machines import PartitionPhase
from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.metadata import NO_LEADER, ReplicaAssignment

ORIGIN, TARGET, BOTH = (1, 2, 3), (4, 5, 6), (4, 5, 6, 1, 2, 3)


@pytest.mark.requirement("A9")
async def test_a_move_waits_for_a_dead_adding_replica_and_goes_on_when_its_broker_starts(bench: Bench) -> None:
    await bench.begin_move((1,), (4,))
    assert (await bench.read_state(TP)).leader_epoch == 1
    await bench.kill(4)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 1), (4,), (1,))
    bench.seen.clear()

    await bench.revive(4)
    told = [tell for tell in bench.seen.leader_and_isr() if 4 in tell.brokers]
    assert told
    assert all(tell.is_new for tell in told)
    await bench.alter_isr(TP, 1, 4)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4,))
    # The beginning, A1 when the broker starts, the election, the shrinking, the end.
    assert (await bench.read_state(TP)).leader_epoch == 5


@pytest.mark.requirement("A9")
async def test_a_waiting_move_can_be_cancelled(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await bench.kill(6)
    assert (await bench.move(TP, None)).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment(ORIGIN)
    assert bench.context.reassigning == {}


@pytest.mark.requirement("A9")
async def test_the_start_of_a_broker_outside_the_target_moves_nothing(bench: Bench) -> None:
    await bench.start(ORIGIN, brokers=(1, 2, 4, 5, 6))
    await bench.move(TP, TARGET)
    bench.seen.clear()
    await bench.revive(3)
    assert "A1" not in bench.seen.rounds


@pytest.mark.requirement("A6")
async def test_without_a_live_leader_inside_the_target_nothing_is_taken_away(bench: Bench) -> None:
    await bench.begin_move((1, 2), (4,))
    await bench.crash(bench.alter_isr(TP, 1, 2, 4), after="ISR")
    # 1 and 2 are cut off for a moment, 4 leads alone, and dies when they are back.
    state = await bench.read_state(TP)
    await bench.write_state(TP, replace(state, leader=4, isr=(4,), leader_epoch=state.leader_epoch + 1))
    await bench.unregister(4)
    bench.seen.clear()

    with capture_logs() as logs:
        await bench.fail_over()
    assert any("move waits" in log["event"] for log in logs)
    assert await bench.leader_and_isr() == (NO_LEADER, (4,))
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    assert bench.seen.stopped(delete=False) == bench.seen.stopped(delete=True) == set()
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 1, 2), (4,), (1, 2))
    assert list(bench.context.reassigning) == [TP]

    await bench.revive(4)
    assert await bench.leader_and_isr() == (4, (4,))
    assert bench.seen.stopped(delete=True) == {1, 2}
    assert await bench.read_assignment(TP) == ReplicaAssignment((4,))


@pytest.mark.requirement("A6")
async def test_a_dead_leader_is_replaced_inside_the_target(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await bench.crash(bench.alter_isr(TP, *ORIGIN, *TARGET), after="ISR")
    await bench.unregister(1, 4)
    await bench.fail_over()
    # 4 left the ISR with its broker, so the move waits for it under a leader that lives.
    assert await bench.leader_and_isr() == (5, (2, 3, 5, 6))
    await bench.revive(4)
    await bench.alter_isr(TP, 2, 3, 5, 6, 4)
    assert await bench.read_assignment(TP) == ReplicaAssignment(TARGET)
    assert await bench.leader_and_isr() == (5, (5, 6, 4))


@pytest.mark.requirement("A6")
async def test_a_leader_inside_the_target_that_is_not_alive_does_not_do(bench: Bench) -> None:
    await bench.begin_move((1,), (4, 5))
    await bench.crash(bench.alter_isr(TP, 1, 4, 5), after="(B3)")
    assert bench.context.leadership[TP].leader == 4
    bench.context.apply(BrokerGone(4))
    await bench.run(reassignments.finish(bench.context, [TP]))
    assert await bench.leader_and_isr() == (5, (4, 5))


@pytest.mark.requirement("A10")
async def test_a_leader_that_fails_after_the_move_leaves_the_partition_visibly_offline(bench: Bench) -> None:
    await bench.begin_move((1,), (4,))
    await bench.alter_isr(TP, 1, 4)
    await bench.kill(4)
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    told = bench.seen.latest_metadata(TP)
    assert (told.leader, told.isr, told.replicas, told.offline_replicas) == (NO_LEADER, (4,), (4,), (4,))


@pytest.mark.requirement("A9")
async def test_a_move_of_a_partition_that_never_had_a_leader_goes_on_by_itself(bench: Bench) -> None:
    await bench.start(brokers=(4,))
    await bench.write_topic("orders", (1,))
    await bench.handle(TopicChange())
    assert bench.context.partition_phases[TP] is PartitionPhase.NEW
    assert (await bench.move(TP, (4,))).error is ErrorCode.NONE
    # It has no data that 4 would have to wait for.
    assert await bench.read_assignment(TP) == ReplicaAssignment((4,))
    assert await bench.leader_and_isr() == (4, (4,))


@pytest.mark.requirement("A9")
async def test_a_move_goes_on_when_the_first_leader_comes_with_an_old_replica(bench: Bench) -> None:
    await bench.start(brokers=(4, 5))
    await bench.write_topic("orders", (1,))
    await bench.handle(TopicChange())
    await bench.crash(bench.move(TP, (4,)), after="U1")
    await bench.unregister(4)
    await bench.fail_over()
    assert bench.context.partition_phases[TP] is PartitionPhase.NEW

    await bench.revive(1)
    told = [(tell.brokers, tell.state.leader, tell.is_new) for tell in bench.seen.leader_and_isr()]
    assert ((1,), 1, True) in told
    await bench.revive(4)
    await bench.alter_isr(TP, 1, 4)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4,))
