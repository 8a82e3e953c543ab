"""A row that cannot be encoded is left out: the channel sends the other rows, and continues."""

from __future__ import annotations

import pytest
import trio
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.model.rounds import Publication, TellMetadata
from tests.channels.controller_side import BROKER, know, lead, leader_and_isr, open_channels, registered, state
from tests.channels.scripted_broker import MemoryNetwork, ScriptedBroker
from tests.kit.told import tell_order, tell_stop
from transport.messages import BrokerEndpoint, StopReplicaPartition, StopReplicaRequest, UpdateMetadataRequest

pytestmark = pytest.mark.usefixtures("autojump_clock")

BEYOND = 2**64
"""A number too large for msgpack's integers."""

SOUND, LATER = state(0), state(1)
BAD = replace(state(2), leader_epoch=BEYOND, partition_epoch=BEYOND)
HERE, NOWHERE = BrokerEndpoint(BROKER, "127.0.0.1", 9091), BrokerEndpoint(BEYOND, "127.0.0.1", 9092)
STOPS = [StopReplicaPartition("orders", "id-1", number, 0, delete=True) for number in (0, BEYOND)]

CASES: dict[str, tuple[list[Publication], str]] = {
    "a partition to lead": ([tell_order((BROKER,), each) for each in (BAD, SOUND)], "leader_epoch=184"),
    "a partition to know": (know(BAD, SOUND), "leader_epoch=184"),
    "a broker": ([TellMetadata(None, (), (HERE, NOWHERE)), *know(SOUND)], "BrokerEndpoint"),
    "a topic": ([TellMetadata(None, (SOUND,), topics=(("orders", "id-1"), ("\ud800", "")))], "ud800"),
    "a replica to stop": ([tell_stop((BROKER,), stop) for stop in STOPS], "StopReplicaPartition"),
}


@pytest.mark.parametrize(("published", "hint"), CASES.values(), ids=CASES)
async def test_a_row_that_cannot_be_encoded_is_set_aside_and_the_rest_is_sent(
    nursery: trio.Nursery, published: list[Publication], hint: str
) -> None:
    broker = ScriptedBroker()
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: broker.handle}), broker_at=9091)
    with capture_logs() as logs:
        near.channels.publish(published)
        await near.wait_for(1)
        await trio.sleep(3600)
        near.channels.publish(lead(LATER))
        await near.wait_for(1)
    told = [(log["event"], hint in log["row"]) for log in logs if log["log_level"] != "debug"]
    assert told == [("set aside: a row cannot be sent to a broker", True)]
    first, second = broker.received
    assert second == leader_and_isr(LATER)
    match first:
        case UpdateMetadataRequest():
            assert first.partitions == (SOUND,)
            assert first.live_brokers in (None, (HERE,))
            assert first.topics in (None, (("orders", "id-1"),))
        case StopReplicaRequest():
            assert first.partitions == (STOPS[0],)
        case _:
            assert first == leader_and_isr(SOUND)
    assert broker.connections == 1


async def test_a_request_that_cannot_be_mended_is_dropped_and_the_channel_goes_on(nursery: trio.Nursery) -> None:
    broker = ScriptedBroker()
    near = open_channels(nursery, MemoryNetwork(nursery, {9091: broker.handle}))
    near.channels.endpoint = replace(near.channels.endpoint, host="\ud800")
    near.channels.follow(registered(9091))
    with capture_logs() as logs:
        near.channels.publish([*know(SOUND), *lead(LATER)])
        await near.wait_for(1)
    told = [log["event"] for log in logs if log["log_level"] != "debug"]
    assert told == ["set aside: a request cannot be encoded"]
    assert broker.received == [leader_and_isr(LATER)]
