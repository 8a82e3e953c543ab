"""Channels begin and end with the incarnations of brokers, and survive their own faults."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from msgspec.structs import replace
from structlog.testing import capture_logs
from trio.testing import MockClock

from controller.model.facts import BrokerGone
from controller.model.rounds import TellMetadata
from tests.channels.controller_side import (
    BROKER,
    EPOCH,
    ControllerSide,
    know,
    lead,
    leader_and_isr,
    open_channels,
    registered,
    state,
)
from tests.channels.scripted_broker import Act, MemoryNetwork, ScriptedBroker, listen
from transport.messages import LeaderAndIsrRequest, Request
from transport.network import TcpNetwork
from transport.wire import exchange, frame

FIRST, SECOND, THIRD = state(0), state(1), state(2)


def number_of(request: Request[object]) -> int:
    assert isinstance(request, LeaderAndIsrRequest)
    return request.number


@pytest.mark.requirement("D5", "E2")
async def test_a_bounced_broker_gets_nothing_that_was_meant_for_its_former_incarnation(nursery: trio.Nursery) -> None:
    before, after = ScriptedBroker([Act.NEVER_ANSWER]), ScriptedBroker()
    near = open_channels(nursery, TcpNetwork(), broker_at=await listen(nursery, before))
    near.channels.publish(lead(FIRST))
    await before.has_received(1)
    near.channels.publish(lead(SECOND))
    near.channels.follow(registered(await listen(nursery, after), epoch=EPOCH + 1))
    near.channels.publish(lead(THIRD))
    assert await near.wait_for(1) == after.received == [leader_and_isr(THIRD, epoch=EPOCH + 1)]
    await before.is_left()
    assert before.received == [leader_and_isr(FIRST)]


async def test_an_incarnation_that_was_lost_from_sight_gets_orders_with_higher_numbers(nursery: trio.Nursery) -> None:
    broker = ScriptedBroker()
    port = await listen(nursery, broker)
    near = open_channels(nursery, TcpNetwork(), broker_at=port)
    near.channels.publish(lead(FIRST))
    await near.wait_for(1)
    # Somebody damages the registration, and repairs it.
    near.channels.follow(BrokerGone(BROKER))
    near.channels.follow(registered(port))
    near.channels.publish(lead(SECOND))
    assert await near.wait_for(1) == broker.received == [leader_and_isr(FIRST), leader_and_isr(SECOND)]
    assert [number_of(request) for request in broker.received] == [0, 1]
    near.channels.follow(registered(port, epoch=EPOCH + 1))
    near.channels.publish(lead(THIRD))
    await near.wait_for(1)
    assert number_of(broker.received[-1]) == 0


@pytest.mark.usefixtures("autojump_clock")
async def test_a_broker_that_bounces_at_the_same_address_is_called_over_a_new_connection_under_its_new_epoch(
    nursery: trio.Nursery,
) -> None:
    broker = ScriptedBroker([Act.ANSWER, Act.NEVER_ANSWER])
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: broker.handle}), broker_at=9091)
    near.channels.publish(lead(FIRST))
    await near.wait_for(1)
    near.channels.publish(lead(SECOND))
    await broker.has_received(2)
    near.channels.publish(lead(FIRST))
    near.channels.follow(registered(9091, epoch=EPOCH + 1))
    await trio.sleep(1000)
    assert broker.received == [leader_and_isr(FIRST), leader_and_isr(SECOND)]
    near.channels.publish(lead(THIRD))
    await near.wait_for(1)
    assert broker.received[2:] == [leader_and_isr(THIRD, epoch=EPOCH + 1)]
    assert broker.connections == 2


@pytest.mark.requirement("D5")
async def test_a_broker_that_moves_gets_at_its_new_address_what_it_was_not_asked_or_did_not_answer(
    nursery: trio.Nursery,
) -> None:
    before, after = ScriptedBroker([Act.NEVER_ANSWER]), ScriptedBroker()
    near = open_channels(nursery, TcpNetwork(), broker_at=await listen(nursery, before))
    near.channels.publish(lead(FIRST))
    await before.has_received(1)
    near.channels.publish(lead(SECOND))
    near.channels.follow(registered(await listen(nursery, after)))
    near.channels.publish(lead(THIRD))
    assert await near.wait_for(2) == after.received == [leader_and_isr(FIRST), leader_and_isr(SECOND, THIRD)]
    await before.is_left()


async def test_a_broker_that_moves_twice_at_once_or_before_it_was_called_is_called_at_its_last_address(
    nursery: trio.Nursery,
) -> None:
    broker = ScriptedBroker()
    near = open_channels(nursery, TcpNetwork())
    near.channels.follow(registered(1))
    near.channels.follow(registered(2))
    near.channels.publish(lead(FIRST))
    near.channels.follow(registered(await listen(nursery, broker)))
    assert await near.wait_for(1) == broker.received == [leader_and_isr(FIRST)]


@pytest.mark.usefixtures("autojump_clock")
async def test_while_a_former_incarnation_cannot_be_reached_nothing_of_it_reaches_the_new_one(
    nursery: trio.Nursery,
) -> None:
    broker = ScriptedBroker()
    network = MemoryNetwork(nursery)
    near = open_channels(nursery, network, broker_at=9091)
    near.channels.publish(lead(FIRST))
    await trio.sleep(100)
    near.channels.publish(lead(SECOND))
    near.channels.follow(BrokerGone(BROKER))
    near.channels.publish(lead(SECOND))  # it is not alive
    near.channels.follow(registered(9091, epoch=EPOCH + 1))
    network.brokers[9091] = broker.handle
    await trio.sleep(100)
    assert broker.received == []
    near.channels.publish(lead(THIRD))
    assert await near.wait_for(1) == broker.received == [leader_and_isr(THIRD, epoch=EPOCH + 1)]


async def test_a_broker_that_is_gone_is_called_no_more(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    network = MemoryNetwork(nursery)
    near = open_channels(nursery, network, broker_at=9091)
    near.channels.publish(lead(FIRST))
    await trio.sleep(100)
    near.channels.follow(BrokerGone(BROKER))
    left_at = autojump_clock.current_time()
    await trio.sleep(1000)
    assert network.attempts
    assert max(network.attempts) <= left_at


@pytest.mark.usefixtures("autojump_clock")
async def test_closing_drops_what_waits_and_what_comes(nursery: trio.Nursery) -> None:
    calling, trying = ScriptedBroker([Act.NEVER_ANSWER]), ScriptedBroker()
    network = MemoryNetwork(nursery, {9091: calling.handle})
    async with trio.open_nursery() as channels_nursery:
        near = open_channels(channels_nursery, network, broker_at=9091)
        near.channels.follow(registered(9092, broker_id=2))
        near.channels.publish([*lead(FIRST), *lead(FIRST, to=2)])
        await calling.has_received(1)
        near.channels.publish(know(SECOND))
        near.channels.close()
        near.channels.publish(know(THIRD))
        network.brokers[9092] = trying.handle
    # The nursery ended, so no channel is left.
    await trio.sleep(1000)
    assert calling.received == [leader_and_isr(FIRST)]
    assert trying.received == []
    assert near.answers == []


# --- faults -----------------------------------------------------------------------------------------------------


def fail_once_on(near: ControllerSide, fatal: Request[object]) -> None:
    """Let whoever takes the answers fail when that to `fatal` comes."""
    take = near.channels.on_response
    left = [fatal]

    def on_response(broker_id: int, request: Request[object], response: object) -> None:
        take(broker_id, request, response)
        if request in left:
            left.remove(request)
            raise ZeroDivisionError

    near.channels.on_response = on_response


@pytest.mark.usefixtures("autojump_clock")
async def test_a_channel_that_faults_is_started_again_keeps_its_backlog_and_costs_the_others_nothing(
    nursery: trio.Nursery,
) -> None:
    faulty, other = ScriptedBroker(), ScriptedBroker()
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: faulty.handle, 9092: other.handle}))
    fail_once_on(near, leader_and_isr(FIRST))
    near.channels.follow(registered(9091))
    near.channels.follow(registered(9092, broker_id=2, epoch=78))
    faulty.gates[0] = gate = trio.Event()
    near.channels.publish(lead(FIRST))
    await faulty.has_received(1)
    near.channels.publish([*lead(SECOND, state(0, leader_epoch=1)), *lead(THIRD, to=2)])
    await near.wait_for(1)
    with capture_logs() as logs:
        gate.set()
        await near.wait_for(1)
        near.channels.publish(lead(THIRD))
        await near.wait_for(1)
    assert faulty.received == [leader_and_isr(FIRST), leader_and_isr(SECOND, state(0, leader_epoch=1), THIRD)]
    assert faulty.connections == 2
    assert other.received == [leader_and_isr(THIRD, epoch=78)]
    assert other.connections == 1
    told = [(log["event"], log["task"]) for log in logs if log["log_level"] != "debug"]
    assert told == [("restarting after a fault", "broker-1")]


@pytest.mark.usefixtures("autojump_clock")
async def test_a_request_that_cannot_be_sent_costs_one_channel_only_and_goes_with_its_incarnation(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "frame", partial(frame, max_frame_bytes=1_000))
    broker, other = ScriptedBroker(), ScriptedBroker()
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: broker.handle, 9092: other.handle}), broker_at=9091)
    near.channels.follow(registered(9092, broker_id=2, epoch=78))
    near.channels.publish([TellMetadata((BROKER,), (replace(FIRST, topic=1_000 * "x"),)), *lead(FIRST, to=2)])
    await near.wait_for(1)
    with capture_logs() as logs:
        await trio.sleep(3600)
    # Between 30 and 60 seconds apart, after the first few.
    assert 60 <= len(logs) <= 130
    near.channels.follow(registered(9091, epoch=EPOCH + 1))
    near.channels.publish([*lead(SECOND), *lead(SECOND, to=2)])
    await near.wait_for(2)
    assert broker.received == [leader_and_isr(SECOND, epoch=EPOCH + 1)]
    assert other.received == [leader_and_isr(FIRST, epoch=78), leader_and_isr(SECOND, epoch=78)]
