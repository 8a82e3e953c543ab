"""The network of simulations: faults of single requests and of single connections."""

from __future__ import annotations

from collections import Counter

import pytest
import trio

from simulator import scheduling
from simulator.actions.network import DelayRequest, IgnoreConnections, RefuseConnections, ServeConnections, TearRequest
from simulator.actions.requests import CreateTopic, CreateTopics
from simulator.actions.scene import NodeStrike, Strike
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.frames import leadership_request
from simulator.network.network import Door
from simulator.settings import Settings
from simulator.trace import Trace
from tests.simulation.networks import Net, expect_none, hangs, now, received
from transport.messages import AlterPartitionRequest

WHOLE = b"a whole request"


def is_whole(chunk: bytes) -> bool:
    return chunk == WHOLE


# A single request.


async def test_one_request_is_delayed_and_those_behind_it_on_its_connection_wait(world: Net) -> None:
    (a, b), (c, d) = await world.pair(), await world.pair()
    world.network.delay_next("a", "b", is_whole, 5.0)
    start = now()
    await a.send_all(b"other")
    await a.send_all(WHOLE)
    await a.send_all(b"behind")
    await c.send_all(WHOLE)
    soon = round(start + 0.001, 6)
    assert await received(d, 1) == [(soon, WHOLE)]
    late = round(start + 5.001, 6)
    assert await received(b, 3) == [(soon, b"other"), (late, WHOLE), (late, b"behind")]


async def test_a_request_outlives_the_break_that_its_sender_sees(world: Net) -> None:
    a, b = await world.pair()
    world.network.delay_next("a", "b", is_whole, 5.0, breaks=True)
    start = now()
    await a.send_all(WHOLE)
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()
    assert now() == start
    await a.aclose()
    assert await received(b, 1) == [(round(start + 5.001, 6), WHOLE)]
    await b.send_all(b"an answer to nobody")
    assert await received(b, 1) == [(round(start + 10.001, 6), b"")]


async def test_a_torn_request_arrives_in_part_and_both_ends_break(world: Net) -> None:
    a, b = await world.pair()
    world.network.tear_next("a", "b", is_whole)
    await a.send_all(WHOLE)
    part = bytes(await b.receive_some())
    assert WHOLE.startswith(part)
    assert 0 < len(part) < len(WHOLE)
    for end in (a, b):
        with pytest.raises(trio.BrokenResourceError):
            await end.receive_some()
    assert world.deliveries == [], "an observer sees whole requests only"


async def test_what_waits_for_a_request_is_mended_too(world: Net) -> None:
    a, b = await world.pair()
    world.network.tear_next("a", "b", is_whole)
    world.network.mend()
    await a.send_all(WHOLE)
    assert await b.receive_some() == WHOLE


# A single connection, or new ones.


async def test_one_direction_of_a_connection_falls_silent(world: Net) -> None:
    a, b = await world.pair()
    assert world.network.silence_connections("a", "b", one_way=True) == 1
    await a.send_all(b"lost")
    await b.send_all(b"still arrives")
    assert await a.receive_some() == b"still arrives"
    await expect_none(b, 10.0)


async def test_new_connections_are_refused_for_a_while_and_old_ones_stay(world: Net) -> None:
    a, b = await world.pair()
    world.network.set_door("b", Door.REFUSING)
    with pytest.raises(ConnectionRefusedError):
        await world.pair()
    await a.send_all(WHOLE)
    assert await b.receive_some() == WHOLE
    world.network.mend()
    await world.pair()


async def test_connections_are_accepted_and_ignored_for_a_while(world: Net) -> None:
    world.network.set_door("b", Door.SILENT)
    early = await world.network.at("a").connect("b", 9092)
    await early.send_all(WHOLE)
    await trio.sleep(10)
    assert world.accepted == []
    world.network.set_door("b", Door.OPEN)
    await trio.sleep(1)
    assert await world.accepted[0].receive_some() == WHOLE


async def test_ignored_connections_break_when_their_host_dies(world: Net) -> None:
    world.network.set_door("b", Door.SILENT)
    early = await world.network.at("a").connect("b", 9092)
    world.network.cut("b")
    with pytest.raises(trio.BrokenResourceError):
        await early.receive_some()
    world.network.restore("b")
    await world.listen()
    world.network.set_door("b", Door.OPEN)
    assert await hangs(trio.sleep_forever, 1.0)
    assert world.accepted == []


# In a whole cluster.

SETTINGS = Settings(brokers=3, first_controller=101, replica_lag_time=2.0, fetch_wait=0.5, controller_timeout=2.0)


def isr(cluster: SimulatedCluster) -> tuple[int, ...]:
    state = cluster.partition("orders-0")
    return () if state is None else state.isr


def arrivals_of_proposals(*faults: Strike) -> list[int]:
    """Return how often each AlterPartition arrives while a broker leaves an ISR and joins it again."""
    trace = Trace(keep_all=True)

    async def main() -> None:
        async with simulated_cluster(SETTINGS, trace=trace) as cluster:
            await CreateTopics((CreateTopic("orders", ((1, 2, 3),)),)).on(cluster)
            for fault in faults:
                fault.on(cluster)
            cluster.pause(3, keeps_session=True)
            await cluster.produce("orders-0", [b"without 3"])
            await trio.sleep(15)
            await cluster.settle()

    scheduling.run(main, seed=1)
    frames = [entry.what for entry in trace.entries if entry.kind == "frame" and isinstance(entry.what, bytes)]
    asked = Counter(
        request for frame in frames if isinstance(request := leadership_request(frame), AlterPartitionRequest)
    )
    return sorted(asked.values())


def test_a_repeated_request_arrives_twice() -> None:
    assert arrivals_of_proposals() == [1, 1]
    repeated = DelayRequest(1, receivers=101, seconds=3.0, breaks=True, api="AlterPartition")
    assert arrivals_of_proposals(repeated) == [1, 2]


def test_a_request_delayed_for_longer_than_its_timeout_arrives_twice() -> None:
    assert arrivals_of_proposals(DelayRequest(1, receivers=101, seconds=1.0, api="AlterPartition")) == [1, 1]
    assert arrivals_of_proposals(DelayRequest(1, receivers=101, seconds=3.0, api="AlterPartition")) == [1, 2]


def test_a_torn_request_is_sent_again() -> None:
    assert arrivals_of_proposals(TearRequest(1, receivers=101)) == [1, 1]


@pytest.mark.parametrize("fault", [RefuseConnections, IgnoreConnections])
def test_a_controller_that_serves_no_new_connection_hears_nothing_until_it_does(fault: type[NodeStrike]) -> None:
    async def main() -> None:
        async with simulated_cluster(SETTINGS) as cluster:
            await CreateTopics((CreateTopic("orders", ((1, 2, 3),)),)).on(cluster)
            fault(101).on(cluster)
            cluster.pause(3, keeps_session=True)
            with trio.move_on_after(15):
                await cluster.produce("orders-0", [b"without 3"])
            assert isr(cluster) == (1, 2, 3)
            ServeConnections(101).on(cluster)
            await cluster.until(lambda: isr(cluster) == (1, 2))
            await cluster.settle()

    scheduling.run(main, seed=1)
