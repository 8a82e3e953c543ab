"""A connection to the metadata store that breaks and returns within the session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define
from structlog.testing import capture_logs

from controller.events import PartitionModifications
from controller.node import alarms
from controller.node.service import ControllerService
from tests.kit.service import Controllers
from transport.errors import ApiError
from transport.messages import CreateTopicsRequest, NewTopic
from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import Create, Delete, Op, Set, ensure_paths
from transport.store.tree import Access

ORDERS = TopicPartition("orders", 0)
TWO = {number: ReplicaAssignment((1,)) for number in range(2)}


def broker(port: int = 1) -> bytes:
    return formats.encode_broker(BrokerRegistration(1, "127.0.0.1", port, -1), 0)


def topic(topic_id: str = "id", partitions: dict[int, ReplicaAssignment] | None = None) -> bytes:
    return formats.encode_topic(formats.TopicZnode(partitions or {0: ReplicaAssignment((1,))}, topic_id))


def announced(kind: str, data: bytes) -> Create:
    return Create(kind, data, sequence=True)


CLUSTER: Sequence[Op] = (
    Create(paths.broker(1), broker(), ephemeral=True),
    Create(paths.topic("orders"), topic()),
    Create(paths.topic("carts"), topic("id-of-carts")),
    Create(paths.topic("damaged"), b"{"),
)

CARTS_GO: Sequence[Op] = tuple(
    Delete(f"{paths.topic('carts')}{below}") for below in ("/partitions/0/state", "/partitions/0", "/partitions", "")
)

CHANGES: dict[str, Sequence[Op]] = {
    "nothing": (),
    "a broker comes": (Create(paths.broker(2), broker(), ephemeral=True),),
    "a broker goes": (Delete(paths.broker(1)),),
    "a broker bounces": (Delete(paths.broker(1)), Create(paths.broker(1), broker(2), ephemeral=True)),
    "a broker moves": (Set(paths.broker(1), broker(3), -1),),
    "a topic comes": (Create(paths.topic("users"), topic("id-of-users")),),
    "a topic grows": (Set(paths.topic("carts"), topic("id-of-carts", TWO), -1),),
    "a topic is repaired": (Set(paths.topic("damaged"), topic("id-of-damaged"), -1),),
    "a topic goes": CARTS_GO,
    "a topic is another": (*CARTS_GO, Create(paths.topic("carts"), topic("another", TWO))),
    "a topic is marked": (Create(paths.delete_topic("orders")),),
    "settings change": (
        Create(paths.topic_config("orders"), formats.encode_config({"min.insync.replicas": "3"})),
        announced(f"{paths.CONFIG_CHANGES}/config_change_", formats.encode_config_change("topics/orders")),
    ),
    "a move is asked for": (Create(paths.REASSIGN_PARTITIONS, formats.encode_reassign_partitions({ORDERS: (1, 2)})),),
    "an election is asked for": (Create(paths.PREFERRED_REPLICA_ELECTION, formats.encode_partitions([ORDERS])),),
    "an ISR is written": (
        Set(paths.partition_state(ORDERS), formats.encode_partition_state(LeaderAndIsr(1, 7, (1,), 1, 1)), -1),
        announced(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_", formats.encode_partitions([ORDERS])),
    ),
    "a directory is lost": (announced(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_", b'{"broker":1}'),),
}


@define
class Office:
    """A controller in office whose tasks rest, and a session to change things with."""

    zookeeper: MemoryZooKeeper
    service: ControllerService
    tool: MemoryStore

    @property
    def store(self) -> MemoryStore:
        """The controller's session."""
        assert isinstance(self.service.store, MemoryStore)
        return self.service.store

    def watches(self) -> tuple[set[str], set[str]]:
        """Return what the controller watches now."""
        watches = self.store.watches
        return set(watches._nodes), set(watches._children)  # noqa: SLF001

    def known(self) -> dict[str, Any]:
        """Return what the controller knows, apart from its own epoch."""
        assert self.service._office is not None  # noqa: SLF001
        context = self.service._office.context  # noqa: SLF001
        names = ("brokers", "topics", "leadership", "partition_phases", "reassigning", "deletions")
        min_isrs = {name: context.min_isr(name) for name in context.topics}
        strays = dict.fromkeys(context.strays)  # without their leader epochs, which are in no store
        return {name: dict(getattr(context, name)) for name in names} | {"min_isrs": min_isrs, "strays": strays}

    def epoch(self) -> int:
        assert self.service._office is not None  # noqa: SLF001
        return self.service._office.won.epoch  # noqa: SLF001

    async def rest(self) -> None:
        """Wait until there is nothing more to do."""
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert self.service.queue_size() == 0

    async def break_while(self, changes: Sequence[Op]) -> None:
        """Break the connection, change the store meanwhile, and restore it."""
        self.zookeeper.disconnect(self.store.session_id)
        await self.rest()
        await self.change(changes)
        self.zookeeper.reconnect(self.store.session_id)
        await self.rest()

    async def change(self, changes: Sequence[Op]) -> None:
        """Change the store, one thing after the other."""
        for op in changes:
            await self.tool.multi([op])
        await self.rest()


