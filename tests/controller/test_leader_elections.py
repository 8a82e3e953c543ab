"""Requested elections, through ElectLeaders or `/admin/preferred_replica_election`."""

from __future__ import annotations

import pytest

from controller.events import PreferredReplicaElection, TopicChange
from controller.model.state_machines import PartitionPhase
from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.messages import ElectionType, ElectLeadersRequest, ElectLeadersResponse
from transport.metadata import NO_LEADER, LeaderRecoveryState, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Delete

SECOND, THIRD = TopicPartition("orders", 1), TopicPartition("orders", 2)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


async def elect(
    bench: Bench, kind: ElectionType, *tps: TopicPartition, every: bool = False
) -> dict[TopicPartition, ErrorCode]:
    """Ask for elections; return the outcomes, each of which must say in words what is wrong."""
    request = ElectLeadersRequest(kind, None if every else tps)
    results = (await bench.ask(request, ElectLeadersResponse)).partitions
    assert all(bool(item.message) is (item.error is not ErrorCode.NONE) for item in results)
    return {item.tp: item.error for item in results}


async def write_request(bench: Bench, *tps: TopicPartition) -> None:
    """Write `/admin/preferred_replica_election`, as Kafka's tools do."""
    await bench.store.multi([Create(paths.PREFERRED_REPLICA_ELECTION, formats.encode_partitions(tps))])


async def led_by_the_second(bench: Bench, *partitions: tuple[int, ...]) -> None:
    """Take office where the second replica of each partition leads, and all are in the ISR."""
    await bench.start(*partitions)
    await bench.kill(1)
    await bench.revive(1)
    for number, replicas in enumerate(partitions):
        if replicas[0] == 1:
            await bench.alter_isr(TopicPartition("orders", number), *replicas[1:], 1)
    bench.seen.clear()


@pytest.mark.requirement("C1", "D4")
async def test_the_preferred_leader_leads_again_and_all_replicas_are_told(bench: Bench) -> None:
    await led_by_the_second(bench, (1, 2, 3))
    before = await bench.read_state(TP)
    assert await elect(bench, PREFERRED, TP) == {TP: ErrorCode.NONE}
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (2, 3, 1), before.leader_epoch + 1)
    [told] = bench.seen.leader_and_isr()
    assert (told.brokers, told.state.leader) == ((1, 2, 3), 1)
    assert bench.seen.latest_metadata(TP).leader == 1


