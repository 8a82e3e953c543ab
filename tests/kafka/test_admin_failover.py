"""The controller dies once a change is made, and Kafka's tools ask the next one: nothing is done twice."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import frozen

from tests.kafka.real_cluster import FIRST, RealCluster, Starting, real_cluster, until
from tests.kafka.tool_runner import ToolRunner, running_tools
from tests.kafka.tool_sides import write_replicas
from transport.metadata import LeaderAndIsr, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import MetadataStore
from transport.store.scram_users import user_path
from transport.store.zookeeper import open_zookeeper

POLL_SECONDS: Final = 0.002


async def topic_of(store: MetadataStore) -> formats.TopicZnode | None:
    [found] = await store.read([paths.topic("orders")])
    return None if found is None else formats.decode_topic("orders", found.data)


async def leadership_of(store: MetadataStore, partition: int) -> LeaderAndIsr | None:
    tp = TopicPartition("orders", partition)
    [found] = await store.read([paths.partition_state(tp)])
    return None if found is None else formats.decode_partition_state(tp, found.data, found.stat.version)


async def is_created(store: MetadataStore) -> bool:
    return await topic_of(store) is not None


async def has_grown(store: MetadataStore) -> bool:
    topic = await topic_of(store)
    return topic is not None and len(topic.partitions) == 3


async def is_moving(store: MetadataStore) -> bool:
    topic = await topic_of(store)
    return topic is not None and 3 in topic.partitions[1].replicas


async def has_moved(store: MetadataStore) -> bool:
    topic = await topic_of(store)
    return topic is not None and not any(one.is_being_reassigned for one in topic.partitions.values())


async def is_led_by_2(store: MetadataStore) -> bool:
    state = await leadership_of(store, 0)
    return state is not None and state.leader == 2


async def is_user(store: MetadataStore) -> bool:
    return await store.read([user_path("ann")]) != [None]


async def is_marked(store: MetadataStore) -> bool:
    marker, topic = await store.read([paths.delete_topic("orders"), paths.topic("orders")])
    return marker is not None or topic is None


@frozen
class Change:
    """A command of a tool, what shows that it is carried out, and what a tool is told that asks for it again."""

    command: str
    is_made: Callable[[MetadataStore], Awaitable[bool]]
    again: str = ""


CREATE: Final = "kafka-topics --create --topic orders --replica-assignment 1:2,1:2"
MOVE: Final = "kafka-reassign-partitions --execute --reassignment-json-file"
CHANGES: Final = (
    Change(CREATE, is_created, "Topic 'orders' already exists."),
    Change("kafka-topics --alter --topic orders --partitions 3", has_grown, "Topic already has 3 partitions."),
    Change(f"{MOVE} {{}}/move", is_moving),
    Change("kafka-leader-election --election-type preferred --topic orders --partition 0", is_led_by_2),
    Change("kafka-configs --alter --user ann --add-config SCRAM-SHA-256=[password=x]", is_user),
    Change("kafka-topics --delete --topic orders", is_marked, "This server does not host this topic-partition."),
)


@pytest.mark.soak
async def test_no_change_is_made_twice(tools: Path, zookeeper: str, tmp_path: Path) -> None:
    write_replicas(tmp_path / "move", {"orders-0": (2, 1), "orders-1": (2, 3)})
    address, starting = f"{zookeeper}/failover-{tmp_path.name}", Starting(are_shown=True)
    async with (
        open_zookeeper(address) as store,
        real_cluster(address, tmp_path, starting=starting) as cluster,
        running_tools(tools, ",".join(cluster.clients.values()), tmp_path) as runner,
    ):
        created, grown, moved, elected, user, deleted = CHANGES
        await change(cluster, store, runner, created)
        first = await topic_of(store)
        await change(cluster, store, runner, grown)
        await change(cluster, store, runner, moved)
        await until(lambda: has_moved(store))
        topic, before = await topic_of(store), await leadership_of(store, 0)
        assert topic is not None
        assert first is not None
        assert topic.topic_id == first.topic_id
        assert [topic.partitions[number].replicas for number in (0, 1)] == [(2, 1), (2, 3)]
        assert len(topic.partitions) == 3
        await change(cluster, store, runner, elected)
        state = await leadership_of(store, 0)
        assert before is not None
        assert state is not None
        assert (state.leader, state.leader_epoch) == (2, before.leader_epoch + 1)
        await change(cluster, store, runner, user)
        await change(cluster, store, runner, deleted)
        await until(lambda: is_gone(store))
        await recreated_topic_stays(cluster, store, runner)


async def change(cluster: RealCluster, store: MetadataStore, runner: ToolRunner, wanted: Change) -> None:
    """Have a tool make a change while the controller dies that has made it, and wait for the next one."""
    office = max(cluster.controllers.processes)
    cluster.controllers.start(office + 1)
    await until(lambda: stands_by(cluster, office + 1))
    tool, *words = shlex.split(wanted.command.replace("{}", str(cluster.directory)))
    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(die_after, cluster, office, store, wanted)
        code, told = await runner.run(tool, *words)
    sys.stdout.write(f"{wanted.command}: {trio.current_time() - begun:.1f} s, {code}, {told.splitlines()[:1]}\n")
    assert code == 0 or (wanted.again and wanted.again in told), told
    await until(lambda: has_office(cluster, office + 1))


async def die_after(cluster: RealCluster, controller_id: int, store: MetadataStore, made: Change) -> None:
    assert not await made.is_made(store)
    while not await made.is_made(store):
        await trio.sleep(POLL_SECONDS)
    cluster.controllers.kill(controller_id)


async def stands_by(cluster: RealCluster, controller_id: int) -> bool:
    await trio.lowlevel.checkpoint()
    return cluster.controllers.listens(controller_id)


async def has_office(cluster: RealCluster, controller_id: int) -> bool:
    await trio.lowlevel.checkpoint()
    return "in office" in cluster.controllers.log(controller_id).read_text()


async def is_gone(store: MetadataStore) -> bool:
    return await store.read([paths.topic("orders"), paths.delete_topic("orders")]) == [None, None]


async def recreated_topic_stays(cluster: RealCluster, store: MetadataStore, runner: ToolRunner) -> None:
    """Create the topic again, which no successor takes for the one that was deleted."""
    tool, *words = shlex.split(CREATE)
    assert await runner.run(tool, *words) == (0, "Created topic orders.\n")
    created = await topic_of(store)
    office = max(cluster.controllers.processes)
    cluster.controllers.start(office + 1)
    await until(lambda: stands_by(cluster, office + 1))
    cluster.controllers.kill(office)
    await until(lambda: has_office(cluster, office + 1))
    await cluster.until_in_sync("orders", count=2)
    assert await topic_of(store) == created
    assert office == FIRST + len(CHANGES)
