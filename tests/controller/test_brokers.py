"""Brokers that start, fail, and come back as another incarnation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.channels.broker_responses import BrokerResponses
from controller.events import BrokerChange, ControllerEvent, DeletionsResend, OrderFailed, OrdersResend, TopicChange
from controller.model.rounds import TellMetadata
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from controller.node import alarms
from tests.controller.conftest import TP, Bench
from tests.kit.told import Order
from transport.errors import ApiError, ErrorCode
from transport.messages import UpdateMetadataRequest
from transport.metadata import LEADER_DURING_DELETE, NO_LEADER, TopicPartition

SECOND = TopicPartition("orders", 1)


def live_lists(bench: Bench) -> list[tuple[tuple[int, ...] | None, tuple[int, ...]]]:
    """List to whom which live brokers were told."""
    return [
        (tell.brokers, tuple(broker.id for broker in tell.live_brokers))
        for tell in bench.seen.metadata()
        if tell.live_brokers is not None
    ]


@pytest.mark.requirement("D5")
async def test_the_loss_of_a_leader_costs_one_epoch_where_the_isr_survives(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    before = await bench.read_state(TP)
    await bench.kill(1)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), before.leader_epoch + 1)
    assert bench.context.partition_phases[TP] is PartitionPhase.ONLINE
    assert bench.context.replica_phases[TP, 1] is ReplicaPhase.OFFLINE
    [told] = bench.seen.leader_and_isr()
    assert (told.brokers, told.state.leader, told.is_new) == ((2, 3), 2, False)
    assert bench.seen.latest_metadata(TP).offline_replicas == (1,)


@pytest.mark.requirement("D5")
async def test_the_loss_of_a_follower_shrinks_the_isr(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    before = await bench.read_state(TP)
    await bench.kill(3)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1, 2), before.leader_epoch + 1)
    assert [(tell.brokers, tell.state.isr) for tell in bench.seen.leader_and_isr()] == [((1, 2), (1, 2))]


@pytest.mark.requirement("D5")
async def test_the_loss_of_a_replica_outside_the_isr_costs_no_epoch_but_is_told(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.alter_isr(TP, 1, 2)
    before = await bench.read_state(TP)
    await bench.kill(3)
    assert await bench.read_state(TP) == before
    assert bench.seen.latest_metadata(TP).offline_replicas == (3,)
    assert bench.context.replica_phases[TP, 3] is ReplicaPhase.OFFLINE


@pytest.mark.requirement("D4", "D5")
async def test_the_last_member_of_the_isr_stays_in_it_and_is_elected_when_it_returns(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    before = await bench.read_state(TP)
    await bench.kill(1)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (NO_LEADER, (1,), before.leader_epoch + 1)
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    assert bench.seen.latest_metadata(TP).leader == NO_LEADER

    await bench.revive(7)
    assert (await bench.read_state(TP)).leader == NO_LEADER
    await bench.revive(1)
    back = await bench.read_state(TP)
    assert (back.leader, back.isr, back.leader_epoch) == (1, (1,), state.leader_epoch + 1)
    assert bench.context.partition_phases[TP] is PartitionPhase.ONLINE


@pytest.mark.requirement("D5")
async def test_of_a_whole_isr_that_dies_at_once_whoever_returns_first_leads(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.kill(1, 2, 3)
    state = await bench.read_state(TP)
    assert state.leader == NO_LEADER
    assert state.isr == (1, 2, 3)
    await bench.revive(3)
    assert await bench.leader_and_isr() == (3, (3,))


@pytest.mark.requirement("D5", "D10")
async def test_a_new_broker_is_told_everything_and_the_others_about_it(bench: Bench) -> None:
    await bench.start((1, 2), (2, 1), brokers=(1, 2))
    await bench.revive(3)
    assert live_lists(bench) == [((1, 2), (1, 2, 3)), ((3,), (1, 2, 3))]
    everything = [tell.partitions for tell in bench.seen.metadata() if tell.brokers == (3,)]
    assert everything == [(bench.context.describe(TP), bench.context.describe(SECOND))]
    assert bench.seen.leader_and_isr() == []
    assert bench.seen.commits == []


@pytest.mark.requirement("D5", "D10")
async def test_a_broker_that_returns_is_told_what_it_holds_after_who_is_alive(bench: Bench) -> None:
    await bench.start((1, 2), (2, 1))
    await bench.kill(2)
    bench.seen.clear()
    await bench.revive(2)
    kinds = [type(tell) for tell in bench.seen.published]
    assert kinds.index(TellMetadata) < kinds.index(Order)
    assert [(tell.brokers, tell.state.partition) for tell in bench.seen.leader_and_isr()] == [((2,), 0), ((2,), 1)]
    assert bench.context.replica_phases[TP, 2] is ReplicaPhase.ONLINE


@pytest.mark.requirement("D5", "D10")
async def test_the_others_are_told_that_a_replica_is_back_before_it_is_in_sync(bench: Bench) -> None:
    await bench.start((1, 2, 3), brokers=(1, 2, 3))
    await bench.kill(3)
    assert bench.seen.latest_metadata(TP).offline_replicas == (3,)
    bench.seen.clear()
    await bench.revive(3)
    told = [(tell.brokers, state.offline_replicas) for tell in bench.seen.metadata() for state in tell.partitions]
    assert told == [((1, 2), ()), ((3,), ())]


@pytest.mark.requirement("D5")
async def test_a_bounced_broker_leaves_the_isr_and_is_told_everything(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    epoch = bench.context.brokers[1].epoch
    # Faster than the controller looks: KAFKA-7235.
    await bench.unregister(1)
    await bench.register(1)
    await bench.handle(BrokerChange())
    assert bench.context.brokers[1].epoch > epoch
    assert await bench.leader_and_isr() == (2, (2, 3))
    to_the_new = [tell for tell in bench.seen.leader_and_isr() if 1 in tell.brokers]
    assert to_the_new[-1].state == bench.context.describe(TP)
    assert bench.context.replica_phases[TP, 1] is ReplicaPhase.ONLINE


@pytest.mark.requirement("D5")
async def test_a_bounced_broker_that_is_the_whole_isr_leads_again(bench: Bench) -> None:
    await bench.start((1,))
    await bench.unregister(1)
    await bench.register(1)
    await bench.handle(BrokerChange())
    assert await bench.leader_and_isr() == (1, (1,))
    assert bench.context.partition_phases[TP] is PartitionPhase.ONLINE


@pytest.mark.requirement("D5")
async def test_a_dead_broker_is_told_to_everyone_even_if_it_held_nothing(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2, 3))
    await bench.kill(3)  # KAFKA-13225
    assert live_lists(bench) == [(None, (1, 2))]
    assert bench.seen.commits == []


async def test_nothing_happens_when_nothing_changed(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.handle(BrokerChange())
    assert bench.seen.published == []
    assert bench.seen.rounds == []


@pytest.mark.requirement("D5", "D8")
async def test_a_broker_brings_online_what_could_not_have_a_leader(bench: Bench) -> None:
    await bench.start(brokers=(3,))
    await bench.write_topic("orders", (1, 2))
    await bench.handle(TopicChange())
    assert bench.context.partition_phases[TP] is PartitionPhase.NEW
    await bench.revive(2)
    state = await bench.read_state(TP)
    assert (state.leader, state.leader_epoch, state.isr) == (2, 0, (2,))
    assert [tell.brokers for tell in bench.seen.leader_and_isr() if tell.is_new] == [(2,)]


async def test_a_replica_that_a_move_adds_is_new_to_its_broker_until_it_has_caught_up(bench: Bench) -> None:
    """KAFKA-10314; but one that is in the ISR has a log, which must not be made anew where it cannot be read."""
    await bench.begin_move((1, 2), (4, 5))
    assert told_as_new(bench) == {4, 5}
    await bench.alter_isr(TP, 1, 2, 4)
    bench.seen.clear()
    await bench.fail_over()
    assert told_as_new(bench) == {5}
    told = [tell for tell in bench.seen.leader_and_isr() if 5 in tell.brokers]
    assert all(tell.is_new for tell in told), "a broker that lost a directory would refuse it"
    bench.seen.clear()
    await bench.move(TP, (4, 6))
    assert told_as_new(bench) == {6}


def told_as_new(bench: Bench) -> set[int]:
    return {broker_id for tell in bench.seen.leader_and_isr() if tell.is_new for broker_id in tell.brokers}


@pytest.mark.requirement("D5")
async def test_brokers_that_return_hear_of_replicas_that_are_still_offline(bench: Bench) -> None:
    await bench.start((1,), brokers=(1, 2, 3))
    await bench.kill(1, 2, 3)
    for returning in (2, 3):
        bench.seen.clear()
        await bench.revive(returning)
        [told] = [tell for tell in bench.seen.metadata() if tell.brokers == (returning,)]
        [state] = told.partitions
        assert (state.leader, state.isr, state.replicas, state.offline_replicas) == (NO_LEADER, (1,), (1,), (1,))


@pytest.mark.requirement("E2")
async def test_a_broker_that_failed_at_the_metadata_is_told_everything_unless_it_is_another_by_then(
    bench: Bench,
) -> None:
    await bench.start((1, 2))
    told: list[ControllerEvent] = []
    epoch = bench.context.brokers[2].epoch
    request = UpdateMetadataRequest(1001, 1, epoch, bench.context.controller, None, ())
    for error in (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.INVALID_REQUEST):
        BrokerResponses(told.append).take(2, request, ApiError(error))
    assert told == [OrderFailed(2, epoch)]
    [(_, again)] = alarms.alarms(bench.context, told[0])
    bench.seen.clear()
    await bench.handle(again)
    [told_again] = bench.seen.metadata()
    assert (told_again.brokers, told_again.live_brokers) == ((2,), bench.context.live_brokers())
    assert told_again.partitions == (bench.context.describe(TP),)
    assert told_again.topics == ((TP.topic, bench.context.topic_id(TP.topic)),)
    await bench.kill(2)
    bench.seen.clear()
    await bench.handle(again)
    await bench.revive(2)
    bench.seen.clear()
    await bench.handle(again)
    assert bench.seen.metadata() == []


@pytest.mark.requirement("E2")
@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST])
async def test_a_broker_of_kafkas_is_told_again_of_what_is_gone(bench: Bench, error: ErrorCode) -> None:
    await bench.start((1, 2))
    here = bench.context.describe(TP)
    gone = replace(here, topic="returns", leader=LEADER_DURING_DELETE)
    deleted = replace(here, leader=LEADER_DURING_DELETE)
    told: list[ControllerEvent] = []
    epoch = bench.context.brokers[2].epoch
    request = UpdateMetadataRequest(1001, 1, epoch, bench.context.controller, None, (here, gone, deleted))
    BrokerResponses(told.append, are_kafkas=True).take(2, request, ApiError(error))
    again = [event for _, event in alarms.alarms(bench.context, told[0])]
    assert again == [OrdersResend(2, epoch), DeletionsResend(2, epoch, (gone, deleted))]
    bench.seen.clear()
    await bench.handle(again[1])
    [told_again] = bench.seen.metadata()
    assert (told_again.brokers, told_again.partitions) == ((2,), (gone,))
    bench.seen.clear()
    await bench.handle(DeletionsResend(2, epoch, (deleted,)))
    await bench.handle(DeletionsResend(2, epoch - 1, (gone,)))
    assert bench.seen.metadata() == []
