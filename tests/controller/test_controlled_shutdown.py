"""Brokers that announce that they will stop."""

from __future__ import annotations

import pytest

from controller.events import BrokerChange
from controller.model.state_machines import ReplicaPhase
from tests.controller.conftest import TP, Bench
from tests.kit.told import Stop
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
)
from transport.metadata import NO_LEADER, ReplicaAssignment, TopicPartition

SECOND = TopicPartition("orders", 1)


async def shut_down(bench: Bench, broker_id: int) -> tuple[tuple[str, int], ...]:
    """Let a broker ask; return what it still leads."""
    request = ControlledShutdownRequest(broker_id, bench.context.brokers[broker_id].epoch)
    return (await bench.ask(request, ControlledShutdownResponse)).remaining


async def propose(bench: Bench, tp: TopicPartition, *isr: int) -> ErrorCode:
    """Let a partition's leader ask for an ISR."""
    now = bench.context.leadership[tp]
    topic_id = bench.context.topics[tp.topic].znode.topic_id or ""
    item = AlterPartitionItem(tp.topic, topic_id, tp.partition, now.leader_epoch, isr, now.partition_epoch)
    request = AlterPartitionRequest(now.leader, bench.context.brokers[now.leader].epoch, (item,))
    [result] = (await bench.ask(request, AlterPartitionResponse)).partitions
    return result.error


@pytest.mark.requirement("D6")
async def test_brokers_that_stop_one_after_the_other_until_one_is_left(bench: Bench) -> None:
    await bench.start((1, 2, 3), brokers=(1, 2, 3))
    assert await shut_down(bench, 3) == ()
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2), 1)
    assert await shut_down(bench, 2) == ()
    state = await bench.read_state(TP)
    assert (state.leader, state.isr) == (1, (1,))
    assert await shut_down(bench, 1) == (("orders", 0),)
    after = await bench.read_state(TP)
    assert after == state


@pytest.mark.requirement("D4", "D6")
async def test_leadership_moves_first_and_then_the_followers_stop(bench: Bench) -> None:
    await bench.start((1, 2, 3), (2, 1, 3))
    assert await shut_down(bench, 1) == ()
    led, followed = await bench.read_state(TP), await bench.read_state(SECOND)
    assert (led.leader, led.isr, led.leader_epoch) == (2, (2, 3), 1)
    assert (followed.leader, followed.isr, followed.leader_epoch) == (2, (2, 3), 1)
    [commit] = bench.seen.commits
    assert [state.partition for state in commit.partitions] == [0, 1]
    assert [(tell.brokers, tell.state.partition, tell.state.isr) for tell in bench.seen.leader_and_isr()] == [
        ((1, 2, 3), 0, (2, 3)),
        ((2, 3), 1, (2, 3)),
    ]
    stops = [stop for stop in bench.seen.published if isinstance(stop, Stop)]
    assert [(stop.brokers, stop.partition.partition, stop.partition.delete) for stop in stops] == [((1,), 1, False)]
    assert bench.context.replica_phases[SECOND, 1] is ReplicaPhase.OFFLINE


@pytest.mark.requirement("D6")
async def test_partitions_that_nobody_else_holds_do_not_count(bench: Bench) -> None:
    await bench.start((1,), (1, 2))
    assert await shut_down(bench, 1) == ()
    assert (await bench.read_state(TP)).leader == 1
    assert bench.seen.stopped(delete=False) == set()


@pytest.mark.requirement("D6")
async def test_a_broker_that_asks_again_finds_who_came_back_meanwhile(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    await bench.kill(2)
    assert await shut_down(bench, 1) == (("orders", 0),)
    await bench.revive(2)
    # The last leader may let the other in though it is about to stop itself.
    assert await propose(bench, TP, 1, 2) is ErrorCode.NONE
    assert await shut_down(bench, 1) == ()
    assert await bench.leader_and_isr() == (2, (2,))


@pytest.mark.requirement("D2", "D6")
async def test_who_is_shutting_down_is_told_everything_but_given_nothing(bench: Bench) -> None:
    await bench.start((1, 2, 3), brokers=(1, 2, 3))
    await shut_down(bench, 3)
    assert bench.context.shutting_down == {3: None}
    assert [broker.id for broker in bench.context.live_brokers()] == [1, 2, 3]
    assert bench.seen.latest_metadata(TP).offline_replicas == (3,)
    # It comes into no ISR (KAFKA-14140), and gets no replicas.
    assert await propose(bench, TP, 1, 2, 3) is ErrorCode.INELIGIBLE_REPLICA
    request = CreateTopicsRequest((NewTopic("more", 1, 3),))
    [refused] = (await bench.ask(request, CreateTopicsResponse)).topics
    assert refused.error is ErrorCode.INVALID_REPLICATION_FACTOR
    # A leader that fails does not make it one.
    await bench.kill(1)
    assert (await bench.read_state(TP)).leader == 2


async def test_an_added_replica_must_not_be_on_a_broker_that_is_shutting_down(bench: Bench) -> None:
    await bench.start((1, 2))
    await shut_down(bench, 3)
    assert (await bench.move(TP, (1, 3))).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2))


@pytest.mark.requirement("D4", "D6")
async def test_when_the_last_isr_members_both_stop_the_leader_stays_until_it_is_gone(bench: Bench) -> None:
    await bench.start((1, 2, 3), brokers=(1, 2, 3))
    await bench.alter_isr(TP, 1)
    assert await shut_down(bench, 1) == (("orders", 0),)
    assert (await bench.read_state(TP)).leader == 1
    await bench.kill(1)
    assert (await bench.read_state(TP)).leader == NO_LEADER
    assert bench.context.shutting_down == {}


@pytest.mark.requirement("D2", "D5")
async def test_a_broker_that_comes_back_is_not_shutting_down_any_more(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await shut_down(bench, 1)
    await bench.unregister(1)
    await bench.register(1)
    await bench.handle(BrokerChange())
    assert bench.context.shutting_down == {}
    assert bench.context.is_online(TP, 1)


@pytest.mark.requirement("D6")
@pytest.mark.parametrize(("off_by", "error"), [(-1, ErrorCode.STALE_BROKER_EPOCH), (1, ErrorCode.BROKER_NOT_AVAILABLE)])
async def test_a_request_of_another_incarnation_is_refused(bench: Bench, off_by: int, error: ErrorCode) -> None:
    await bench.start((1, 2, 3))
    request = ControlledShutdownRequest(1, bench.context.brokers[1].epoch + off_by)
    with pytest.raises(ApiError) as refusal:
        await bench.ask(request, ControlledShutdownResponse)
    assert refusal.value.code is error
    assert bench.context.shutting_down == {}


async def test_a_broker_that_nobody_knows_is_told_to_ask_again(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    with pytest.raises(ApiError) as refusal:
        await bench.ask(ControlledShutdownRequest(9, -1), ControlledShutdownResponse)
    assert refusal.value.code is ErrorCode.BROKER_NOT_AVAILABLE
