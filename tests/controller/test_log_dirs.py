"""A replica that its live broker cannot use does not lead and leaves the ISR, until it can be used again."""

from __future__ import annotations

import pytest
import trio
from structlog.testing import capture_logs

from controller.channels.broker_responses import BrokerResponses
from controller.events import (
    BrokerChange,
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    PartitionModifications,
    ReplicasDeleted,
    ReplicasNotDeleted,
)
from controller.gathered import Outcome, ReplicaOrder
from controller.handlers import failed_replicas
from controller.model.replica_failures import REPEAT_SECONDS
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from tests.controller.conftest import TP, Bench
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
)
from transport.metadata import NO_LEADER, ReplicaAssignment, Stray, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create

SECOND = TopicPartition("orders", 1)
FAILED = ErrorCode.KAFKA_STORAGE_ERROR


def request(bench: Bench, broker_id: int, *tps: TopicPartition) -> LeaderAndIsrRequest:
    """Return the request that tells a broker what is in force."""
    items = tuple(LeaderAndIsrPartition(bench.context.describe(tp), is_new=False) for tp in tps)
    return LeaderAndIsrRequest(1001, bench.context.epoch, bench.context.brokers[broker_id].epoch, items)


def answer(asked: LeaderAndIsrRequest, *errors: ErrorCode) -> LeaderAndIsrResponse:
    states = [item.state for item in asked.partitions]
    return LeaderAndIsrResponse(
        tuple(PartitionError(s.topic, s.partition, error) for s, error in zip(states, errors, strict=True))
    )


async def answers(bench: Bench, broker_id: int, *errors: ErrorCode) -> None:
    """Let a broker answer for the first partitions of the topic, and the controller take it."""
    told: list[ControllerEvent] = []
    asked = request(bench, broker_id, *[TP, SECOND][: len(errors)])
    BrokerResponses(told.append).take(broker_id, asked, answer(asked, *errors))
    for event in told:
        await bench.handle(event)


async def recovers(bench: Bench, broker_id: int) -> None:
    """Let a broker fail once more and then obey, before the controller looks."""
    told: list[ControllerEvent] = []
    responses = BrokerResponses(told.append)
    asked = request(bench, broker_id, TP)
    for error in (FAILED, ErrorCode.NONE):
        responses.take(broker_id, asked, answer(asked, error))
    await bench.handle(told[0])


# --- what the controller does -----------------------------------------------------------------------------------


@pytest.mark.requirement("D9", "D4")
async def test_a_leader_that_cannot_use_its_log_is_replaced_where_it_cannot(bench: Bench) -> None:
    await bench.start((1, 2, 3), (1, 2, 3))
    other = await bench.read_state(SECOND)
    await answers(bench, 1, FAILED, ErrorCode.NONE)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), 1)
    assert bench.context.replica_phases[TP, 1] is ReplicaPhase.OFFLINE
    assert bench.seen.latest_metadata(TP).offline_replicas == (1,)
    assert [tell.brokers for tell in bench.seen.leader_and_isr()] == [(2, 3)]
    assert bench.seen.stopped(delete=False) == {1}
    assert await bench.read_state(SECOND) == other
    assert bench.context.replica_phases[SECOND, 1] is ReplicaPhase.ONLINE


@pytest.mark.requirement("D9")
async def test_a_follower_that_cannot_use_its_log_leaves_the_isr_and_is_not_let_in_again(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await answers(bench, 3, FAILED)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2), 1)
    item = AlterPartitionItem("orders", "id-of-orders", 0, state.leader_epoch, (1, 2, 3), state.partition_epoch)
    asked = AlterPartitionRequest(1, bench.context.brokers[1].epoch, (item,))
    [result] = (await bench.ask(asked, AlterPartitionResponse)).partitions
    assert result.error is ErrorCode.INELIGIBLE_REPLICA
    bench.seen.clear()
    await answers(bench, 3, FAILED)
    assert bench.seen.rounds == [], "it is known"
    await recovers(bench, 3)
    assert bench.seen.latest_metadata(TP).offline_replicas == ()
    await bench.alter_isr(TP, 1, 2, 3)