@pytest.fixture
async def it(controllers: Controllers) -> AsyncIterator[Office]:
    async with controllers.memory.session() as tool:
        await ensure_paths(tool, paths.PERSISTENT)
        await tool.multi(list(CLUSTER))
        fixture = Office(controllers.memory, await controllers.start(), tool)
        await fixture.rest()
        yield fixture


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("when", ["while it is broken", "after it is back"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
async def test_what_changes_is_known_without_a_new_election(it: Office, changes: Sequence[Op], when: str) -> None:
    await it.break_while(changes if when == "while it is broken" else ())
    await it.change(changes if when == "after it is back" else ())
    assert it.epoch() == 1
    kept, watched = it.known(), it.watches()
    it.zookeeper.expire(it.store.session_id)
    await it.rest()
    assert it.epoch() == 2
    assert kept == it.known(), "as a new controllership loads it"
    assert all(fresh <= armed for fresh, armed in zip(it.watches(), watched, strict=True))


@pytest.mark.requirement("E1")
async def test_every_watch_that_was_armed_is_armed_again(it: Office) -> None:
    before = it.watches()
    assert {paths.CONTROLLER, paths.broker(1), *map(paths.topic, ("orders", "carts", "damaged"))} <= before[0]
    await it.break_while(())
    assert it.watches() == before


async def test_what_is_asked_while_the_connection_is_broken_waits_for_it(it: Office, nursery: trio.Nursery) -> None:
    request = CreateTopicsRequest((NewTopic("users", 1, 1, ((1,),)),))
    answers: list[object] = []

    async def ask() -> None:
        answers.append(await it.service.answer(request))

    it.zookeeper.disconnect(it.store.session_id)
    nursery.start_soon(ask)
    await trio.testing.wait_all_tasks_blocked(0.02)
    assert answers == []
    it.zookeeper.reconnect(it.store.session_id)
    await it.rest()
    assert len(answers) == 1
    assert it.epoch() == 1


async def test_what_is_asked_while_the_connection_is_broken_is_refused_when_the_session_ends(
    it: Office, nursery: trio.Nursery
) -> None:

    async def ask() -> None:
        with pytest.raises(ApiError, match="NOT_CONTROLLER"):
            await it.service.answer(CreateTopicsRequest((NewTopic("users", 1, 1, ((1,),)),)))

    it.zookeeper.disconnect(it.store.session_id)
    nursery.start_soon(ask)
    await trio.testing.wait_all_tasks_blocked(0.02)
    it.zookeeper.expire(it.store.session_id)
    it.zookeeper.reconnect(it.store.session_id)
    await it.rest()
    assert it.epoch() == 2


@pytest.mark.requirement("E1")
async def test_what_was_under_way_when_the_connection_broke_costs_the_office(
    it: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = it.store.read

    async def breaking(names: Sequence[str], *, watch: bool = False) -> Any:  # noqa: ANN401
        monkeypatch.setattr(it.store, "read", read)
        it.zookeeper.disconnect(it.store.session_id)
        return await read(names, watch=watch)

    monkeypatch.setattr(it.store, "read", breaking)
    with capture_logs() as logs:
        it.service.tell(PartitionModifications("orders"))
        await it.rest()
        it.zookeeper.reconnect(it.store.session_id)
        await it.rest()
    assert "metadata store failed: loading again" in [line["event"] for line in logs]
    assert it.epoch() == 2


async def test_a_topic_that_came_closed_is_looked_at_until_it_may_be_read(
    it: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarms, "CLOSED_SECONDS", 0.05)
    users = TopicPartition("users", 0)
    it.zookeeper.disconnect(it.store.session_id)
    await it.change(CHANGES["a topic comes"])
    it.zookeeper.tree.allow(paths.topic("users"), Access.NONE)
    it.zookeeper.reconnect(it.store.session_id)
    await it.rest()
    assert users not in it.known()["leadership"]
    it.zookeeper.tree.allow(paths.topic("users"), Access.ALL)
    with trio.fail_after(5):
        while users not in it.known()["leadership"]:
            await trio.sleep(0.01)
    assert it.epoch() == 1
