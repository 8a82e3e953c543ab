"""The office among Kafka's brokers: who takes it, who keeps it, and who stays away."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import count

import pytest
import trio
from attrs import define
from kazoo.client import KazooClient
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.model.election_results import Standby, Won
from controller.node.candidacy import AmongKafka
from controller.node.controller_election import ForeignCluster
from controller.node.kafka_checks import KafkaChecks
from simulator.store.ensemble import SimulatedEnsemble
from tests.controller.meddler import Meddler
from tests.kit.kafka_registrations import MIGRATION, begin_cluster
from tests.kit.passing_store import PassingStore
from transport.kafka.registration import encode_controller
from transport.metadata import BrokerRegistration, Listener
from transport.network import TcpNetwork
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
    children_of,
    ensure_paths,
)
from transport.store.tree import Access
from transport.store.zookeeper import open_zookeeper

NOW_MS = 1_700_000_000_000
KAFKA = 3
"""A broker of Kafka's that is a controller."""

HOLDER = paths.CONTROLLER
OpenStore = Callable[[], AbstractAsyncContextManager[MetadataStore]]
_numbers = count()


@pytest.fixture
def memory() -> MemoryZooKeeper:
    return MemoryZooKeeper(lambda: NOW_MS)


@pytest.fixture(params=["memory", "simulated", "zookeeper"])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    if request.param == "memory":
        return partial(MemoryZooKeeper.session, request.getfixturevalue("memory"))
    if request.param == "simulated":
        # It cuts reads into parts.
        ensemble = SimulatedEnsemble(random.Random(0), lambda: NOW_MS, on_commit=lambda *_: None)
        return lambda: ensemble.session(f"host-{next(_numbers)}", 18.0)
    address = request.getfixturevalue("zookeeper")
    return partial(open_zookeeper, f"{address}/kafka-office-{next(_numbers)}")


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[MetadataStore]:
    async with open_store() as session:
        await ensure_paths(session, paths.PERSISTENT)
        yield session


@pytest.fixture
async def other(open_store: OpenStore) -> AsyncIterator[MetadataStore]:
    async with open_store() as session:
        yield session


def candidate(controller_id: int = 1001) -> AmongKafka:
    return AmongKafka(controller_id, lambda: NOW_MS)


async def read(store: MetadataStore, path: str) -> Znode | None:
    [znode] = await store.read([path])
    return znode


async def is_there(store: MetadataStore, path: str) -> bool:
    return await read(store, path) is not None


def kafka_holder(kraft_epoch: int = -1) -> bytes:
    value = {"version": 2, "brokerid": KAFKA, "timestamp": "0", "kraftControllerEpoch": kraft_epoch}
    return json.dumps(value).encode()


async def elect_kafka(store: MetadataStore, epoch: int = 7) -> None:
    """Take office as a broker of Kafka's does, in a cluster where `epoch` - 1 elections came before."""
    if not await is_there(store, paths.CONTROLLER_EPOCH):
        await store.multi([Create(paths.CONTROLLER_EPOCH, str(epoch - 1).encode())])
    claim = Create(paths.CONTROLLER, kafka_holder(), ephemeral=True)
    await store.multi([claim, Set(paths.CONTROLLER_EPOCH, str(epoch).encode(), -1)])


async def order(store: MetadataStore) -> None:
    await store.multi([Create(paths.TAKE_OVER)])


async def test_the_first_controller_of_a_cluster_holds_a_lock_and_a_controller_that_lasts(store: MetadataStore) -> None:
    assert await candidate().elect(store, None) == Won(1, 1)
    holder, lock, epoch = await store.read([paths.CONTROLLER, paths.OFFICE_LOCK, paths.CONTROLLER_EPOCH])
    assert holder is not None
    assert lock is not None
    assert epoch is not None
    assert (holder.stat.ephemeral_owner, lock.stat.ephemeral_owner) == (0, store.session_id)
    told = json.loads(holder.data)
    assert (told["brokerid"], told["kraftControllerEpoch"], told["version"]) == (1001, -1, 2)
    assert epoch.data == b"1"
    assert epoch.stat.mzxid == holder.stat.czxid == lock.stat.czxid
    assert await store.read([paths.MIGRATION, paths.RELEASED]) == [None, None]


