"""Moving replicas: the rows of a move, the messages of each round, overrides and cancels."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from controller.events import ZkPartitionReassignment
from controller.handlers import reassignments
from controller.model.context import ControllerContext
from controller.model.state_machines import ReplicaPhase
from controller.observation.instruments import Application, Instrument
from tests.controller.conftest import TP, Bench
from tests.kit.told import Stop
from transport.errors import ErrorCode
from transport.metadata import NO_LEADER, ReplicaAssignment

BOTH, TARGET, ORIGIN = (4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3)
ALL_SIX = (1, 2, 3, 4, 5, 6)


def leader_and_isr(bench: Bench) -> list[tuple[tuple[int, ...], tuple[int, ...], int, bool]]:
    """List whom LeaderAndIsr went to, with which replicas, leader epoch and isNew."""
    return [(t.brokers, t.state.replicas, t.state.leader_epoch, t.is_new) for t in bench.seen.leader_and_isr()]


@pytest.mark.requirement("A5", "A6", "A7")
async def test_a_move_goes_through_the_six_rows(bench: Bench) -> None:
    await bench.start(ORIGIN)
    before = await bench.read_assignment(TP), await bench.read_state(TP)
    assert (before[0].replicas, before[1].leader, before[1].isr) == (ORIGIN, 1, ORIGIN)

    assert (await bench.move(TP, TARGET)).error is ErrorCode.NONE
    await bench.alter_isr(TP, *ALL_SIX)

    rows = [
        (commit.round, state.replicas, state.adding_replicas, state.removing_replicas, state.leader, state.isr)
        for commit in bench.seen.commits
        for state in commit.partitions
    ]
    assert rows == [
        ("U1", BOTH, TARGET, ORIGIN, 1, ORIGIN),
        ("ISR", BOTH, TARGET, ORIGIN, 1, ALL_SIX),
        ("B3", BOTH, TARGET, ORIGIN, 4, ALL_SIX),
        ("B4", BOTH, TARGET, ORIGIN, 4, TARGET),
        ("B6", TARGET, (), (), 4, TARGET),
    ]
    zxids = [commit.zxid for commit in bench.seen.commits]
    assert zxids == sorted(set(zxids))
    assert await bench.read_assignment(TP) == ReplicaAssignment(TARGET)
    # U1, the election of B3, the shrinking of B4, and B6 add one each.
    assert (await bench.read_state(TP)).leader_epoch == 4


@pytest.mark.requirement("A4")
async def test_phase_a_tells_old_replicas_to_go_on_and_new_ones_that_they_are_new(bench: Bench) -> None:
    await bench.start(ORIGIN)
    assert (await bench.move(TP, TARGET)).error is ErrorCode.NONE

    assert await bench.read_assignment(TP) == ReplicaAssignment(BOTH, TARGET, ORIGIN)
    assert (await bench.read_state(TP)).leader_epoch == 1
    assert bench.seen.rounds == ["U1", "(U1)"]
    assert leader_and_isr(bench) == [(ORIGIN, BOTH, 1, False), (TARGET, BOTH, 1, True)]
    state = bench.seen.leader_and_isr()[0].state
    assert (state.adding_replicas, state.removing_replicas) == (TARGET, ORIGIN)
    assert bench.seen.latest_metadata(TP) == bench.context.describe(TP)
    assert {bench.context.replica_phases[TP, r] for r in TARGET} == {ReplicaPhase.NEW}


class Looking(Instrument):
    """Looks at the steps of each round before they are applied."""

    def applying(self, context: ControllerContext, application: Application) -> None:  # noqa: ARG002
        """Have each step made."""
        list(application.steps)


@pytest.mark.requirement("A4")
async def test_steps_that_are_looked_at_before_they_are_applied_tell_the_new_assignment(bench: Bench) -> None:
    await bench.start(ORIGIN)
    bench.runner.instrument = Looking()
    await bench.move(TP, TARGET)
    assert {order.state.adding_replicas for order in bench.seen.leader_and_isr()} == {TARGET}


@pytest.mark.requirement("A6")
async def test_phase_b_leads_inside_the_target_then_stops_then_deletes(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    bench.seen.clear()
    await bench.alter_isr(TP, *ALL_SIX)

    assert bench.seen.rounds == ["ISR", "(ISR)", "B3", "(B3)", "B4", "(B4)", "B6", "(B6)"]
    told = [(TARGET, BOTH, 2, False), (TARGET, BOTH, 3, False), (TARGET, TARGET, 4, False)]
    assert leader_and_isr(bench) == told
    stops = [
        (tell.brokers, tell.partition.leader_epoch, tell.partition.delete)
        for tell in bench.seen.published
        if isinstance(tell, Stop)
    ]
    # Under an epoch that the stopped do not have yet (KAFKA-13972).
    assert stops == [(ORIGIN, 3, False), (ORIGIN, 4, True)]
    assert bench.seen.latest_metadata(TP) == bench.context.describe(TP)
    assert bench.context.reassigning == {}
    phases = {replica: phase for (_, replica), phase in bench.context.replica_phases.items()}
    assert phases == dict.fromkeys(TARGET, ReplicaPhase.ONLINE)


@pytest.mark.requirement("A5")
async def test_a_growing_isr_that_does_not_cover_the_target_changes_nothing_else(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    bench.seen.clear()
    await bench.alter_isr(TP, 1, 2, 3, 4, 5)
    assert bench.seen.rounds == ["ISR", "(ISR)"]


@pytest.mark.requirement("A6")
async def test_a_leader_inside_the_target_stays(bench: Bench) -> None:
    await bench.begin_move((1, 2), (3, 1))
    await bench.alter_isr(TP, 1, 2, 3)
    state = await bench.read_state(TP)
    # Written when the move begins and when it ends, each time with its topic; the ISR shrinks with the end.
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 3), 2)
    assert await bench.read_assignment(TP) == ReplicaAssignment((3, 1))
    assert [name for name in bench.seen.rounds if name[0] != "("] == ["U1", "ISR", "B6"]


async def test_many_partitions_move_in_one_multi_per_round(bench: Bench) -> None:
    await bench.start(*[ORIGIN] * 50)
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(bench.context.partitions(), TARGET)))
    assert bench.seen.rounds == ["U1", "(U1)"]
    assert [len(commit.partitions) for commit in bench.seen.commits] == [50]


# --- the same set in another order ------------------------------------------------------------------------------


@pytest.mark.requirement("C3")
async def test_the_same_set_in_another_order_changes_the_order_only(bench: Bench) -> None:
    await bench.start(ORIGIN)
    assert (await bench.move(TP, (3, 2, 1))).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment((3, 2, 1))
    assert await bench.leader_and_isr() == (1, ORIGIN)
    assert bench.seen.stopped(delete=False) == bench.seen.stopped(delete=True) == set()
    assert bench.seen.latest_metadata(TP).replicas == (3, 2, 1)
    assert {tell.state.replicas for tell in bench.seen.leader_and_isr()} == {(3, 2, 1)}


@pytest.mark.requirement("C3")
async def test_the_same_set_in_another_order_is_done_even_where_nobody_can_lead(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    await bench.kill(1)
    await bench.request_moves({TP: (2, 1)})
    with capture_logs() as logs:
        await bench.handle(ZkPartitionReassignment())
    assert logs == [], "nothing waits"
    assert await bench.leader_and_isr() == (NO_LEADER, (1,))
    assert await bench.read_assignment(TP) == ReplicaAssignment((2, 1))
    assert await bench.requested_moves() is None


@pytest.mark.requirement("A3")
async def test_the_target_that_a_partition_has_or_moves_to_is_no_new_move(bench: Bench) -> None:
    await bench.start(ORIGIN)
    assert (await bench.move(TP, ORIGIN)).error is ErrorCode.NONE
    assert bench.seen.rounds == []
    await bench.move(TP, TARGET)
    bench.seen.clear()
    assert (await bench.move(TP, TARGET)).error is ErrorCode.NONE
    assert bench.seen.rounds == []
