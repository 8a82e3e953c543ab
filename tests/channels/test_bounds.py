"""The queue for a broker: bounded by what exists, and sent in few requests."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Final

import pytest
import trio
from msgspec.structs import replace
from structlog.testing import capture_logs
from trio.testing import MockClock

from controller.model.rounds import Publication, TellMetadata
from tests.channels.controller_side import BROKER, ENDPOINT, know, lead, open_channels, state, stop
from tests.channels.scripted_broker import MemoryNetwork, ScriptedBroker, listen
from tests.kit.told import tell_stop
from transport.messages import LeaderAndIsrRequest, StopReplicaPartition, StopReplicaRequest, UpdateMetadataRequest
from transport.network import TcpNetwork

PARTITIONS: Final = 100
BURST: Final = 20_000
SLACK_BLOCKS: Final = BURST // 20
"""A channel that kept one block of memory for each change of a single burst would use up twenty times as many."""


def changes(first_epoch: int, count: int) -> Iterator[Publication]:
    """Yield changes of all kinds in turn, with a state of its own for every five of them; epochs rise."""
    for epoch in range(first_epoch, first_epoch + count // 5):
        new = state(epoch % PARTITIONS, epoch)
        yield deletion(new.partition)
        yield from lead(new)
        yield from know(new)
        yield from stop(replace(new, partition=PARTITIONS + new.partition))  # a partition that is only ever stopped
        yield TellMetadata(None, (), (replace(ENDPOINT, port=epoch),))


def deletion(partition: int) -> Publication:
    """Tell a broker to delete a replica."""
    return tell_stop((BROKER,), StopReplicaPartition("orders", "id-1", partition, 1, delete=True))


def blocks_in_use() -> int:
    """Count the blocks of memory that Python's objects take."""
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.requirement("E2")
@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize("count", [40_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
async def test_changes_for_a_broker_that_cannot_be_reached_leave_memory_flat(nursery: trio.Nursery, count: int) -> None:
    broker = ScriptedBroker()
    network = MemoryNetwork(nursery)
    near = open_channels(nursery, network, broker_at=9091)
    in_use = []
    for first in range(0, count, BURST):
        for publication in changes(first, BURST):
            near.channels.publish((publication,))
        with capture_logs():
            await trio.sleep(2)  # it tries to connect
        if first in {0, count - BURST}:
            in_use.append(blocks_in_use())
    assert len(network.attempts) >= count // BURST
    assert in_use[1] - in_use[0] < SLACK_BLOCKS

    network.brokers[9091] = broker.handle
    await near.wait_for(6)
    # What has been under way since the first burst, and then the newest of everything, in the order of the kinds.
    _, deleting, alive, leading, knowing, stopping = broker.received
    newest = count - BURST + BURST // 5 - 1
    epochs = list(range(newest - PARTITIONS + 1, newest + 1))
    assert isinstance(deleting, StopReplicaRequest)
    assert sorted(item.partition for item in deleting.partitions) == list(range(PARTITIONS))
    assert isinstance(alive, UpdateMetadataRequest)
    assert alive.live_brokers == (replace(ENDPOINT, port=newest),)
    assert isinstance(leading, LeaderAndIsrRequest)
    assert sorted(item.state.leader_epoch for item in leading.partitions) == epochs
    assert isinstance(knowing, UpdateMetadataRequest)
    assert sorted(known.leader_epoch for known in knowing.partitions) == epochs
    assert isinstance(stopping, StopReplicaRequest)
    assert sorted(item.leader_epoch for item in stopping.partitions) == epochs


@pytest.mark.requirement("D10", "E2")
async def test_three_thousand_changes_during_one_request_leave_in_two_of_each_kind_at_most(
    nursery: trio.Nursery,
) -> None:
    let_go = trio.Event()
    broker = ScriptedBroker(gates={0: let_go})
    near = open_channels(nursery, TcpNetwork(), broker_at=await listen(nursery, broker))
    near.channels.publish(know(state(0)))
    await broker.has_received(1)
    for number in range(750):
        # A recreated partition, one that is stopped, and who is alive: all that makes requests of a kind split.
        near.channels.publish([deletion(number), *lead(state(number, 2)), *know(state(number, 2))])
        near.channels.publish([*stop(state(1000 + number)), TellMetadata(None, (), (replace(ENDPOINT, port=number),))])
    let_go.set()
    _, deleting, alive, leading, knowing, stopping = await near.wait_for(6)
    assert isinstance(deleting, StopReplicaRequest)
    assert [(item.partition, item.delete) for item in deleting.partitions] == [(n, True) for n in range(750)]
    assert isinstance(alive, UpdateMetadataRequest)
    assert (alive.live_brokers, alive.partitions) == ((replace(ENDPOINT, port=749),), ())
    assert isinstance(leading, LeaderAndIsrRequest)
    assert [item.state for item in leading.partitions] == [state(n, 2) for n in range(750)]
    assert isinstance(knowing, UpdateMetadataRequest)
    assert (knowing.live_brokers, knowing.partitions) == (None, tuple(state(n, 2) for n in range(750)))
    assert isinstance(stopping, StopReplicaRequest)
    assert [item.partition for item in stopping.partitions] == list(range(1000, 1750))
    assert broker.received == [request for request, _ in near.answers]
    assert broker.connections == 1


async def test_a_request_has_waited_from_its_first_change_until_it_is_sent(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    let_go = trio.Event()
    broker = ScriptedBroker(gates={0: let_go})
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: broker.handle}), broker_at=9091)
    near.channels.publish(lead(state(0)))
    await broker.has_received(1)
    began = autojump_clock.current_time()
    near.channels.publish(lead(state(1)))
    await trio.sleep(5)
    near.channels.publish(lead(state(2)))
    await trio.sleep(2)
    let_go.set()
    await near.wait_for(2)
    times = near.channels.queue_times()[1]
    assert times.count == 2
    # The first one is sent at once.
    assert 7000 <= times.sum_ms <= 1000 * (autojump_clock.current_time() - began) + 100