async def test_the_ids_of_all_that_were_in_office_are_kept(open_store: OpenStore, store: MetadataStore) -> None:
    for controller_id in (1001, 1002, 1001):
        async with open_store() as session:
            assert isinstance(await candidate(controller_id).elect(session, None), Won)
    assert await children_of(store, paths.CONTROLLER_IDS) == ["1001", "1002"]


async def test_the_office_that_we_hold_is_held(store: MetadataStore) -> None:
    me = candidate()
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    assert await me.elect(store, won) == won


async def test_another_of_ours_stands_by_and_takes_over_when_the_lock_is_gone(
    open_store: OpenStore, store: MetadataStore
) -> None:
    fired: list[StoreEvent] = []
    store.subscribe(fired.append)
    async with open_store() as first:
        assert await candidate(1001).elect(first, None) == Won(1, 1)
        assert await candidate(1002).elect(store, None) == Standby(1001)
    holder = await read(store, paths.CONTROLLER)
    assert holder is not None, "Kafka's brokers stay away"
    assert WatchFired(paths.OFFICE_LOCK, WatchKind.DELETED) in fired
    assert await candidate(1002).elect(store, None) == Won(2, 2)
    holder = await read(store, paths.CONTROLLER)
    assert holder is not None
    assert (formats.decode_controller(holder.data), holder.stat.ephemeral_owner) == (1002, 0)


async def test_who_resigns_leaves_the_controller_znode(store: MetadataStore, other: MetadataStore) -> None:
    me = candidate()
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    await ensure_paths(store, [paths.controller_endpoint(1002)])
    with capture_logs() as logs:
        await me.resign(store, won)
    assert not logs
    assert await is_there(store, paths.CONTROLLER)
    assert await candidate(1002).elect(other, None) == Won(2, 2)
    await me.resign(store, won)
    assert await is_there(store, paths.OFFICE_LOCK), "it is another controller's by now"


async def registered(store: MetadataStore, controller_id: int = 1001) -> str:
    """Register a controller among brokers, as for those of old releases, and return where."""
    path = paths.broker(controller_id)
    await store.multi([Create(path, encode_controller([Listener("PLAINTEXT", "h", 1)]), ephemeral=True)])
    return path


async def test_who_resigns_is_no_longer_among_the_brokers(store: MetadataStore, other: MetadataStore) -> None:
    me = candidate()
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    path, others = await registered(store), await registered(other, 1002)
    await me.resign(store, won)
    assert not await is_there(store, path)
    assert await is_there(store, others)


async def lose_office(store: MetadataStore, other: MetadataStore, me: AmongKafka) -> Won:
    """Take office, register among the brokers, and have another client raise the epoch."""
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    await registered(store)
    await other.multi([Set(paths.CONTROLLER_EPOCH, b"9", -1)])
    return won


@pytest.mark.parametrize("is_in_office", [False, True])
async def test_who_may_not_stand_again_leaves_the_lock_to_others(
    store: MetadataStore, other: MetadataStore, is_in_office: bool
) -> None:
    checks = KafkaChecks(ControllerConfig(1001, kafka=True), TcpNetwork())
    me = AmongKafka(1001, lambda: NOW_MS, checks)
    await begin_cluster(store)
    won = await lose_office(store, other, me)
    await store.multi([Delete(paths.CLUSTER_ID)])
    fired: list[StoreEvent] = []
    store.subscribe(fired.append)
    for _ in range(2):
        outcome = await me.elect(store, won if is_in_office else None)
        assert isinstance(outcome, Standby)
        assert outcome.reason.startswith("there is no /cluster/id")
    assert await store.read([paths.OFFICE_LOCK, paths.broker(1001)]) == [None, None]
    assert fired.count(WatchFired(paths.OFFICE_LOCK, WatchKind.DELETED)) == 1
    assert await candidate(1002).elect(other, None) == Won(10, 3)
    await me.elect(store, None)
    assert await is_there(store, paths.OFFICE_LOCK), "it is another controller's by now"


