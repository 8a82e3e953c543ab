"""Events of thousands of partitions, which reach each broker in few requests although their commits are many."""

from __future__ import annotations

from typing import Final

import pytest
import trio

from controller.events import BrokerChange, ControllerEvent, RequestEvent
from controller.model.rounds import TellMetadata
from controller.node.round_runner import RoundRunner
from controller.observation.observer import CommittedRound, Observer
from tests.channels.controller_side import open_channels, registered
from tests.channels.scripted_broker import MemoryNetwork, ScriptedBroker
from tests.controller.conftest import Bench
from transport.messages import ControlledShutdownRequest, LeaderAndIsrRequest, Request, UpdateMetadataRequest

PARTITIONS: Final = 5_000
CHUNKS: Final = PARTITIONS // 500
LEAVING: Final = 1
STAYING: Final = (2, 3)


class Commits(Observer):
    """Counts commits."""

    def __init__(self) -> None:
        self.count = 0

    def committed(self, commit: CommittedRound) -> None:
        """Count a commit."""
        self.count += len(commit.partitions) > 0


def partitions_in(request: Request[object]) -> int:
    """Return the number of partitions that a request is about."""
    assert isinstance(request, (LeaderAndIsrRequest, UpdateMetadataRequest))
    return len(request.partitions)


@pytest.mark.requirement("D10", "E2")
@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize("is_dead", [True, False], ids=["loss", "controlled shutdown"])
async def test_the_elections_of_a_large_event_are_told_in_one_request_of_each_kind(
    bench: Bench, nursery: trio.Nursery, *, is_dead: bool
) -> None:
    await bench.start(*[(LEAVING, *STAYING)] * PARTITIONS, brokers=(LEAVING, *STAYING))
    brokers = {broker_id: ScriptedBroker() for broker_id in STAYING}
    network = MemoryNetwork(nursery, {9000 + broker_id: broker.handle for broker_id, broker in brokers.items()})
    near, commits = open_channels(nursery, network), Commits()
    for broker_id in STAYING:
        near.channels.follow(registered(9000 + broker_id, broker_id=broker_id))
    bench.runner = RoundRunner(bench.store, bench.context, near.channels, commits)
    # With open connections, what is published leaves at once.
    near.channels.publish([TellMetadata(None, (), bench.context.live_brokers())])
    await near.wait_for(len(STAYING))

    event: ControllerEvent = BrokerChange()
    if is_dead:
        await bench.unregister(LEAVING)
    else:
        event = RequestEvent(ControlledShutdownRequest(LEAVING, bench.context.brokers[LEAVING].epoch))
    await bench.handle(event)
    await trio.sleep(1)  # until all is quiet

    assert {state.leader for state in bench.context.leadership.values()} == {STAYING[0]}
    assert commits.count == CHUNKS
    for broker in brokers.values():
        told = [request for request in broker.received if partitions_in(request)]
        assert [type(request) for request in told] == [LeaderAndIsrRequest, UpdateMetadataRequest]
        assert [partitions_in(request) for request in told] == [PARTITIONS, PARTITIONS]
