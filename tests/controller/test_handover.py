"""Handing the office over: releases and orders to take over, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
import trio

from controller.admin.handover import HandoverRefused, TakeOver, release, take_over
from controller.model.election_results import Standby, Won
from tests.kit.kafka_registrations import MIGRATION
from tests.kit.officer import Officer, stand_as_kafka
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.kafka_office import Writer, read_office
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import Create, Delete, ensure_paths

SOON = 5.0

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
async def store(memory: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    async with memory.session() as session:
        await ensure_paths(session, paths.PERSISTENT)
        yield session


@pytest.fixture
async def session(memory: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    async with memory.session() as opened:
        yield opened


async def start(nursery: trio.Nursery, session: MemoryStore, controller_id: int = 1001) -> Officer:
    officer = Officer(session, controller_id)
    await nursery.start(officer.run)
    return officer


async def holder_of(store: MemoryStore) -> tuple[int, Writer]:
    holder = (await read_office(store)).holder
    assert holder is not None
    return holder.controller_id, holder.writer


# --- releases ---------------------------------------------------------------------------------------------------


async def test_a_release_ends_when_kafkas_controller_is_in_office(
    nursery: trio.Nursery, memory: MemoryZooKeeper, store: MemoryStore, session: MemoryStore
) -> None:
    officer = await start(nursery, session)
    async with memory.session() as kafka, memory.session() as third:
        standby = await start(nursery, third, 1002)
        nursery.start_soon(stand_as_kafka, kafka)
        done = await release(store, 0, SOON)
        assert (done.kafka_controller, done.our_id, done.named) == (3, 1001, {})
        await trio.testing.wait_all_tasks_blocked()
        for one in (officer, standby):
            assert one.outcome == Standby(3, "the office was released: `klamm controller take-over` ends this")
        assert (await read_office(store)).epoch == 2, "one election of ours, one of Kafka's"
        nursery.cancel_scope.cancel()


async def test_a_release_needs_no_controller_of_ours(nursery: trio.Nursery, memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as kafka:
        async with memory.session() as session, trio.open_nursery() as inner:
            await start(inner, session)
            nursery.start_soon(stand_as_kafka, kafka)
            inner.cancel_scope.cancel()
        assert await holder_of(store) == (1001, Writer.KLAMM), "it outlives its process"
        assert (await release(store, 0, SOON)).kafka_controller == 3
        nursery.cancel_scope.cancel()


async def test_who_does_not_obey_is_deposed(
    nursery: trio.Nursery,
    memory: MemoryZooKeeper,
    store: MemoryStore,
    session: MemoryStore,
) -> None:
    officer = await start(nursery, session)
    await session.multi([Create(paths.broker(1001), b"{}", ephemeral=True)])
    await trio.testing.wait_all_tasks_blocked()
    officer.is_deaf = True
    async with memory.session() as kafka:
        nursery.start_soon(stand_as_kafka, kafka)
        assert (await release(store, 0, SOON)).kafka_controller == 3
        znodes = await read_office(store)
        assert (znodes.lock, znodes.epoch) == (None, 3), "raised once to fence ours, once by Kafka's election"
        assert await store.read([paths.broker(1001)]) == [None]
        nursery.cancel_scope.cancel()


async def test_a_release_without_brokers_stands_and_is_completed_later(
    nursery: trio.Nursery, memory: MemoryZooKeeper, store: MemoryStore, session: MemoryStore
) -> None:
    await start(nursery, session)
    with pytest.raises(HandoverRefused, match=r"^the office is released, but no broker of Kafka's has taken it"):
        await release(store, 0, SOON)
    with pytest.raises(HandoverRefused, match=r"^the office is released, but no broker of Kafka's has taken it"):
        await release(store, 0, SOON)
    assert (await read_office(store)).holder is None
    async with memory.session() as kafka:
        nursery.start_soon(stand_as_kafka, kafka)
        await trio.testing.wait_all_tasks_blocked()
        assert (await release(store, 0, SOON)).kafka_controller == 3
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("kraft_epoch", "whose"), [(-1, "Kafka"), (5, "KRaft")])
async def test_another_kind_of_controller_is_not_released(store: MemoryStore, kraft_epoch: int, whose: str) -> None:
    holder = b'{"version":2,"brokerid":3,"timestamp":"0","kraftControllerEpoch":%d}' % kraft_epoch
    await store.multi([Create(paths.CONTROLLER, holder), Create(paths.CONTROLLER_EPOCH, b"7")])
    with pytest.raises(HandoverRefused, match=rf"^controller 3 of {whose}'s own is in office: there is nothing"):
        await release(store, 0, SOON)
    assert await store.read([paths.RELEASED]) == [None]


async def test_a_kraft_controller_that_follows_is_named(
    nursery: trio.Nursery, store: MemoryStore, session: MemoryStore
) -> None:
    await start(nursery, session)

    async def follow() -> None:
        await trio.testing.wait_all_tasks_blocked()
        await store.multi([Create(paths.CONTROLLER, b'{"version":2,"brokerid":3000,"kraftControllerEpoch":5}')])

    nursery.start_soon(follow)
    with pytest.raises(HandoverRefused, match=r"^the office is released, but controller 3000 of KRaft's own"):
        await release(store, 0, SOON)
    nursery.cancel_scope.cancel()


async def test_where_nobody_was_in_office_there_is_nothing_to_release(store: MemoryStore) -> None:
    with pytest.raises(HandoverRefused, match="no controller has ever been in office"):
        await release(store, 0, SOON)


async def test_topics_that_name_our_id_are_listed(
    nursery: trio.Nursery, memory: MemoryZooKeeper, store: MemoryStore, session: MemoryStore
) -> None:
    replicas = {"orders": [(1, 2), (1001, 2), (2, 1001)], "events": [(1, 2)], "earlier": [(1002, 1)]}
    await ensure_paths(store, [paths.controller_id(1002), paths.controller_id(1)])
    await store.multi([Create(paths.broker(1), b"{}", ephemeral=True)])
    for name, assigned in replicas.items():
        topic = formats.TopicZnode({number: ReplicaAssignment(ids) for number, ids in enumerate(assigned)})
        await store.multi([Create(paths.topic(name), formats.encode_topic(topic))])
    await store.multi([Create(paths.topic("damage"), b"damage")])
    await start(nursery, session)
    async with memory.session() as kafka:
        nursery.start_soon(stand_as_kafka, kafka)
        assert (await release(store, 0, SOON)).named == {"earlier": (0,), "orders": (1, 2)}
        nursery.cancel_scope.cancel()


# --- orders to take over ----------------------------------------------------------------------------------------


async def test_an_order_ends_when_one_of_ours_is_in_office(
    nursery: trio.Nursery, memory: MemoryZooKeeper, store: MemoryStore, session: MemoryStore
) -> None:
    async with memory.session() as kafka:
        await store.multi([Create(paths.CONTROLLER_EPOCH, b"7")])
        nursery.start_soon(stand_as_kafka, kafka)
        await trio.testing.wait_all_tasks_blocked()
        officer = await start(nursery, session)
        assert isinstance(officer.outcome, Standby)
        assert await take_over(store, 0, SOON) == TakeOver(1001, 9, is_old=False)
        assert await take_over(store, 0, SOON) == TakeOver(1001, 9, is_old=True)
        assert (await read_office(store)).order is None
        # There and back.
        assert (await release(store, 0, SOON)).kafka_controller == 3
        assert await take_over(store, 0, SOON) == TakeOver(1001, 11, is_old=False)
        assert officer.elections == [Won(9, 2), Won(11, 4)]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("was_released", [False, True])
async def test_an_order_that_nobody_carries_out_is_withdrawn(store: MemoryStore, was_released: bool) -> None:
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"7"), Create(paths.controller_endpoint(1001))])
    if was_released:
        await store.multi([Create(paths.RELEASED)])
    with pytest.raises(HandoverRefused, match="and the order is withdrawn: the log of controller 1001 says why"):
        await take_over(store, 0, SOON)
    znodes = await read_office(store)
    assert (znodes.order, znodes.is_released) == (None, was_released)


async def test_an_order_that_is_interrupted_is_withdrawn(nursery: trio.Nursery, store: MemoryStore) -> None:
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"7"), Create(paths.controller_endpoint(1001))])
    nursery.start_soon(partial(take_over, store, 0, SOON))
    await trio.testing.wait_all_tasks_blocked()
    assert (await read_office(store)).order is not None
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await trio.testing.wait_all_tasks_blocked()
        assert (await read_office(store)).order is None


async def test_an_order_needs_a_controller_that_can_carry_it_out(store: MemoryStore) -> None:
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"7")])
    with pytest.raises(HandoverRefused, match="start one with `klamm controller run --kafka`"):
        await take_over(store, 0, SOON)
    await store.multi([Create(paths.MIGRATION, MIGRATION)])
    with pytest.raises(HandoverRefused, match=r"^/migration exists"):
        await take_over(store, 0, SOON)
    assert await store.read([paths.TAKE_OVER]) == [None]


async def test_an_order_that_is_left_over_is_renewed(nursery: trio.Nursery, store: MemoryStore) -> None:
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"7"), Create(paths.controller_endpoint(1001))])
    await store.multi([Create(paths.TAKE_OVER, b"old")])
    nursery.start_soon(partial(take_over, store, 5, SOON))
    await trio.testing.wait_all_tasks_blocked()
    [order] = await store.read([paths.TAKE_OVER])
    assert order is not None
    assert order.data == b'{"version":1,"timestamp":"5"}'
    nursery.cancel_scope.cancel()


async def test_a_release_withdraws_an_order(nursery: trio.Nursery, store: MemoryStore, session: MemoryStore) -> None:
    await start(nursery, session)
    await store.multi([Create(paths.TAKE_OVER)])
    with pytest.raises(HandoverRefused, match="the office is released"):
        await release(store, 0, SOON)
    assert await store.read([paths.TAKE_OVER]) == [None]
    nursery.cancel_scope.cancel()


async def test_a_lock_of_somebody_who_left_does_not_count(store: MemoryStore, session: MemoryStore) -> None:
    """Our `/controller` was removed, and who holds the lock has not noticed yet: it is not in office any more."""
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"7"), Create(paths.controller_endpoint(1001))])
    lock = Create(paths.OFFICE_LOCK, b'{"version":1,"controller":1001}', ephemeral=True)
    await session.multi([lock])
    with pytest.raises(HandoverRefused, match="the order is withdrawn"):
        await take_over(store, 0, SOON)
    await session.multi([Delete(paths.OFFICE_LOCK)])