async def test_who_finds_brokers_of_another_kind_leaves_the_lock_to_others(
    store: MetadataStore, other: MetadataStore
) -> None:
    me = candidate()
    await lose_office(store, other, me)
    ours = formats.encode_broker(BrokerRegistration(5, "127.0.0.1", 9092, -1), 0)
    await other.multi([Create(paths.broker(5), ours, ephemeral=True)])
    with pytest.raises(ForeignCluster, match="broker 5 is one of Klamm's own"):
        await me.require_kind(store)
    assert await store.read([paths.OFFICE_LOCK, paths.broker(1001)]) == [None, None]


async def test_who_may_no_longer_write_the_epoch_leaves_the_lock_to_others(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as other:
        await ensure_paths(store, paths.PERSISTENT)
        me = candidate()
        won = await lose_office(store, other, me)
        memory.tree.allow(paths.CONTROLLER_EPOCH, Access.READ)
        with pytest.raises(ForeignCluster, match="the office cannot be taken"):
            await me.elect(store, won)
        assert await store.read([paths.OFFICE_LOCK, paths.broker(1001)]) == [None, None]


async def test_who_finds_another_in_office_is_no_longer_among_the_brokers(
    store: MetadataStore, other: MetadataStore
) -> None:
    path = await registered(store)
    assert await candidate(1002).elect(other, None) == Won(1, 1)
    assert await candidate().elect(store, Won(7, 7)) == Standby(1002)
    assert not await is_there(store, path)


async def test_the_last_of_ours_that_resigns_says_that_nobody_governs(store: MetadataStore) -> None:
    me = candidate()
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    with capture_logs() as logs:
        await me.resign(store, won)
    assert [log["event"].partition(":")[0] for log in logs] == ["Kafka's brokers have no controller now"]


async def test_an_answer_that_is_lost_is_an_election_under_one_more_epoch(memory: MemoryZooKeeper) -> None:
    async with memory.session() as session:
        await ensure_paths(session, paths.PERSISTENT)
        await _lose_answer(memory, session)
        before = await read(session, paths.OFFICE_LOCK)
        assert await candidate().elect(session, None) == Won(2, 2)
        assert await read(session, paths.OFFICE_LOCK) == before


async def _lose_answer(memory: MemoryZooKeeper, session: MemoryStore) -> None:
    def break_connection(event: StoreEvent) -> None:
        if event == WatchFired(paths.OFFICE_LOCK, WatchKind.CREATED):
            memory.disconnect(session.session_id)

    unsubscribe = session.subscribe(break_connection)
    with pytest.raises(ConnectionLost):
        await candidate().elect(session, None)
    unsubscribe()
    memory.reconnect(session.session_id)


async def test_an_expired_session_ends_the_office(memory: MemoryZooKeeper) -> None:
    async with memory.session() as first, memory.session() as second:
        await ensure_paths(first, paths.PERSISTENT)
        me = candidate(1001)
        won = await me.elect(first, None)
        assert isinstance(won, Won)
        memory.expire(first.session_id)
        assert await candidate(1002).elect(second, None) == Won(2, 2)
        assert await me.elect(first, won) == Standby(1002)


async def test_a_lock_that_somebody_deletes_is_taken_under_a_new_epoch(store: MetadataStore) -> None:
    me = candidate()
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    await store.multi([Delete(paths.OFFICE_LOCK)])
    assert await me.elect(store, won) == Won(2, 2)


@define
class Torn(PassingStore):
    """A session that reads one znode after the other; something happens once, when `/controller` has been read."""

    happening: Callable[[], Awaitable[object]]
    has_happened: bool = False

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes."""
        found: list[Znode | None] = []
        for path in paths:
            found += await self.store.read([path], watch=watch)
            if path == HOLDER and not self.has_happened:
                self.has_happened = True
                await self.happening()
        return found


async def test_a_controller_of_kafkas_that_is_elected_during_a_read_is_left_in_office(
    open_store: OpenStore, store: MetadataStore, other: MetadataStore
) -> None:
    async with open_store() as first:
        assert await candidate(1001).elect(first, None) == Won(1, 1)

    async def lose_to_kafka() -> None:
        await other.multi([Delete(paths.CONTROLLER)])
        await elect_kafka(other, epoch=2)

    outcome = await candidate(1002).elect(Torn(store, lose_to_kafka), None)
    assert isinstance(outcome, Standby)
    assert outcome.controller_id == KAFKA


async def test_an_election_of_ours_that_lands_during_a_read_is_no_release(
    store: MetadataStore, other: MetadataStore
) -> None:
    await elect_kafka(other)
    await order(other)
    me = candidate()
    assert await me.elect(Torn(store, lambda: me.elect(store, None)), None) == Won(9, 3)
    assert not await is_there(store, paths.RELEASED)


# --- Kafka's controllers ----------------------------------------------------------------------------------------


async def test_a_controller_of_kafkas_is_left_in_office(store: MetadataStore, other: MetadataStore) -> None:
    await elect_kafka(other)
    outcome = await candidate().elect(store, None)
    assert isinstance(outcome, Standby)
    assert outcome.controller_id == KAFKA
    assert outcome.reason.startswith("Kafka's controller 3 is in office, and the office is left to Kafka's brokers")


async def test_an_empty_office_is_left_to_kafkas_brokers(store: MetadataStore, other: MetadataStore) -> None:
    await elect_kafka(other)
    await other.multi([Delete(paths.CONTROLLER)])
    outcome = await candidate().elect(store, None)
    assert isinstance(outcome, Standby)
    assert outcome.controller_id is None
    assert outcome.reason.startswith("no controller is in office, and the office is left to Kafka's brokers")


@pytest.mark.parametrize("is_empty", [False, True])
async def test_an_order_is_carried_out_once(store: MetadataStore, other: MetadataStore, is_empty: bool) -> None:
    await elect_kafka(other)
    fired: list[StoreEvent] = []
    store.subscribe(fired.append)
    await candidate().elect(store, None)
    if is_empty:
        await other.multi([Delete(paths.CONTROLLER)])
    fired.clear()
    await order(other)
    await store.read([paths.CONTROLLER])  # over the same connection, so later than the watch
    assert WatchFired(paths.TAKE_OVER, WatchKind.CREATED) in fired
    assert await candidate().elect(store, None) == Won(8, 2)
    assert not await is_there(store, paths.TAKE_OVER)
    holder = await read(store, paths.CONTROLLER)
    assert holder is not None
    assert formats.decode_controller(holder.data) == 1001


async def test_a_controller_of_kafkas_that_is_elected_meanwhile_is_seen(store: MetadataStore) -> None:
    await elect_kafka(store)
    await order(store)
    again = (Delete(paths.CONTROLLER), Create(paths.CONTROLLER, kafka_holder()), Set(paths.CONTROLLER_EPOCH, b"8", -1))
    faster = Meddler(store, paths.CONTROLLER, again)
    assert await candidate().elect(faster, None) == Won(9, 3)
    assert faster.overtaken == 1


# --- KRaft ------------------------------------------------------------------------------------------------------

MIGRATES: tuple[Op, ...] = (Create(paths.MIGRATION, MIGRATION),)
GOVERNS: tuple[Op, ...] = (Create(paths.CONTROLLER, kafka_holder(kraft_epoch=5)),)


@pytest.mark.parametrize(
    ("ops", "reason"),
    [(MIGRATES, "/migration exists, so a migration to KRaft has begun"), (GOVERNS, "the KRaft controller 3 holds")],
)
async def test_nobody_takes_office_where_kraft_is(store: MetadataStore, ops: tuple[Op, ...], reason: str) -> None:
    await store.multi([*ops, Create(paths.CONTROLLER_EPOCH, b"0")])
    await order(store)
    with pytest.raises(ForeignCluster, match=reason):
        await candidate().require_eligible(store)
    outcome = await candidate().elect(store, None)
    assert isinstance(outcome, Standby)
    assert outcome.reason.startswith(reason)
    epoch = await read(store, paths.CONTROLLER_EPOCH)
    assert epoch is not None
    assert epoch.data == b"0"
    assert not await is_there(store, paths.OFFICE_LOCK)


async def test_a_migration_that_begins_in_the_last_moment_stops_an_election(store: MetadataStore) -> None:
    outcome = await candidate().elect(Meddler(store, paths.CONTROLLER, MIGRATES), None)
    assert isinstance(outcome, Standby)
    assert outcome.reason.startswith("/migration exists")
    assert not await is_there(store, paths.CONTROLLER)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"null", "not a JSON object"),
        (b"{", "not JSON"),
        (b'{"version":0}', "kraft_controller_id must be an integer, is None"),
    ],
)
async def test_a_malformed_migration_is_not_called_one(store: MetadataStore, data: bytes, fault: str) -> None:
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"0"), Create(paths.MIGRATION, data)])
    await order(store)
    with pytest.raises(ForeignCluster) as refusal:
        await candidate().require_eligible(store)
    reason = str(refusal.value)
    assert reason.startswith(f"/migration is malformed, so a migration to KRaft may have begun ({fault}")
    assert reason.endswith("before an operator has seen that there is no migration, and the znode deleted")
    assert await candidate().elect(store, None) == Standby(None, reason)


EMPTY = "/migration is empty, as zookeeper-security-migration leaves it (KAFKA-19480), and counts as none"


async def test_an_empty_migration_counts_as_none_with_a_warning(store: MetadataStore) -> None:
    await store.multi([Create(paths.MIGRATION)])
    await candidate().require_eligible(store)
    me = candidate()
    with capture_logs() as logs:
        won = await me.elect(store, None)
        assert isinstance(won, Won)
        assert await me.elect(store, won) == won
    [warning] = [log for log in logs if log["log_level"] == "warning"]
    assert warning["found"].startswith(EMPTY)
    assert await read(store, paths.MIGRATION) is not None, "whoever made it keeps it"


async def test_null_in_a_real_zookeeper_is_an_empty_migration(zookeeper: str) -> None:
    root = f"/kafka-office-{next(_numbers)}"
    async with open_zookeeper(f"{zookeeper}{root}") as store:
        await ensure_paths(store, paths.PERSISTENT)
        await trio.to_thread.run_sync(create_null, zookeeper, f"{root}{paths.MIGRATION}")
        with capture_logs() as logs:
            assert await candidate().elect(store, None) == Won(1, 1)
        assert any(log.get("found", "").startswith(EMPTY) for log in logs)


def create_null(address: str, path: str) -> None:
    client = KazooClient(address)
    client.start()
    try:
        client.create(path, None)
    finally:
        client.stop()
        client.close()


async def test_a_migration_in_place_of_an_empty_one_in_the_last_moment_stops_an_election(store: MetadataStore) -> None:
    await store.multi([Create(paths.MIGRATION)])
    faster = Meddler(store, paths.CONTROLLER, (Set(paths.MIGRATION, MIGRATION, -1),))
    outcome = await candidate().elect(faster, None)
    assert isinstance(outcome, Standby)
    assert outcome.reason.startswith("/migration exists, so a migration to KRaft has begun")
    assert not await is_there(store, paths.CONTROLLER)


async def test_an_empty_migration_that_is_deleted_in_the_last_moment_does_not_matter(store: MetadataStore) -> None:
    await store.multi([Create(paths.MIGRATION)])
    faster = Meddler(store, paths.CONTROLLER, (Delete(paths.MIGRATION),))
    assert isinstance(await candidate().elect(faster, None), Won)
    assert faster.overtaken == 1


async def test_a_migration_that_creates_an_empty_one_again_is_met_in_office(store: MetadataStore) -> None:
    await store.multi([Create(paths.MIGRATION)])
    again = (Delete(paths.MIGRATION), Create(paths.MIGRATION, MIGRATION))
    me, faster = candidate(), Meddler(store, paths.CONTROLLER, again)
    won = await me.elect(faster, None)
    assert isinstance(won, Won)
    with capture_logs() as logs:
        assert await me.elect(store, won) == won
    assert [log["event"] for log in logs] == ["still in office, but no longer for long"]


async def test_a_standby_does_not_succeed_ours_during_a_migration(open_store: OpenStore, store: MetadataStore) -> None:
    async with open_store() as first:
        me = candidate(1001)
        won = await me.elect(first, None)
        assert isinstance(won, Won)
        await store.multi(MIGRATES)
        with capture_logs() as logs:
            assert await me.elect(first, won) == won, "who is in office stays until KRaft takes over"
        assert [log["event"] for log in logs] == ["still in office, but no longer for long"]
    outcome = await candidate(1002).elect(store, None)
    assert isinstance(outcome, Standby)
    assert outcome.reason.endswith("; `klamm controller release` lets Kafka's brokers elect one of theirs")


async def test_a_kraft_controller_that_takes_over_ends_our_office(store: MetadataStore) -> None:
    me = candidate()
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    await store.multi([Delete(paths.CONTROLLER), *GOVERNS])
    outcome = await me.elect(store, won)
    assert isinstance(outcome, Standby)
    assert outcome.reason.startswith("the KRaft controller 3 holds /controller")
    assert not await is_there(store, paths.OFFICE_LOCK)


# --- releases ---------------------------------------------------------------------------------------------------


async def test_a_release_ends_the_office_and_keeps_everybody_away(store: MetadataStore, other: MetadataStore) -> None:
    me = candidate()
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    await store.multi([Create(paths.broker(1001), b"{}", ephemeral=True)])
    await other.multi([Create(paths.RELEASED)])
    assert await me.elect(store, won) == Standby(None, "the office was released")
    gone = [paths.CONTROLLER, paths.OFFICE_LOCK, paths.broker(1001)]
    assert await store.read(gone) == [None, None, None]
    for session in (store, other):
        outcome = await candidate(1002).elect(session, None)
        assert isinstance(outcome, Standby)
        assert outcome.reason == "the office was released: `klamm controller take-over` ends this"
    await elect_kafka(other, epoch=2)
    await other.multi([Delete(paths.RELEASED), Create(paths.TAKE_OVER)])
    assert await me.elect(store, None) == Won(3, 3)


async def test_a_standby_completes_a_release(open_store: OpenStore, store: MetadataStore) -> None:
    async with open_store() as first:
        assert await candidate(1001).elect(first, None) == Won(1, 1)
    await store.multi([Create(paths.RELEASED)])
    assert await candidate(1002).elect(store, None) == Standby(None, "the office was released")
    assert not await is_there(store, paths.CONTROLLER)


async def test_a_release_in_the_last_moment_stops_an_election(store: MetadataStore) -> None:
    released = Meddler(store, paths.CONTROLLER, [Create(paths.RELEASED)])
    outcome = await candidate().elect(released, None)
    assert isinstance(outcome, Standby)
    assert outcome.reason.startswith("the office was released")
    assert not await is_there(store, paths.CONTROLLER)


@pytest.mark.parametrize("has_kafka", [False, True])
async def test_a_controller_that_an_operator_deletes_counts_as_a_release(
    store: MetadataStore, other: MetadataStore, has_kafka: bool
) -> None:
    me = candidate()
    won = await me.elect(store, None)
    assert isinstance(won, Won)
    await other.multi([Delete(paths.CONTROLLER)])
    if has_kafka:
        await elect_kafka(other, epoch=2)
    with capture_logs() as logs:
        outcome = await me.elect(store, won)
    assert isinstance(outcome, Standby)
    assert ("error", "the office was taken away") in [(log["log_level"], log["event"]) for log in logs]
    assert await is_there(store, paths.RELEASED)
    assert not await is_there(store, paths.OFFICE_LOCK)
    assert await is_there(store, paths.CONTROLLER) is has_kafka
    outcome = await candidate(1002).elect(other, None)
    assert isinstance(outcome, Standby)
    assert outcome.reason.startswith("the office was released")


# --- foreign clusters -------------------------------------------------------------------------------------------


async def test_brokers_of_our_own_kind_are_refused_by_name(store: MetadataStore) -> None:
    ours = formats.encode_broker(BrokerRegistration(5, "127.0.0.1", 9092, -1), 0)
    await store.multi([Create(paths.broker(5), ours, ephemeral=True)])
    with pytest.raises(ForeignCluster, match="broker 5 is one of Klamm's own"):
        await candidate().require_eligible(store)
