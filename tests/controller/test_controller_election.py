"""The election of the controller: one session's ephemeral znode, and an epoch that each election raises."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
from attrs import define

from controller.model.election_results import Standby, Won
from controller.node.controller_election import elect, register_endpoint, resign
from tests.controller.meddler import Meddler
from tests.kit.passing_store import PassingStore
from transport.messages import BrokerEndpoint
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import (
    ConnectionLost,
    Create,
    Delete,
    MetadataStore,
    Op,
    Set,
    StoreEvent,
    WatchFired,
    WatchKind,
    Znode,
    ensure_paths,
)

NOW_MS = 1_700_000_000_000


@pytest.fixture
async def zookeeper() -> MemoryZooKeeper:
    zookeeper = MemoryZooKeeper(lambda: NOW_MS)
    async with zookeeper.session() as store:
        await ensure_paths(store, paths.PERSISTENT)
    return zookeeper


@pytest.fixture
async def store(zookeeper: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    async with zookeeper.session() as session:
        yield session


@pytest.fixture
async def other(zookeeper: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    async with zookeeper.session() as session:
        yield session


async def read(store: MemoryStore, path: str) -> Znode | None:
    [found] = await store.read([path])
    return found


async def znode(store: MemoryStore, path: str) -> Znode:
    found = await read(store, path)
    assert found is not None
    return found


@pytest.mark.requirement("D1")
async def test_the_first_controller_has_epoch_1_at_version_1(store: MemoryStore) -> None:
    assert await elect(store, 1001, NOW_MS) == Won(epoch=1, version=1)
    holder, epoch = await store.read([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
    assert holder is not None
    assert epoch is not None
    assert holder.stat.ephemeral_owner == store.session_id
    assert holder.data == b'{"version":2,"brokerid":1001,"timestamp":"1700000000000","kraftControllerEpoch":-1}'
    assert (epoch.data, epoch.stat.version) == (b"1", 1)
    # In one multi (KAFKA-6082).
    assert epoch.stat.mzxid == holder.stat.czxid


@pytest.mark.requirement("D1")
async def test_who_comes_later_stands_by_and_watches(store: MemoryStore, other: MemoryStore) -> None:
    await elect(store, 1001, NOW_MS)
    fired: list[StoreEvent] = []
    other.subscribe(fired.append)
    assert await elect(other, 1002, NOW_MS) == Standby(1001)
    await store.multi([Delete(paths.CONTROLLER)])
    assert fired == [WatchFired(paths.CONTROLLER, WatchKind.DELETED)]
    assert await elect(other, 1002, NOW_MS) == Won(epoch=2, version=2)


@pytest.mark.requirement("D1")
async def test_the_controller_watches_its_own_office(store: MemoryStore, other: MemoryStore) -> None:
    fired: list[StoreEvent] = []
    store.subscribe(fired.append)
    await elect(store, 1001, NOW_MS)
    assert fired == [WatchFired(paths.CONTROLLER, WatchKind.CREATED)]
    fired.clear()
    await elect(store, 1001, NOW_MS)
    await other.multi([Delete(paths.CONTROLLER)])
    assert fired == [WatchFired(paths.CONTROLLER, WatchKind.DELETED)]


@pytest.mark.requirement("D1")
async def test_an_expired_session_makes_room(
    zookeeper: MemoryZooKeeper, store: MemoryStore, other: MemoryStore
) -> None:
    await elect(store, 1001, NOW_MS)
    zookeeper.expire(store.session_id, reconnect=False)
    assert await elect(other, 1002, NOW_MS) == Won(epoch=2, version=2)


@pytest.mark.requirement("D1")
async def test_an_office_that_we_hold_is_held(store: MemoryStore) -> None:
    won = await elect(store, 1001, NOW_MS)
    assert isinstance(won, Won)
    assert await elect(store, 1001, NOW_MS, held=won) == won


@pytest.mark.requirement("D1")
async def test_an_office_of_our_own_session_is_ours_under_a_new_epoch(store: MemoryStore) -> None:
    # KAFKA-13407: we were elected but never saw the answer. What we began then may still be under way.
    await elect(store, 1001, NOW_MS)
    assert await elect(store, 1001, NOW_MS) == Won(epoch=2, version=2)


@pytest.mark.requirement("D1")
async def test_an_office_of_another_session_is_not_ours_even_with_our_id(
    zookeeper: MemoryZooKeeper, store: MemoryStore, other: MemoryStore
) -> None:
    await elect(store, 1001, NOW_MS)
    assert await elect(other, 1001, NOW_MS) == Standby(1001)
    zookeeper.expire(store.session_id, reconnect=False)
    assert await elect(other, 1001, NOW_MS) == Won(epoch=2, version=2)


@pytest.mark.requirement("D1")
async def test_the_epoch_outlives_every_controller(zookeeper: MemoryZooKeeper) -> None:
    for epoch in (1, 2, 3):
        async with zookeeper.session() as session:
            assert await elect(session, 1001, NOW_MS) == Won(epoch, version=epoch)


@pytest.mark.requirement("D1")
async def test_an_election_whose_answer_is_lost_is_won_after_all(
    zookeeper: MemoryZooKeeper, store: MemoryStore
) -> None:
    def break_connection(event: StoreEvent) -> None:
        if event == WatchFired(paths.CONTROLLER, WatchKind.CREATED):
            zookeeper.disconnect(store.session_id)

    store.subscribe(break_connection)
    with pytest.raises(ConnectionLost):
        await elect(store, 1001, NOW_MS)
    zookeeper.reconnect(store.session_id)
    assert await elect(store, 1001, NOW_MS) == Won(epoch=2, version=2)


@pytest.mark.requirement("D1")
async def test_an_election_that_another_one_wins_meanwhile(store: MemoryStore) -> None:
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"4")])
    faster = Meddler(
        store,
        paths.CONTROLLER,
        [Create(paths.CONTROLLER, formats.encode_controller(1002, NOW_MS)), Set(paths.CONTROLLER_EPOCH, b"5", 0)],
    )
    assert await elect(faster, 1001, NOW_MS) == Standby(1002)


@define
class Overtaken(PassingStore):
    """A session that is deposed by hand, and succeeded by another one, after so many of its reads."""

    successor: MetadataStore
    reads: int

    async def read(self, paths_read: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read, and be deposed if it is time."""
        found = await super().read(paths_read, watch=watch)
        self.reads -= 1
        if self.reads == 0:
            await self.successor.multi([Delete(paths.CONTROLLER)])
            assert await elect(self.successor, 1002, NOW_MS) == Won(epoch=2, version=2)
        return found


