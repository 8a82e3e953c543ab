"""A replica for which a service fails to carry out an order is replaced, tried again, and seen."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from attrs import define, field

from controller.channels.broker_responses import BrokerResponses
from controller.events import (
    AutoPreferredReplicaLeaderElection,
    BrokerChange,
    ControllerEvent,
    FailedReplicasDue,
    OrderFailed,
)
from controller.gathered import ReplicaOrder
from controller.handlers import failed_replicas
from controller.handlers.metadata import describe_topics
from controller.model.replica_failures import MAX_ELECTIONS, MAX_SECONDS, ReplicaFailure
from controller.model.state_machines import PartitionPhase
from controller.monitoring.metrics import _CLUSTER
from controller.node import alarms
from tests.controller.conftest import TP, Bench
from tests.controller.test_log_dirs import SECOND, request
from tests.kit.told import Stop
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    FailedReplica,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
)
from transport.metadata import NO_LEADER, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
NONE = ErrorCode.NONE


@define
class Answers:
    """The answers of brokers to one controllership."""

    bench: Bench
    told: list[ControllerEvent] = field(factory=list)
    responses: BrokerResponses = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.responses = BrokerResponses(self.told.append)

    async def __call__(self, broker_id: int, *errors: ErrorCode) -> None:
        """Let a broker answer the orders in effect, and the controller take it."""
        tps = (TP, SECOND)[: len(errors)]
        outcomes = [PartitionError(*tp, error, "as told") for tp, error in zip(tps, errors, strict=True)]
        await self.take(broker_id, request(self.bench, broker_id, *tps), LeaderAndIsrResponse(tuple(outcomes)))

    async def take(self, broker_id: int, asked: Request[Any], answer: object) -> None:
        """Let a broker answer one request."""
        self.responses.take(broker_id, asked, answer)
        for event in self.told:
            await self.bench.handle(event)
        self.told.clear()


@pytest.fixture
def answers(bench: Bench) -> Answers:
    return Answers(bench)


async def wait(bench: Bench, seconds: float) -> None:
    """Let virtual time pass, and the controller look at what is due."""
    await trio.sleep(seconds)
    await bench.handle(FailedReplicasDue(trio.current_time()))


def orders_to(bench: Bench, broker_id: int) -> list[tuple[str, int, int]]:
    """Return the orders sent to a broker since the last look: partition, leader and leader epoch."""
    tells = [tell for tell in bench.seen.leader_and_isr() if broker_id in tell.brokers]
    return [(str(tell.state.tp), tell.state.leader, tell.state.leader_epoch) for tell in tells]


# --- who leads ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D9", "D4")
async def test_a_leader_that_failed_is_replaced_and_follows(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2, 3), (1, 2, 3))
    await answers(1, UNKNOWN, NONE)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (1, 2, 3), 1)
    assert orders_to(bench, 1) == [("orders-0", 2, 1)], "it is ordered to follow"
    assert bench.seen.stopped(delete=False) == set()
    assert bench.seen.latest_metadata(TP).offline_replicas == (1,)
    assert (await bench.read_state(SECOND)).leader_epoch == 0, "others are not touched"
    await answers(1, NONE)
    assert not bench.context.is_online(TP, 1), "that it follows says nothing of whether it can lead"


@pytest.mark.requirement("D9")
@pytest.mark.usefixtures("autojump_clock")
async def test_a_follower_that_failed_leaves_the_isr_and_is_ordered_again(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2, 3))
    await answers(3, UNKNOWN)
    assert await bench.leader_and_isr() == (1, (1, 2))
    for delay in (2, 4, 8):
        bench.seen.clear()
        await wait(bench, delay - 0.1)
        assert orders_to(bench, 3) == []
        await wait(bench, 0.1)
        assert [leader for _, leader, _ in orders_to(bench, 3)] == [1]
        await answers(3, UNKNOWN)
    await answers(3, NONE)
    assert dict(bench.context.failures) == {}
    assert bench.seen.latest_metadata(TP).offline_replicas == ()
    await bench.alter_isr(TP, 1, 2, 3)


@pytest.mark.requirement("D9", "D4")
@pytest.mark.usefixtures("autojump_clock")
async def test_a_replica_that_failed_to_lead_and_then_to_follow_does_not_lead_again_at_once(
    bench: Bench, answers: Answers
) -> None:
    await bench.start((1, 2, 3))
    await answers(1, UNKNOWN)
    await answers(1, UNKNOWN)
    assert await bench.leader_and_isr() == (2, (2, 3))
    await wait(bench, 4)
    await answers(1, NONE)
    await bench.alter_isr(TP, 2, 3, 1)
    assert not bench.context.is_online(TP, 1), "it follows, and failed to lead 4 s ago"
    await wait(bench, 6)
    assert bench.context.is_online(TP, 1)


@pytest.mark.requirement("D9", "D4")
@pytest.mark.usefixtures("autojump_clock")
async def test_one_of_those_that_all_failed_stays_and_elections_are_few(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2, 3))
    for broker_id in (1, 2, 3):
        await answers(broker_id, UNKNOWN)
    elections = [trio.current_time()] * 2
    assert await bench.leader_and_isr() == (3, (1, 2, 3))
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    leader = 3
    for _ in range(600):
        await wait(bench, 0.5)
        state = await bench.read_state(TP)
        assert (state.leader != NO_LEADER, set(state.isr)) == (True, {1, 2, 3})
        if state.leader != leader:
            leader = state.leader
            elections.append(trio.current_time())
        if orders_to(bench, leader):
            bench.seen.clear()
            await answers(leader, UNKNOWN)
    per_minute = [sum(at <= other < at + MAX_SECONDS for other in elections) for at in elections]
    assert len(elections) > 2
    assert max(per_minute) <= MAX_ELECTIONS
    await answers(leader, NONE)
    assert bench.context.partition_phases[TP] is PartitionPhase.ONLINE


@pytest.mark.requirement("D9", "C4")
async def test_nobody_leads_uncleanly_because_a_service_failed(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    allowed = formats.encode_config({"unclean.leader.election.enable": "true"})
    await bench.store.multi([Create(paths.topic_config("orders"), allowed)])
    await answers(1, UNKNOWN)
    assert await bench.leader_and_isr() == (1, (1,))
    await bench.handle(BrokerChange())
    assert await bench.leader_and_isr() == (1, (1,))


@pytest.mark.requirement("D9", "C1")
@pytest.mark.usefixtures("autojump_clock")
async def test_automatic_elections_do_not_give_leadership_back_too_soon(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2))
    rebalance = AutoPreferredReplicaLeaderElection(bench.context.epoch)
    # After 10, 20, 40 and 60 s, but not while failures have caused two elections within a minute.
    for delay in (10, 50, 40, 60, 60):
        await answers(1, UNKNOWN)
        assert (await bench.read_state(TP)).leader == 2
        await wait(bench, delay - 0.1)
        await bench.handle(rebalance)
        assert (await bench.read_state(TP)).leader == 2, delay
        await wait(bench, 0.1)
        await bench.handle(rebalance)
        assert (await bench.read_state(TP)).leader == 1, delay
    await answers(1, NONE)
    assert dict(bench.context.failures) == {}


@pytest.mark.requirement("D9", "C1")
@pytest.mark.usefixtures("autojump_clock")
async def test_leadership_returns_once_a_minute_where_some_fail_each_time(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2, 3, 4))
    rebalance = AutoPreferredReplicaLeaderElection(bench.context.epoch)
    epochs = []
    for _ in range(10 * 60 * 2):
        leader = (await bench.read_state(TP)).leader
        await answers(leader, NONE if leader == 4 else UNKNOWN)
        await wait(bench, 0.5)
        await bench.handle(rebalance)
        epochs.append((await bench.read_state(TP)).leader_epoch)
    within_a_minute = [later - epoch for epoch, later in zip(epochs, epochs[120:], strict=False)]
    assert max(within_a_minute) <= MAX_ELECTIONS
    assert max(epochs) > 2 * MAX_ELECTIONS, "it is tried again and again"


@pytest.mark.requirement("D9", "C1")
async def test_a_requested_election_of_a_failed_replica_is_refused_with_the_reason(
    bench: Bench, answers: Answers
) -> None:
    await bench.start((1, 2))
    await answers(1, UNKNOWN)
    asked = ElectLeadersRequest(ElectionType.PREFERRED, (TP,))
    [result] = (await bench.ask(asked, ElectLeadersResponse)).partitions
    assert result.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert result.message == "the preferred leader 1 of orders-0 failed to lead (as told): it is tried again soon"


@pytest.mark.requirement("D9", "D5")
async def test_a_member_that_starts_leads_at_once_where_the_leader_failed(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2))
    await answers(1, UNKNOWN)
    await answers(2, UNKNOWN)
    assert (await bench.read_state(TP)).leader == 2
    await bench.unregister(1)
    await bench.register(1)
    await bench.handle(BrokerChange())
    # Its old incarnation has left the ISR.
    await answers(2, NONE)
    await bench.alter_isr(TP, 2, 1)
    await answers(2, UNKNOWN)
    assert (await bench.read_state(TP)).leader == 1


@pytest.mark.requirement("D9", "D4")
async def test_a_failed_member_leads_where_no_other_is_left(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2))
    await answers(1, UNKNOWN)
    await bench.kill(2)
    assert await bench.leader_and_isr() == (1, (1,))
    await answers(1, NONE)
    assert dict(bench.context.failures) == {}


@pytest.mark.requirement("D9", "D4")
async def test_a_member_that_a_failed_leader_lets_in_replaces_it(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    await answers(1, UNKNOWN)
    assert await bench.leader_and_isr() == (1, (1,))
    await bench.alter_isr(TP, 1, 2)
    assert await bench.leader_and_isr() == (2, (1, 2))


# --- stops --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D9")
@pytest.mark.usefixtures("autojump_clock")
async def test_a_stop_that_failed_is_repeated_until_it_is_done(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2), (1, 2))
    leaving = ControlledShutdownRequest(2, bench.context.brokers[2].epoch)
    await bench.ask(leaving, ControlledShutdownResponse)
    stop = StopReplicaPartition(*TP[:1], "id-of-orders", TP.partition, 1, delete=False)
    asked = StopReplicaRequest(1001, bench.context.epoch, leaving.broker_epoch, (stop,))
    for delay in (2, 4):
        await answers.take(2, asked, StopReplicaResponse((PartitionError(*TP, UNKNOWN, "as told"),)))
        bench.seen.clear()
        await wait(bench, delay - 0.1)
        assert stops(bench) == []
        await wait(bench, 0.1)
        assert stops(bench) == [TP], "the other replica is not stopped again"
    await answers.take(2, asked, StopReplicaResponse((PartitionError(*TP),)))
    assert dict(bench.context.failures) == {}


def stops(bench: Bench) -> list[TopicPartition]:
    return [one.partition.tp for one in bench.seen.published if isinstance(one, Stop)]


# --- what counts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.STALE_BROKER_EPOCH],
)
async def test_a_stale_order_is_no_failure(bench: Bench, answers: Answers, error: ErrorCode) -> None:
    await bench.start((1, 2))
    await answers(1, error)
    assert dict(bench.context.failures) == {}


async def test_an_order_of_before_the_failure_ends_it_not(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2, 3))
    earlier = request(bench, 3, TP)
    await answers(3, UNKNOWN)
    assert (await bench.read_state(TP)).leader_epoch == 1
    await answers.take(3, earlier, LeaderAndIsrResponse((PartitionError(*TP),)))
    assert list(bench.context.failures) == [(TP, 3)]


@pytest.mark.usefixtures("autojump_clock")
async def test_an_order_of_before_the_stop_ends_no_failure_of_its_epoch(bench: Bench, answers: Answers) -> None:
    """A replica outside the ISR leaves nothing, but is stopped: it carries that out after the earlier order."""
    await bench.start((1, 2, 3))
    await bench.alter_isr(TP, 1, 2)
    await answers(3, UNKNOWN)
    assert bench.seen.stopped(delete=False) == {3}
    await answers(3, NONE)
    assert list(bench.context.failures) == [(TP, 3)]
    await wait(bench, 2)
    await answers(3, NONE)
    assert dict(bench.context.failures) == {}


def test_whole_orders_that_fail_are_repeated_unless_they_are_stale() -> None:
    told: list[ControllerEvent] = []
    responses = BrokerResponses(told.append)
    stop = StopReplicaRequest(1001, 1, 77, ())
    for error in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.INVALID_REQUEST):
        responses.take(1, led(), ApiError(error, ""))
    assert told == []
    responses.take(1, led(), ApiError(UNKNOWN, ""))
    responses.take(1, stop, ApiError(UNKNOWN, ""))
    assert told == [OrderFailed(1, 77)]


def led() -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(1001, 1, 77, ())


# --- what is seen and kept ----------------------------------------------------------------------------------------


async def test_failures_are_described_counted_and_forgotten_with_their_topic(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2), (1, 2))
    await answers(1, UNKNOWN, ErrorCode.KAFKA_STORAGE_ERROR)
    failed = describe_topics(bench.context, None).failed
    assert failed == (
        FailedReplica("orders", 0, 1, "lead", "as told", 1),
        FailedReplica("orders", 1, 1, "lead", "as told", 1),
    )
    assert describe_topics(bench.context, ["others"]).failed == ()
    gauges = {name: gauge(bench.context, None) for name, (_, gauge) in _CLUSTER.items() if "replicas" in name}  # type: ignore[arg-type]
    assert (gauges["klamm_failed_replicas"], gauges["klamm_offline_log_dir_replicas"]) == (2, 1)
    await bench.delete_topic("orders", 2)
    await bench.fail_over()
    assert dict(bench.context.failures) == {}


@pytest.mark.usefixtures("autojump_clock")
async def test_looks_are_few_and_none_remains(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2))
    due = FailedReplicasDue(0.0)
    assert alarms.alarms(bench.context, due) == []
    await answers(2, UNKNOWN)
    [(delay, event)] = alarms.alarms(bench.context, due)
    assert isinstance(event, FailedReplicasDue)
    assert 2.0 <= delay <= 2.5
    assert math.isclose(event.at * 2 % 1, 0)
    await answers(2, NONE)
    assert alarms.alarms(bench.context, due) == []


async def test_kafka_brokers_are_not_ordered_again_by_a_timer(bench: Bench, answers: Answers) -> None:
    await bench.start((1, 2))
    await answers(2, ErrorCode.KAFKA_STORAGE_ERROR)
    assert failed_replicas.next_try(bench.context) is not None
    object.__setattr__(bench.context.config, "kafka", True)
    assert failed_replicas.next_try(bench.context) is None


def test_delays_double_up_to_a_minute() -> None:
    def delays(order: ReplicaOrder, *, leads: bool) -> list[float]:
        failures = [ReplicaFailure(order, UNKNOWN, "", 0.0, count) for count in (1, 2, 3, 4, 9)]
        return [failure.next_try(leads=leads) for failure in failures]

    assert delays(ReplicaOrder.LEAD, leads=False) == [10, 20, 40, 60, 60]
    assert delays(ReplicaOrder.LEAD, leads=True) == [2, 4, 8, 16, 60]
    assert delays(ReplicaOrder.FOLLOW, leads=False) == [2, 4, 8, 16, 60]
