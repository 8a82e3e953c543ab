"""Channels to brokers that do not answer as they should."""

from __future__ import annotations

from itertools import groupby

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.channels.controller_side import lead, leader_and_isr, open_channels, registered, state
from tests.channels.scripted_broker import Act, MemoryNetwork, ScriptedBroker, listen
from transport.errors import ApiError, ErrorCode
from transport.messages import LeaderAndIsrResponse
from transport.network import TcpNetwork

FAILURES = [
    Act.NEVER_ANSWER,
    Act.ANSWER_LATE,
    Act.ANSWER_GARBAGE,
    Act.ANSWER_ANOTHER_REQUEST,
    Act.CLOSE_BEFORE_THE_ANSWER,
    Act.CLOSE_WITHIN_THE_ANSWER,
]
FIRST, AGAIN, OTHER = state(0), state(0, leader_epoch=1), state(1)
TIMEOUT_SECONDS = 40


@pytest.mark.requirement("E2")
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_request_without_its_answer_is_sent_again_before_what_merged_behind_it(
    nursery: trio.Nursery, failure: Act
) -> None:
    broker = ScriptedBroker([failure])
    near = open_channels(nursery, TcpNetwork(), request_timeout_ms=200, broker_at=await listen(nursery, broker))
    near.channels.publish(lead(FIRST))
    await broker.has_received(1)
    near.channels.publish(lead(OTHER, AGAIN))
    with capture_logs() as logs:
        assert await near.wait_for(2) == [leader_and_isr(FIRST), leader_and_isr(OTHER, AGAIN)]
    # A slow machine may let more requests time out, but none may come out of turn.
    assert [each for each, _ in groupby(broker.received)] == [leader_and_isr(FIRST), leader_and_isr(OTHER, AGAIN)]
    assert broker.received[1] == leader_and_isr(FIRST)
    assert broker.connections >= 2
    assert {log["event"] for log in logs if log["log_level"] != "debug"} == {"trying again"}


@pytest.mark.parametrize("failure", [Act.NEVER_ANSWER, Act.ANSWER_LATE])
async def test_an_answer_is_waited_for_as_long_as_configured(
    nursery: trio.Nursery, autojump_clock: MockClock, failure: Act
) -> None:
    broker = ScriptedBroker([failure] * 5)
    network = MemoryNetwork(nursery, {9091: broker.handle})
    near = open_channels(nursery, network, request_timeout_ms=1000 * TIMEOUT_SECONDS, broker_at=9091)
    began = autojump_clock.current_time()
    near.channels.publish(lead(FIRST))
    assert await near.wait_for(1) == [leader_and_isr(FIRST)]
    assert broker.received == [leader_and_isr(FIRST)] * 6
    # Five times a time-out and a back-off of up to 2 seconds.
    assert 5 * TIMEOUT_SECONDS < autojump_clock.current_time() - began < 5 * (TIMEOUT_SECONDS + 2)
    assert near.answers == [(leader_and_isr(FIRST), LeaderAndIsrResponse(()))]


@pytest.mark.usefixtures("autojump_clock")
async def test_an_answer_too_many_is_not_taken_for_that_to_the_next_request(nursery: trio.Nursery) -> None:
    broker = ScriptedBroker([Act.ANSWER_TWICE])
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: broker.handle}), broker_at=9091)
    for request, told in enumerate((FIRST, AGAIN, OTHER), 1):
        near.channels.publish(lead(told))
        await near.wait_for(1)
        assert [each for each, _ in near.answers] == [leader_and_isr(s) for s in (FIRST, AGAIN, OTHER)[:request]]
    # The second answer to the first request was not taken for that of the second one, which so was sent twice.
    assert broker.received == [leader_and_isr(FIRST), *[leader_and_isr(AGAIN)] * 2, leader_and_isr(OTHER)]
    assert broker.connections == 2


@pytest.mark.usefixtures("autojump_clock")
async def test_a_peer_that_accepts_and_says_nothing_is_given_up_in_time_and_tried_again(nursery: trio.Nursery) -> None:
    broker = ScriptedBroker()
    silent = 3

    async def begin_silent(stream: trio.abc.Stream) -> None:
        if len(network.attempts) > silent:
            await broker.handle(stream)
        while await stream.receive_some():
            pass

    network = MemoryNetwork(nursery, {9091: begin_silent})
    near = open_channels(nursery, network, connect_timeout_ms=1000 * TIMEOUT_SECONDS, broker_at=9091)
    near.channels.publish(lead(FIRST))
    assert await near.wait_for(1) == [leader_and_isr(FIRST)]
    assert broker.received == [leader_and_isr(FIRST)]
    pauses = [later - earlier for earlier, later in zip(network.attempts, network.attempts[1:], strict=False)]
    assert len(pauses) == silent
    assert all(TIMEOUT_SECONDS < pause < TIMEOUT_SECONDS + 2 for pause in pauses)


@pytest.mark.usefixtures("autojump_clock")
async def test_nobody_there_is_tried_again_with_back_off_of_two_seconds_at_most(nursery: trio.Nursery) -> None:
    broker = ScriptedBroker()
    network = MemoryNetwork(nursery)
    near = open_channels(nursery, network, broker_at=9091)
    near.channels.publish(lead(FIRST))
    await trio.sleep(3600)
    assert 1800 <= len(network.attempts) <= 3700
    near.channels.publish(lead(OTHER))
    network.brokers[9091] = broker.handle
    # The first request was made when there was nothing else to tell.
    assert await near.wait_for(2) == broker.received == [leader_and_isr(FIRST), leader_and_isr(OTHER)]


async def test_a_refusal_is_an_answer(nursery: trio.Nursery, autojump_clock: MockClock) -> None:  # noqa: ARG001
    broker = ScriptedBroker([Act.REFUSE])
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: broker.handle}), broker_at=9091)
    near.channels.publish(lead(FIRST))
    await near.wait_for(1)
    near.channels.publish(lead(OTHER))
    assert await near.wait_for(1) == broker.received == [leader_and_isr(FIRST), leader_and_isr(OTHER)]
    refusal = near.answers[0][1]
    assert isinstance(refusal, ApiError)
    assert refusal.code is ErrorCode.STALE_BROKER_EPOCH
    assert broker.connections == 1


async def test_a_peer_that_fails_holds_up_nobody_else(nursery: trio.Nursery, autojump_clock: MockClock) -> None:  # noqa: ARG001
    broken, well = ScriptedBroker([Act.NEVER_ANSWER] * 100), ScriptedBroker()
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: broken.handle, 9092: well.handle}), broker_at=9091)
    near.channels.follow(registered(9092, broker_id=2))
    near.channels.publish([*lead(FIRST), *lead(FIRST, to=2)])
    await near.wait_for(1)
    near.channels.publish(lead(OTHER, to=2))
    assert await near.wait_for(1) == well.received == [leader_and_isr(FIRST), leader_and_isr(OTHER)]
    assert broken.received == [leader_and_isr(FIRST)]
