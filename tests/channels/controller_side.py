"""The controller's end of channels, with real backlogs and connections, and the events that answers cause."""

from __future__ import annotations

import random
from typing import Final

import trio
from attrs import define

from controller.channels.broker_channels import BrokerChannels
from controller.config import ControllerConfig
from controller.model.facts import BrokerRegistered
from controller.model.rounds import Publication, TellMetadata
from tests.kit.told import tell_order, tell_stop
from transport.host import Host
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    PartitionState,
    Request,
    StopReplicaPartition,
)
from transport.metadata import BrokerRegistration
from transport.network import Network

LOOPBACK: Final = "127.0.0.1"
ENDPOINT: Final = BrokerEndpoint(1001, LOOPBACK, 1)
CONTROLLER_EPOCH: Final = 3
BROKER: Final = 1
EPOCH: Final = 77
"""The broker epoch of the incarnation that is registered first."""

Answer = tuple[Request[object], object]


@define
class ControllerSide:
    """The channels of a controller, and the answers that came through them."""

    channels: BrokerChannels
    arrivals: trio.MemoryReceiveChannel[Answer]
    answers: list[Answer]

    async def wait_for(self, count: int) -> list[Request[object]]:
        """Wait for more answers; return the requests that have been answered so far."""
        for _ in range(count):
            await self.arrivals.receive()
        return [request for request, _ in self.answers]


def open_channels(
    nursery: trio.Nursery,
    network: Network,
    *,
    broker_at: int | None = None,
    request_timeout_ms: int = 30_000,
    connect_timeout_ms: int = 30_000,
) -> ControllerSide:
    """Make a controller's channels over a network, and have it know of a broker at this port, if any."""
    arrive, arrivals = trio.open_memory_channel[Answer](1_000)
    answers: list[Answer] = []

    def on_response(_: int, request: Request[object], response: object) -> None:
        answers.append((request, response))
        arrive.send_nowait((request, response))

    config = ControllerConfig(
        ENDPOINT.id, request_timeout_ms=request_timeout_ms, controller_socket_timeout_ms=connect_timeout_ms
    )
    host = Host(lambda: 0, random.Random(1))
    channels = BrokerChannels(nursery, network, host, config, ENDPOINT, CONTROLLER_EPOCH, on_response)
    if broker_at is not None:
        channels.follow(registered(broker_at))
    return ControllerSide(channels, arrivals, answers)


def registered(port: int, *, broker_id: int = BROKER, epoch: int = EPOCH) -> BrokerRegistered:
    """Return the fact that a broker is registered."""
    return BrokerRegistered(BrokerRegistration(broker_id, LOOPBACK, port, epoch))


def state(partition: int, leader_epoch: int = 0) -> PartitionState:
    """Return a state of a partition of the topic `orders`."""
    return PartitionState("orders", "id-1", partition, CONTROLLER_EPOCH, 1, leader_epoch, (1, 2), leader_epoch, (1, 2))


def lead(*states: PartitionState, to: int = BROKER) -> list[Publication]:
    """Tell a broker to lead or follow partitions."""
    return [tell_order((to,), each) for each in states]


def know(*states: PartitionState) -> list[Publication]:
    """Tell every broker of partitions, one at a time."""
    return [TellMetadata(None, (each,)) for each in states]


def stop(*states: PartitionState) -> list[Publication]:
    """Tell a broker to stop replicas."""
    return [
        tell_stop((BROKER,), StopReplicaPartition(s.topic, s.topic_id, s.partition, s.leader_epoch, delete=False))
        for s in states
    ]


def leader_and_isr(*states: PartitionState, epoch: int = EPOCH) -> LeaderAndIsrRequest:
    """Return the request that tells a broker to lead or follow partitions."""
    partitions = tuple(LeaderAndIsrPartition(each, is_new=False) for each in states)
    return LeaderAndIsrRequest(ENDPOINT.id, CONTROLLER_EPOCH, epoch, partitions)