@pytest.mark.requirement("D9", "D4")
async def test_the_last_member_stays_in_the_isr_and_leads_when_it_can_use_its_log_again(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    await answers(bench, 1, FAILED)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr) == (NO_LEADER, (1,))
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    await bench.revive(7)
    assert (await bench.read_state(TP)) == state, "nothing elects it"

    await recovers(bench, 1)
    assert await bench.leader_and_isr() == (1, (1,))
    assert bench.context.replica_phases[TP, 1] is ReplicaPhase.ONLINE
    assert bench.seen.latest_metadata(TP).offline_replicas == ()


@pytest.mark.requirement("D9", "D5")
async def test_a_broker_that_bounces_may_try_again(bench: Bench) -> None:
    await bench.start((1, 2))
    await answers(bench, 2, FAILED)
    bench.seen.clear()
    await bench.unregister(2)
    await bench.register(2)
    await bench.handle(BrokerChange())
    assert [tell.state.isr for tell in bench.seen.leader_and_isr() if 2 in tell.brokers] == [(1,)]
    await bench.alter_isr(TP, 1, 2)
    await answers(bench, 2, FAILED)
    await bench.fail_over()
    assert dict(bench.context.failures) == {}
    assert bench.context.replica_phases[TP, 2] is ReplicaPhase.ONLINE


@pytest.mark.requirement("C4", "D5")
async def test_a_broker_that_bounces_may_try_again_before_another_leads_uncleanly(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    await bench.kill(2)
    await answers(bench, 1, FAILED)
    allowed = formats.encode_config({"unclean.leader.election.enable": "true"})
    await bench.store.multi([Create(paths.topic_config("orders"), allowed)])
    # The controller sees both at once: 2 is new, and 1 is back.
    await bench.unregister(1)
    await bench.register(1, 2)
    await bench.handle(BrokerChange())
    assert await bench.leader_and_isr() == (1, (1,))


@pytest.mark.requirement("A9", "D9")
async def test_a_move_waits_for_a_replica_that_cannot_start_and_goes_on_when_it_can(bench: Bench) -> None:
    await bench.begin_move((1, 2), (4, 5))
    await answers(bench, 4, FAILED)
    assert bench.context.replica_phases[TP, 4] is ReplicaPhase.OFFLINE
    await bench.alter_isr(TP, 1, 2, 5)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2))
    assert bench.seen.stopped(delete=True) == set()
    await bench.run(failed_replicas.try_again(bench.context, trio.current_time() + REPEAT_SECONDS))
    await recovers(bench, 4)
    await bench.alter_isr(TP, 1, 2, 5, 4)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 5))


@pytest.mark.requirement("A6", "D9")
async def test_a_move_is_not_finished_under_a_leader_that_cannot_use_its_log(bench: Bench) -> None:
    await bench.begin_move((1,), (4,))
    await bench.crash(bench.alter_isr(TP, 1, 4), after="ISR")
    await answers(bench, 4, FAILED)
    assert await bench.leader_and_isr() == (1, (1,))
    await recovers(bench, 4)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 1), (4,), (1,))
    await bench.alter_isr(TP, 1, 4)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4,))


@pytest.mark.requirement("A9", "D9")
async def test_a_move_whose_only_leader_can_use_its_log_again_is_finished(bench: Bench) -> None:
    await bench.begin_move((1,), (4,))
    await bench.crash(bench.alter_isr(TP, 1, 4), after="ISR")
    await bench.kill(1)
    await answers(bench, 4, FAILED)
    assert (await bench.read_state(TP)).leader == NO_LEADER
    await recovers(bench, 4)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4,))


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID])
async def test_other_errors_say_nothing_of_the_log(bench: Bench, error: ErrorCode) -> None:
    await bench.start((1, 2))
    await answers(bench, 1, error)
    assert bench.seen.commits == []
    await answers(bench, 2, FAILED)
    bench.seen.clear()
    await answers(bench, 2, error)
    assert (TP, 2) in bench.context.failures
    assert bench.seen.rounds == []