@pytest.mark.requirement("D1")
@pytest.mark.parametrize("reads", [1, 2])
async def test_who_is_deposed_while_it_looks_leaves_its_successor_in_office(
    store: MemoryStore, other: MemoryStore, reads: int
) -> None:
    await elect(store, 1001, NOW_MS)
    assert await elect(Overtaken(store, other, reads), 1001, NOW_MS) == Standby(1002)
    assert formats.decode_controller_epoch((await znode(other, paths.CONTROLLER_EPOCH)).data) == 2


@pytest.mark.requirement("D1")
async def test_who_is_deposed_while_it_takes_office_again_is_elected_anew(store: MemoryStore) -> None:
    await elect(store, 1001, NOW_MS)
    assert await elect(Meddler(store, paths.CONTROLLER_EPOCH, [Delete(paths.CONTROLLER)]), 1001, NOW_MS) == Won(2, 2)
    assert (await znode(store, paths.CONTROLLER)).stat.ephemeral_owner == store.session_id


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(
    ("first", "meanwhile", "won"),
    [
        ([], [Create(paths.CONTROLLER_EPOCH, b"4")], Won(epoch=5, version=1)),
        ([Create(paths.CONTROLLER_EPOCH, b"4")], [Set(paths.CONTROLLER_EPOCH, b"7", 0)], Won(epoch=8, version=2)),
    ],
    ids=["is created", "rises"],
)
async def test_an_epoch_that_changes_meanwhile_is_read_again(
    store: MemoryStore, first: list[Op], meanwhile: list[Op], won: Won
) -> None:
    await store.multi(first)
    assert await elect(Meddler(store, paths.CONTROLLER_EPOCH, meanwhile), 1001, NOW_MS) == won


@pytest.mark.requirement("D12")
async def test_who_resigns_makes_room_at_once(store: MemoryStore, other: MemoryStore) -> None:
    won = await elect(store, 1001, NOW_MS)
    assert isinstance(won, Won)
    await resign(store, won)
    assert await read(store, paths.CONTROLLER) is None
    assert await elect(other, 1002, NOW_MS) == Won(epoch=2, version=2)


@pytest.mark.requirement("D12")
async def test_who_was_deposed_cannot_resign_its_successor(
    zookeeper: MemoryZooKeeper, store: MemoryStore, other: MemoryStore
) -> None:
    won = await elect(store, 1001, NOW_MS)
    assert isinstance(won, Won)
    zookeeper.expire(store.session_id)
    await elect(other, 1002, NOW_MS)
    await resign(store, won)
    holder = await read(store, paths.CONTROLLER)
    assert holder is not None
    assert formats.decode_controller(holder.data) == 1002


@pytest.mark.requirement("D12")
async def test_resigning_twice_is_no_fault(store: MemoryStore) -> None:
    won = await elect(store, 1001, NOW_MS)
    assert isinstance(won, Won)
    await resign(store, won)
    await resign(store, won)


async def test_a_controller_announces_where_it_listens_as_long_as_its_session_lasts(
    zookeeper: MemoryZooKeeper, store: MemoryStore, other: MemoryStore
) -> None:
    endpoint, later = BrokerEndpoint(1001, "h1", 9000), BrokerEndpoint(1001, "h2", 9001)
    path = paths.controller_endpoint(1001)
    for _ in range(2):
        await register_endpoint(store, endpoint)
        found = await read(store, path)
        assert found is not None
        assert formats.decode_controller_endpoint(1001, found.data) == endpoint
    # A restart does not wait for the earlier session to expire (KAFKA-7165).
    await register_endpoint(other, later)
    zookeeper.expire(store.session_id, reconnect=False)
    found = await read(other, path)
    assert found is not None
    assert formats.decode_controller_endpoint(1001, found.data) == later
    zookeeper.expire(other.session_id)
    assert await read(other, path) is None
