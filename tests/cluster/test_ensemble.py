"""Three ZooKeeper servers: a leader killed in the middle of a commit, and a follower that lags behind."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio
from attrs import define

import klamm
from controller.node.service import ControllerService
from tests.cluster.waiting import until
from tests.kit.tcp_relay import TcpRelay, tcp_relay
from tests.kit.zookeeper_ensemble import Ensemble, Server, zookeeper_ensemble
from tests.store.events import CONNECTED, SUSPENDED
from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.commit import commit_chunk
from transport.store.protocol import Check, ConnectionLost, Create, MetadataStore, Set, StoreEvent, Znode
from transport.store.zookeeper import ZooKeeperStore, open_zookeeper

SESSION_MS = 20_000
"""Longer than an ensemble takes to elect a leader on a slow machine."""

BROKERS = (1, 2, 3)


@define
class RelayLine:
    """A relay in front of each server, through which clients reach all of them."""

    relays: list[TcpRelay]

    @property
    def address(self) -> str:
        return ",".join(relay.address for relay in self.relays)

    def lose_answers(self) -> None:
        for relay in self.relays:
            relay.to_client.stall()

    async def answer_is_held(self) -> None:
        """Wait until a server has answered to what nobody will hear."""
        async with trio.open_nursery() as nursery:

            async def wait(relay: TcpRelay) -> None:
                await relay.to_client.held()
                nursery.cancel_scope.cancel()

            for relay in self.relays:
                nursery.start_soon(wait, relay)

    def cut(self) -> None:
        for relay in self.relays:
            relay.cut()


@asynccontextmanager
async def line_to(servers: Sequence[Server]) -> AsyncIterator[RelayLine]:
    async with AsyncExitStack() as stack:
        yield RelayLine([await stack.enter_async_context(tcp_relay(server.port)) for server in servers])


async def read(store: MetadataStore, path: str) -> Znode:
    [znode] = await store.read([path])
    assert znode is not None
    return znode


@pytest.mark.requirement("D1", "D7", "D10", "E1")
async def test_an_ensemble_whose_leader_dies_and_whose_follower_lags(zookeeper: str, tmp_path: Path) -> None:
    assert zookeeper, "the fixture tells that there is a Java to run an ensemble"
    async with zookeeper_ensemble(tmp_path) as ensemble:
        with trio.fail_after(120):
            await commit_while_the_leader_dies(ensemble)
            await take_office_through_a_lagging_follower(ensemble)


# --- a leader that dies -----------------------------------------------------------------------------------------


async def commit_while_the_leader_dies(ensemble: Ensemble) -> None:
    async with line_to(ensemble.servers) as line, open_zookeeper(line.address, session_timeout_ms=SESSION_MS) as store:
        await store.multi([Create("/fence"), Create("/counter", b"0"), Create("/live", ephemeral=True)])
        session_id = store.session_id

        leader = await ensemble.leader()
        line.lose_answers()  # it takes effect, and nobody hears of it
        await commit_while(store, b"1", partial(die_after_the_answer, ensemble, leader, line))
        await ensemble.start_again(leader)

        leader = await ensemble.leader()
        leader.send_signal(signal.SIGSTOP)  # whatever comes to it now is lost
        await commit_while(store, b"2", partial(die_before_it_hears, ensemble, leader, store))
        await ensemble.start_again(leader)

        counter = await read(store, "/counter")
        assert (counter.data, counter.stat.version) == (b"2", 2), "each took effect once"
        assert store.session_id == session_id
        assert (await read(store, "/live")).stat.ephemeral_owner == session_id


async def commit_while(store: MetadataStore, data: bytes, happening: Callable[[], Awaitable[None]]) -> None:
    """Commit `data` to the counter while something happens, and require that it has landed."""
    version = int(data) - 1
    events: list[StoreEvent] = []
    store.subscribe(events.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(happening)
        result = await commit_chunk(store, [[Set("/counter", data, version)]], Check("/fence", 0))
    assert events[:2] == [SUSPENDED, CONNECTED], "the outcome was unknown"
    assert (result.committed, result.conflicts) == ((0,), ())
    assert result.zxid == (await read(store, "/counter")).stat.mzxid


async def die_after_the_answer(ensemble: Ensemble, leader: Server, line: RelayLine) -> None:
    await line.answer_is_held()
    await ensemble.kill(leader)
    line.cut()


async def die_before_it_hears(ensemble: Ensemble, leader: Server, store: ZooKeeperStore) -> None:
    async def is_sent() -> bool:
        return bool(store._session._under_way)  # noqa: SLF001 - nothing else tells

    await until(is_sent)
    await ensemble.kill(leader)


# --- a follower that lags ---------------------------------------------------------------------------------------


async def take_office_through_a_lagging_follower(ensemble: Ensemble) -> None:
    """Let a controller see the world through a follower that stood still while another one decided.

    Its claim of office is a write, which the follower must have caught up with before it answers: so what a controller
    loads is never older than its office, and no read needs a `sync`.
    """
    leader = await ensemble.leader()
    lagging, other = (server for server in ensemble.servers if server is not leader)
    quorum = f"127.0.0.1:{leader.port},127.0.0.1:{other.port}/cluster"
    async with open_zookeeper(quorum, session_timeout_ms=SESSION_MS) as store, trio.open_nursery() as nursery:
        stop_first = trio.CancelScope()
        first = await start(nursery, 1001, quorum, stop_first)
        await until_active(first)
        for broker_id in BROKERS:
            data = formats.encode_broker(BrokerRegistration(broker_id, "127.0.0.1", 1, -1), 0)
            await store.multi([Create(paths.broker(broker_id), data, ephemeral=True)])
        await create(store, "before")
        await until(partial(is_led, store, "before"))

        second = await start(nursery, 1002, f"127.0.0.1:{lagging.port}/cluster")
        lagging.send_signal(signal.SIGSTOP)
        names = [f"meanwhile-{number}" for number in range(50)]
        for name in names:
            await create(store, name)
        for name in names:
            await until(partial(is_led, store, name))
        stop_first.cancel()
        lagging.send_signal(signal.SIGCONT)
        await until_active(second)

        await ensemble.kill(leader)
        await create(store, "after")
        await until(partial(is_led, store, "after"))
        await until_active(second)
        epochs = {(await state_of(store, name)).controller_epoch for name in ("before", *names)}
        assert epochs <= {1, 2}
        office = second._office  # noqa: SLF001 - what it knows
        assert office is not None
        # It took office again only if a request was in flight when the leader died.
        epoch = int((await read(store, paths.CONTROLLER_EPOCH)).data)
        assert office.context.epoch == epoch >= 2, "it holds the office that the store names"
        assert sorted(office.context.topics) == sorted(["before", "after", *names])
        for tp, known in office.context.leadership.items():
            assert known == await state_of(store, tp.topic)
        nursery.cancel_scope.cancel()


async def start(
    nursery: trio.Nursery, controller_id: int, address: str, scope: trio.CancelScope | None = None
) -> ControllerService:
    config = klamm.ControllerConfig(controller_id, zookeeper_connect=address, zookeeper_session_timeout_ms=SESSION_MS)

    async def run(*, task_status: trio.TaskStatus[ControllerService]) -> None:
        with scope or trio.CancelScope():
            await klamm.run(config, task_status=task_status)

    service: ControllerService = await nursery.start(run)
    return service


async def until_active(service: ControllerService) -> None:
    async def is_active() -> bool:
        return service.is_active

    await until(is_active)


async def create(store: MetadataStore, name: str) -> None:
    topic = formats.TopicZnode({0: ReplicaAssignment(BROKERS)}, f"id-of-{name}")
    await commit_chunk(store, [[Create(paths.topic(name), formats.encode_topic(topic))]], None)


async def is_led(store: MetadataStore, name: str) -> bool:
    with suppress(ConnectionLost):
        return await store.read([paths.partition_state(TopicPartition(name, 0))]) != [None]
    return False


async def state_of(store: MetadataStore, name: str) -> LeaderAndIsr:
    tp = TopicPartition(name, 0)
    znode = await read(store, paths.partition_state(tp))
    return formats.decode_partition_state(tp, znode.data, znode.stat.version)