@pytest.mark.parametrize("what", ["broker", "controller", "topic", "namesake", "replica"])
async def test_what_was_answered_to_or_by_somebody_else_changes_nothing(bench: Bench, what: str) -> None:
    await bench.start((1, 2))
    told: list[ControllerEvent] = []
    asked = request(bench, 1, TP)
    BrokerResponses(told.append).take(1, asked, answer(asked, FAILED))
    match what:
        case "broker":
            await bench.kill(1)
            await bench.revive(1)
        case "controller":
            await bench.fail_over()
        case "topic":
            bench.context.topics.clear()
        case "namesake":
            data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((1, 2))}, "another-id"))
            await bench.delete_topic("orders", 1)
            await bench.store.multi([Create(paths.topic("orders"), data)])
            await bench.handle(PartitionModifications("orders"))
        case "replica":
            await bench.move(TP, (2,))
    state = await bench.read_state(TP)
    await bench.handle(told[0])
    assert await bench.read_state(TP) == state
    assert dict(bench.context.failures) == {}


async def test_a_replica_that_is_moved_away_is_forgotten(bench: Bench) -> None:
    await bench.start((1, 2))
    await answers(bench, 1, FAILED)
    assert list(bench.context.failures) == [(TP, 1)]
    await bench.move(TP, (2,))
    assert dict(bench.context.failures) == {}


# --- what becomes of the answers --------------------------------------------------------------------------------


async def test_answers_are_gathered_until_the_controller_looks(bench: Bench) -> None:
    await bench.start((1, 2), (1, 2))
    told: list[ControllerEvent] = []
    responses = BrokerResponses(told.append)
    both, first = request(bench, 1, TP, SECOND), request(bench, 1, TP)
    responses.take(1, both, answer(both, ErrorCode.NONE, ErrorCode.NONE))
    assert told == [], "success is no news"
    responses.take(1, both, answer(both, ErrorCode.FENCED_LEADER_EPOCH, FAILED))
    responses.take(1, first, answer(first, FAILED))
    responses.take(1, first, answer(first, ErrorCode.NONE))
    assert {event.key for event in told} == {LeaderAndIsrResponseReceived(1, both.broker_epoch, 1)}
    assert isinstance(told[-1], LeaderAndIsrResponseReceived)
    assert told[-1].outcomes.take() == {
        ("id-of-orders", SECOND): Outcome(ReplicaOrder.LEAD, 0, FAILED),
        ("id-of-orders", TP): Outcome(ReplicaOrder.LEAD, 0),
    }
    assert told[-1].outcomes.take() == {}
    told.clear()
    responses.take(1, first, answer(first, ErrorCode.FENCED_LEADER_EPOCH))
    assert told == []


async def test_the_next_incarnation_has_an_event_of_its_own(bench: Bench) -> None:
    await bench.start((1, 2))
    told: list[ControllerEvent] = []
    responses = BrokerResponses(told.append)
    old = request(bench, 1, TP)
    responses.take(1, old, answer(old, FAILED))
    await bench.kill(1)
    await bench.revive(1)
    new = request(bench, 1, TP)
    responses.take(1, new, answer(new, ErrorCode.NONE))
    assert [event.key for event in told] == [LeaderAndIsrResponseReceived(1, old.broker_epoch, 1)]


def test_what_a_broker_deleted_is_told_and_a_refusal_is_logged() -> None:
    told: list[ControllerEvent] = []
    responses = BrokerResponses(told.append)
    stops = tuple(StopReplicaPartition("orders", "id-1", p, 3, delete=p != 2) for p in range(3))
    asked = StopReplicaRequest(1001, 1, 77, stops)
    errors = (ErrorCode.NONE, FAILED, ErrorCode.NONE)
    with capture_logs() as logs:
        responses.take(
            4, asked, StopReplicaResponse(tuple(PartitionError("orders", p, e) for p, e in enumerate(errors)))
        )
        responses.take(4, asked, ApiError(ErrorCode.STALE_BROKER_EPOCH, "77 is old"))
    first, second = Stray("id-1", "orders", 0, 4), Stray("id-1", "orders", 1, 4)
    left = [ReplicasNotDeleted((second,)), ReplicasNotDeleted((first, second))]
    assert told == [ReplicasDeleted(4, stops[:1]), *left]
    assert [(log["broker"], log.get("partition"), log["error"]) for log in logs] == [
        (4, "orders-1", "KAFKA_STORAGE_ERROR"),
        (4, None, "STALE_BROKER_EPOCH: 77 is old"),
    ]