@pytest.mark.requirement("C1")
async def test_leadership_stays_where_the_preferred_leader_is_not_alive(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.kill(1)
    before = await bench.read_state(TP)
    assert await elect(bench, PREFERRED, TP) == {TP: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert await bench.read_state(TP) == before


@pytest.mark.requirement("C1")
async def test_leadership_stays_where_the_preferred_leader_is_not_in_the_isr(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.kill(1)
    await bench.revive(1)
    before = await bench.read_state(TP)
    assert await elect(bench, PREFERRED, TP) == {TP: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert await bench.read_state(TP) == before


@pytest.mark.requirement("C1", "D4")
async def test_each_partition_gets_its_own_outcome(bench: Bench) -> None:
    await led_by_the_second(bench, (1, 2, 3), (2, 1), (1, 3))
    await bench.alter_isr(THIRD, 3)
    nowhere = TopicPartition("orders", 9)
    assert await elect(bench, PREFERRED, nowhere, TP, SECOND, THIRD, TP) == {
        nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        TP: ErrorCode.NONE,
        SECOND: ErrorCode.ELECTION_NOT_NEEDED,
        THIRD: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }


@pytest.mark.requirement("C1")
async def test_of_all_partitions_only_those_that_need_an_election_are_told_of(bench: Bench) -> None:
    await led_by_the_second(bench, (1, 2, 3), (2, 1), (1, 3))
    assert await elect(bench, PREFERRED, every=True) == {TP: ErrorCode.NONE, THIRD: ErrorCode.NONE}
    assert await elect(bench, PREFERRED, every=True) == {}


async def test_a_partition_that_never_had_a_leader_gets_an_answer(bench: Bench) -> None:
    """The original raises on an assignment without a state, and never answers."""
    await bench.start(brokers=(1,))
    await bench.write_topic("orders", (2, 3))
    await bench.handle(TopicChange())
    assert await elect(bench, PREFERRED, TP) == {TP: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert await elect(bench, UNCLEAN, TP) == {TP: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


# --- unclean ----------------------------------------------------------------------------------------------------


async def leaderless(bench: Bench) -> None:
    """Let the only member of the ISR die; 2 and 3 are alive."""
    await bench.start((1, 2, 3))
    await bench.alter_isr(TP, 1)
    await bench.kill(1)
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    bench.seen.clear()


@pytest.mark.requirement("C4", "D4")
async def test_an_administrator_has_a_leader_elected_from_outside_the_isr(bench: Bench) -> None:
    await leaderless(bench)
    assert await elect(bench, UNCLEAN, TP) == {TP: ErrorCode.NONE}
    state = await bench.read_state(TP)
    assert (state.leader, state.isr) == (2, (2,))
    assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING
    assert bench.context.partition_phases[TP] is PartitionPhase.ONLINE
    [told] = bench.seen.leader_and_isr()
    assert (told.brokers, told.state.leader_recovery_state) == ((2, 3), 1)
    await bench.alter_isr(TP, 2, 3)
    assert (await bench.read_state(TP)).leader_recovery_state is LeaderRecoveryState.RECOVERED


@pytest.mark.requirement("C4")
async def test_without_being_asked_nobody_is_elected_from_outside_the_isr(bench: Bench) -> None:
    await leaderless(bench)
    await bench.kill(3)
    await bench.revive(3)
    assert await elect(bench, PREFERRED, TP) == {TP: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    await bench.fail_over()
    assert (await bench.read_state(TP)).leader == NO_LEADER


@pytest.mark.requirement("C4")
async def test_an_unclean_election_is_not_needed_where_a_leader_is_alive(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.alter_isr(TP, 1)
    assert await elect(bench, UNCLEAN, TP) == {TP: ErrorCode.ELECTION_NOT_NEEDED}
    assert await elect(bench, UNCLEAN, every=True) == {}


@pytest.mark.requirement("C4")
async def test_an_unclean_election_needs_somebody_alive(bench: Bench) -> None:
    await bench.start((1,), brokers=(1, 2))
    await bench.kill(1)
    assert await elect(bench, UNCLEAN, TP) == {TP: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


@pytest.mark.requirement("C4")
async def test_where_all_members_lost_their_disks_an_administrator_has_one_elected(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2), storage_id="first")
    await bench.kill(1, 2)
    await bench.revive(1, 2, storage_id="second")
    assert (await bench.read_state(TP)).isr == ()
    assert await elect(bench, UNCLEAN, TP) == {TP: ErrorCode.NONE}
    state = await bench.read_state(TP)
    assert (state.leader, state.isr) == (1, (1,))
    assert state.leader_recovery_state is LeaderRecoveryState.RECOVERING


@pytest.mark.requirement("A9", "C4")
async def test_a_move_that_waited_for_a_leader_is_finished_by_an_unclean_election(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    await bench.move(TP, (2,))
    await bench.kill(1)
    assert bench.context.assignment(TP).is_being_reassigned
    assert await elect(bench, UNCLEAN, TP) == {TP: ErrorCode.NONE}
    assert (await bench.read_assignment(TP)).replicas == (2,)


# --- /admin/preferred_replica_election --------------------------------------------------------------------------


@pytest.mark.requirement("C1")
async def test_elections_asked_for_in_the_store_are_run_and_the_request_is_removed(bench: Bench) -> None:
    await led_by_the_second(bench, (1, 2, 3), (1, 2))
    await write_request(bench, TP, TopicPartition("nowhere", 0))
    await bench.handle(PreferredReplicaElection())
    assert (await bench.read_state(TP)).leader == 1
    assert (await bench.read_state(SECOND)).leader == 2
    assert await bench.read(paths.PREFERRED_REPLICA_ELECTION) is None
    # And once more: the original had to be asked twice in a row to be trusted.
    await write_request(bench, SECOND)
    await bench.handle(PreferredReplicaElection())
    assert (await bench.read_state(SECOND)).leader == 1
    assert await bench.read(paths.PREFERRED_REPLICA_ELECTION) is None


@pytest.mark.requirement("C1")
async def test_a_request_for_a_preferred_leader_that_is_dead_is_removed_all_the_same(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.kill(1)
    await write_request(bench, TP)
    await bench.handle(PreferredReplicaElection())
    assert (await bench.read_state(TP)).leader == 2
    assert await bench.read(paths.PREFERRED_REPLICA_ELECTION) is None


@pytest.mark.requirement("C1", "D7")
async def test_the_next_controller_runs_the_elections_that_were_asked_for(bench: Bench) -> None:
    await led_by_the_second(bench, (1, 2, 3))
    await write_request(bench, TP)
    await bench.fail_over()
    assert (await bench.read_state(TP)).leader == 1
    assert await bench.read(paths.PREFERRED_REPLICA_ELECTION) is None


async def test_a_request_that_cannot_be_decoded_is_removed(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.store.multi([Create(paths.PREFERRED_REPLICA_ELECTION, b"{")])
    await bench.handle(PreferredReplicaElection())
    assert await bench.read(paths.PREFERRED_REPLICA_ELECTION) is None


async def test_without_a_request_nothing_happens(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.handle(PreferredReplicaElection())
    assert bench.seen.commits == []


async def test_a_request_that_another_removed_meanwhile_is_no_fault(bench: Bench) -> None:
    await led_by_the_second(bench, (1, 2, 3))
    await write_request(bench, TP)
    await bench.crash(bench.handle(PreferredReplicaElection()), after="elect")
    await bench.store.multi([Delete(paths.PREFERRED_REPLICA_ELECTION, -1)])
    await bench.fail_over()
    assert (await bench.read_state(TP)).leader == 1
