"""Brokers that never answer, never read, answer garbage or flap: a controller on sockets continues without them."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from attrs import define
from structlog.testing import capture_logs

import klamm
from controller.node.service import ControllerService
from tests.channels.scripted_broker import Act, ScriptedBroker, listen
from tests.cluster.waiting import until
from transport.host import Host
from transport.messages import LeaderAndIsrRequest, UpdateMetadataRequest
from transport.metadata import BrokerRegistration, ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import Create, Delete, ensure_paths

TOPIC = "a-topic-with-a-name-of-some-length" * 5
PARTITIONS = 500
ALWAYS = 100_000
WELL, MUTE, GARBAGE, OTHERS_ANSWERS, DEAF, FLAPPING = 1, 2, 3, 4, 5, 6
SICK = {
    MUTE: Act.NEVER_ANSWER,
    GARBAGE: Act.ANSWER_GARBAGE,
    OTHERS_ANSWERS: Act.ANSWER_ANOTHER_REQUEST,
}


@define
class Estate:
    """A controller, its store, and brokers that do as they like."""

    store: MemoryStore
    service: ControllerService
    brokers: dict[int, ScriptedBroker]
    ports: dict[int, int]

    async def register(self, broker_id: int) -> int:
        """Register a broker, anew if it is registered; return its epoch."""
        data = formats.encode_broker(BrokerRegistration(broker_id, "127.0.0.1", self.ports[broker_id], -1), 0)
        path = paths.broker(broker_id)
        [found] = await self.store.read([path])
        gone = [] if found is None else [Delete(path)]
        return (await self.store.multi([*gone, Create(path, data, ephemeral=True)])).zxid

    async def unregister(self, broker_id: int) -> None:
        await self.store.multi([Delete(paths.broker(broker_id))])

    def told(self, broker_id: int, broker_epoch: int | None = None) -> dict[int, int]:
        """Return the leader epoch of each partition that a broker was told to lead or follow."""
        return {
            item.state.partition: item.state.leader_epoch
            for request in self.brokers[broker_id].received
            if isinstance(request, LeaderAndIsrRequest) and broker_epoch in (None, request.broker_epoch)
            for item in request.partitions
        }

    def waiting(self) -> dict[int, int]:
        """Return how much waits for each broker."""
        office = self.service._office  # noqa: SLF001 - what metrics are made of
        assert office is not None
        return office.channels.queue_sizes()


async def deaf(_: trio.abc.Stream) -> None:
    """Accept, and never read."""
    await trio.sleep_forever()


async def open_estate(nursery: trio.Nursery, store: MemoryStore, zookeeper: MemoryZooKeeper) -> Estate:
    brokers = {id_: ScriptedBroker(ALWAYS * [act]) for id_, act in SICK.items()}
    brokers |= {WELL: ScriptedBroker(), FLAPPING: ScriptedBroker()}
    ports = {id_: await listen(nursery, broker) for id_, broker in brokers.items()}
    ports[DEAF] = await nursery.start(TcpNetwork().serve, deaf, "127.0.0.1", 0)
    config = klamm.ControllerConfig(1001, request_timeout_ms=200, controller_socket_timeout_ms=200)
    running = partial(klamm.run, config, open_store=zookeeper.session)
    estate = Estate(store, await nursery.start(running), brokers, ports)
    await ensure_paths(store, paths.PERSISTENT)
    for id_ in ports:
        await estate.register(id_)
    partitions = {number: ReplicaAssignment((FLAPPING, WELL, *SICK, DEAF)) for number in range(PARTITIONS)}
    await store.multi([Create(paths.topic(TOPIC), formats.encode_topic(formats.TopicZnode(partitions, "id")))])
    return estate


@pytest.mark.requirement("D5", "E2")
async def test_a_controller_goes_on_with_brokers_that_misbehave() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    with capture_logs(), trio.fail_after(100):
        async with zookeeper.session() as store, trio.open_nursery() as nursery:
            estate = await open_estate(nursery, store, zookeeper)
            await the_well_one_hears_of_every_failure(estate)
            await the_flapping_one_is_told_everything_under_its_last_epoch(estate)
            await the_sick_hear_the_newest_when_they_are_well(estate)
            nursery.cancel_scope.cancel()


async def the_well_one_hears_of_every_failure(estate: Estate) -> None:
    await until_told(estate, WELL, 0)
    # The first one leads, and each leaves the ISR, which raises the leader epoch.
    for epoch, failing in enumerate((FLAPPING, *SICK, DEAF), 1):
        await estate.unregister(failing)
        await until_told(estate, WELL, epoch)
        await estate.register(failing)
        # For each partition what it is, and what is known of it; and who is alive.
        assert max(estate.waiting().values()) <= 2 * PARTITIONS + 1


async def until_told(estate: Estate, broker_id: int, leader_epoch: int) -> None:
    async def is_told() -> bool:
        told = estate.told(broker_id)
        return len(told) == PARTITIONS and min(told.values()) >= leader_epoch

    await until(is_told)


async def the_flapping_one_is_told_everything_under_its_last_epoch(estate: Estate) -> None:
    """KAFKA-7235: it comes back faster than the watch can show that it was away."""
    for _ in range(50):
        epoch = await estate.register(FLAPPING)

    async def is_told() -> bool:
        return len(estate.told(FLAPPING, epoch)) == PARTITIONS

    await until(is_told)
    assert sorted(estate.waiting()) == sorted(estate.ports)
    tasks = estate.service._nursery.child_tasks  # noqa: SLF001
    named = [task.name for task in tasks if task.name.startswith("broker-")]
    assert len(named) == len(estate.ports), "a channel outlived its broker"


async def the_sick_hear_the_newest_when_they_are_well(estate: Estate) -> None:
    for sick in SICK:
        estate.brokers[sick].script = ()

    async def all_know_the_same() -> bool:
        newest = estate.told(WELL)
        return all(estate.told(sick) == newest for sick in SICK) and not any(estate.waiting()[sick] for sick in SICK)

    await until(all_know_the_same)
    for sick in SICK:
        assert isinstance(estate.brokers[sick].received[-1], LeaderAndIsrRequest | UpdateMetadataRequest)
