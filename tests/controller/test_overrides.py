"""A move that gets a new target while it is in progress, or is cancelled."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.model.state_machines import PartitionPhase, ReplicaPhase
from tests.controller.conftest import TP, Bench
from tests.kit.told import Stop
from transport.errors import ErrorCode
from transport.metadata import ReplicaAssignment
from transport.store import paths

ORIGIN, TARGET, OTHER = (1, 2, 3), (4, 5, 6), (7, 8, 9)
NINE = tuple(range(1, 10))


async def mzxids(bench: Bench) -> set[int]:
    """Return under which zxids assignment and state of the partition were written last."""
    znodes = await bench.store.read([paths.topic(TP.topic), paths.partition_state(TP)])
    return {znode.stat.mzxid for znode in znodes if znode is not None}


async def test_an_override_abandons_what_was_being_added(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET, brokers=NINE)
    await bench.alter_isr(TP, 1, 2, 3, 4)
    known = (await bench.read_state(TP)).leader_epoch
    bench.seen.clear()

    assert (await bench.move(TP, OTHER)).error is ErrorCode.NONE
    [stop] = [told.partition for told in bench.seen.published if isinstance(told, Stop)]
    assert stop.leader_epoch > known, "brokers of some versions obey newer epochs only (KAFKA-13972)"
    assert await bench.read_assignment(TP) == ReplicaAssignment((*OTHER, *ORIGIN), OTHER, ORIGIN)
    assert (await bench.read_state(TP)).isr == ORIGIN
    assert bench.seen.stopped(delete=True) == set(TARGET)

    await bench.alter_isr(TP, *ORIGIN, *OTHER)
    assert await bench.read_assignment(TP) == ReplicaAssignment(OTHER)
    assert await bench.leader_and_isr() == (7, OTHER)


async def test_what_an_override_drops_leaves_the_isr_in_the_multi_that_stores_the_target(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET, brokers=NINE)
    await bench.alter_isr(TP, 1, 2, 3, 4)
    epoch = (await bench.read_state(TP)).leader_epoch
    bench.seen.clear()

    await bench.crash(bench.move(TP, OTHER), after="U1")
    assert len(await mzxids(bench)) == 1
    state = await bench.read_state(TP)
    # Under a new epoch, which the dropped do not have yet (KAFKA-13972).
    assert (state.leader, state.isr, state.leader_epoch) == (1, ORIGIN, epoch + 1)


async def test_an_override_tells_its_new_replicas_at_once_that_they_are_new(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET, brokers=NINE)
    bench.seen.clear()
    await bench.move(TP, (4, 8, 9))
    for tell in bench.seen.leader_and_isr():
        # A broker may refuse to create a log that is not new (KAFKA-10314).
        assert tell.is_new is (not set(tell.brokers).isdisjoint((4, 8, 9)))
    assert bench.seen.stopped(delete=True) == {5, 6}


async def test_a_replica_that_a_cancel_keeps_and_the_next_move_wants_is_new_no_more(bench: Bench) -> None:
    bench.context.config = evolve(bench.context.config, min_insync_replicas=2)
    await bench.begin_move((1, 2), (4, 5))
    await bench.alter_isr(TP, 1, 2, 4)
    await bench.kill(1)
    await bench.move(TP, None)
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2, 4), (), (4,))
    await bench.move(TP, (4,))
    assert await bench.read_assignment(TP) == ReplicaAssignment((4,))
    assert bench.context.replica_phases[TP, 4] is ReplicaPhase.ONLINE


async def test_an_abandoned_leader_is_replaced_by_a_survivor(bench: Bench) -> None:
    await bench.begin_move((1, 2), (4, 5))
    await bench.alter_isr(TP, 1, 2, 4)
    await bench.kill(1)
    assert (await bench.read_state(TP)).leader == 4
    bench.seen.clear()

    await bench.crash(bench.move(TP, None), after="U1")
    # KAFKA-14808: the original would stop 4 and leave the partition without a leader.
    assert len(await mzxids(bench)) == 1
    assert await bench.leader_and_isr() == (2, (2,))
    assert bench.context.partition_phases[TP] is PartitionPhase.ONLINE
    await bench.fail_over()
    assert (await bench.read_state(TP)).leader == 2


async def test_a_cancel_ends_the_move_where_it_began(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await bench.alter_isr(TP, 1, 2, 3, 5)
    bench.seen.clear()

    assert (await bench.move(TP, None)).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment(ORIGIN)
    assert await bench.leader_and_isr() == (1, ORIGIN)
    assert bench.context.reassigning == {}
    assert bench.seen.stopped(delete=True) == set(TARGET)
    assert bench.seen.latest_metadata(TP) == bench.context.describe(TP)
    assert {replica for _, replica in bench.context.replica_phases} == set(ORIGIN)


async def test_a_cancel_needs_a_move(bench: Bench) -> None:
    await bench.start(ORIGIN)
    assert (await bench.move(TP, None)).error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert (await bench.move(TP._replace(partition=9), None)).error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert bench.seen.commits == []


@pytest.mark.parametrize("replicas", [None, (1, 6)], ids=["cancel", "override"])
async def test_a_change_that_would_leave_nobody_to_lead_is_refused(
    bench: Bench, replicas: tuple[int, ...] | None
) -> None:
    await bench.begin_move((1,), (4, 5))
    await bench.alter_isr(TP, 1, 4)
    await bench.kill(1)
    before = await bench.read_assignment(TP), await bench.read_state(TP)
    bench.seen.clear()

    refused = await bench.move(TP, replicas)
    assert (refused.error, bool(refused.message)) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, True)
    assert (await bench.read_assignment(TP), await bench.read_state(TP)) == before
    assert bench.seen.rounds == []


async def test_an_override_in_the_store_after_the_leader_moved_gives_it_back(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET, brokers=NINE)
    await bench.crash(bench.alter_isr(TP, *ORIGIN, *TARGET), after="(B3)")
    await bench.request_moves({TP: OTHER})
    await bench.fail_over()
    assert await bench.leader_and_isr() == (1, ORIGIN)
    assert await bench.read_assignment(TP) == ReplicaAssignment((*OTHER, *ORIGIN), OTHER, ORIGIN)
    assert bench.seen.stopped(delete=True) == set(TARGET)


async def test_an_override_in_the_store_after_the_isr_shrank_is_refused_and_the_move_ends(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET, brokers=NINE)
    await bench.crash(bench.alter_isr(TP, *ORIGIN, *TARGET), after="(B4)")
    await bench.request_moves({TP: OTHER})
    await bench.fail_over()
    assert await bench.read_assignment(TP) == ReplicaAssignment(TARGET)
    assert await bench.requested_moves() is None
