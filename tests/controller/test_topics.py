"""Topics and partitions that appear, grow or disappear in the store."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from controller.events import PartitionModifications, TopicChange
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from tests.controller.conftest import TP, Bench
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set, StoreEvent, WatchFired, WatchKind, Znode

SECOND = TopicPartition("orders", 1)


# --- topics that appear -----------------------------------------------------------------------------------------


@pytest.mark.requirement("D8", "D3")
async def test_a_new_topic_comes_online(bench: Bench) -> None:
    await bench.start(brokers=(1, 2, 3))
    await bench.write_topic("orders", (2, 3), (3, 1))
    await bench.handle(TopicChange())
    assert await bench.read_state(TP) == LeaderAndIsr(2, 0, (2, 3), 0, 1) == bench.context.leadership[TP]
    assert await bench.read_state(SECOND) == LeaderAndIsr(3, 0, (3, 1), 0, 1)
    assert set(bench.context.partition_phases.values()) == {PartitionPhase.ONLINE}
    assert set(bench.context.replica_phases.values()) == {ReplicaPhase.ONLINE}
    told = [(tell.brokers, tell.state.partition, tell.is_new) for tell in bench.seen.leader_and_isr()]
    assert told == [((2, 3), 0, True), ((3, 1), 1, True)]
    assert bench.seen.latest_metadata(SECOND) == bench.context.describe(SECOND)


@pytest.mark.requirement("D8")
async def test_a_dead_first_replica_does_not_lead_nor_is_it_in_the_isr(bench: Bench) -> None:
    await bench.start(brokers=(2, 3))
    await bench.write_topic("orders", (1, 3, 2))
    await bench.handle(TopicChange())
    assert await bench.leader_and_isr() == (3, (3, 2))
    assert [tell.brokers for tell in bench.seen.leader_and_isr()] == [(3, 2)]
    assert bench.seen.latest_metadata(TP).offline_replicas == (1,)


@pytest.mark.requirement("D8")
async def test_a_partition_without_a_live_replica_stays_new_until_one_comes(bench: Bench) -> None:
    await bench.start(brokers=(3,))
    await bench.write_topic("orders", (1, 2), (3,))
    await bench.handle(TopicChange())
    assert bench.context.partition_phases == {TP: PartitionPhase.NEW, SECOND: PartitionPhase.ONLINE}
    assert await bench.read(paths.partition_state(TP)) is None
    await bench.revive(1)
    assert bench.context.partition_phases[TP] is PartitionPhase.ONLINE
    assert await bench.read_state(TP) == LeaderAndIsr(1, 0, (1,), 0, 1)


async def test_a_new_topic_without_an_id_gets_one_the_next_time_the_same(bench: Bench) -> None:
    await bench.start(brokers=(1,))
    await bench.store.multi([Create(paths.topic("orders"), b'{"version":1,"partitions":{"0":[1]}}')])
    await bench.handle(TopicChange())
    given = bench.context.describe(TP).topic_id
    assert len(given) == 22
    assert bench.context.topics["orders"].version == (await bench.znode(paths.topic("orders"))).stat.version
    await bench.fail_over()
    assert bench.context.describe(TP).topic_id == given


async def test_a_topic_that_cannot_be_decoded_spoils_no_other(bench: Bench) -> None:
    await bench.start(brokers=(1,))
    await bench.store.multi([Create(paths.topic("broken"), b'{"partitions":[]}')])
    await bench.write_topic("orders", (1,))
    with capture_logs() as logs:
        await bench.handle(TopicChange())
    assert [log["topic"] for log in logs] == ["broken"]
    assert list(bench.context.topics) == ["orders"]
    assert (await bench.read_state(TP)).leader == 1


async def test_a_topic_that_is_gone_leaves_no_trace(bench: Bench) -> None:
    await bench.start((1, 2), (1, 2))
    await bench.move(TP, (4, 5))
    await bench.delete_topic("orders", 2)
    await bench.handle(TopicChange())
    context = bench.context
    assert not context.topics
    assert not context.leadership
    assert not context.partition_phases
    assert not context.replica_phases
    assert not context.reassigning
    assert context.partitions_on(range(10)) == []


# --- partitions that are added ----------------------------------------------------------------------------------


@pytest.mark.requirement("C5", "D8")
async def test_added_partitions_come_online_and_the_others_stay_as_they_are(bench: Bench) -> None:
    await bench.start((1, 2))
    before = await bench.read_state(TP)
    await bench.change_topic("orders", 1, ReplicaAssignment((9, 2, 1)))
    await bench.handle(PartitionModifications("orders"))
    assert await bench.read_state(SECOND) == LeaderAndIsr(2, 0, (2, 1), 0, 1)
    assert await bench.read_state(TP) == before
    assert {tell.state.partition for tell in bench.seen.leader_and_isr()} == {1}


async def test_topics_that_changed_together_are_read_together(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["carts", "orders", "users"]
    for name in names:
        await bench.write_topic(name, (1, 2))
    await bench.start(brokers=(1, 2))
    for name in names[:2]:
        await bench.change_topic(name, 1, ReplicaAssignment((2, 1)))
    event = PartitionModifications("carts")
    for name in ("orders", "users", "unknown"):
        event.more.add(name)
    watched: list[Sequence[str]] = []
    read = bench.store.read

    async def recorded(asked: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        watched.extend([asked] if watch else [])
        return await read(asked, watch=watch)

    monkeypatch.setattr(bench.store, "read", recorded)
    await bench.handle(event)
    assert watched == [tuple(map(paths.topic, names))]
    assert [(await bench.read_state(TopicPartition(name, 1))).isr for name in names[:2]] == [(2, 1), (2, 1)]
    assert {tell.state.tp for tell in bench.seen.leader_and_isr()} == {TopicPartition(name, 1) for name in names[:2]}


async def test_our_own_writes_are_no_news_and_the_next_of_others_are(bench: Bench) -> None:
    await bench.start((1, 2))
    fired: list[StoreEvent] = []
    bench.store.subscribe(fired.append)
    await bench.move(TP, (4, 5))
    assert fired == []
    await bench.change_topic("orders", 1, ReplicaAssignment((9,)))
    assert fired == [WatchFired(paths.topic("orders"), WatchKind.CHANGED)]


async def test_to_read_our_own_writes_again_changes_nothing(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.move(TP, (4, 5))
    bench.seen.clear()
    topics = dict(bench.context.topics)
    await bench.handle(PartitionModifications("orders"))
    assert bench.context.topics == topics
    assert bench.seen.rounds == []


async def test_a_topics_znode_stays_watched(bench: Bench) -> None:
    await bench.start((1,))
    fired: list[StoreEvent] = []
    bench.store.subscribe(fired.append)
    for partition in (1, 2):
        await bench.change_topic("orders", partition, ReplicaAssignment((1,)))
        assert fired == [WatchFired(paths.topic("orders"), WatchKind.CHANGED)]
        await bench.handle(PartitionModifications("orders"))
        fired.clear()


async def test_news_of_a_topic_that_is_not_known_change_nothing(bench: Bench) -> None:
    await bench.start((1,))
    await bench.delete_topic("orders", 1)
    await bench.handle(PartitionModifications("unknown"))
    assert bench.seen.commits == []


async def test_a_topic_that_cannot_be_decoded_any_more_stays_as_it_was_known(bench: Bench) -> None:
    await bench.start((1,))
    known = bench.context.topics["orders"]
    await bench.store.multi([Set(paths.topic("orders"), b"{", -1)])
    with capture_logs() as logs:
        await bench.handle(PartitionModifications("orders"))
    assert [log["topic"] for log in logs] == ["orders"]
    assert bench.context.topics["orders"] == known


async def test_a_topic_under_another_id_is_another_topic(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.delete_topic("orders", 1)
    data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((2, 3))}, "another-id"))
    await bench.store.multi([Create(paths.topic("orders"), data)])
    await bench.handle(PartitionModifications("orders"))
    assert bench.context.describe(TP).topic_id == "another-id"
    assert await bench.read_state(TP) == LeaderAndIsr(2, 0, (2, 3), 0, 1)
    assert {replica for _, replica in bench.context.replica_phases} == {2, 3}


async def test_a_topic_under_another_id_has_the_settings_that_are_written_for_its_name(bench: Bench) -> None:
    await bench.start((1, 2))
    settings = formats.encode_config({"min.insync.replicas": "2"})
    await bench.store.multi([Create(paths.topic_config("orders"), settings)])
    await bench.delete_topic("orders", 1)
    data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((2, 3))}, "another-id"))
    await bench.store.multi([Create(paths.topic("orders"), data)])
    await bench.handle(PartitionModifications("orders"))
    assert bench.context.min_isr("orders") == 2


@pytest.mark.requirement("D8")
async def test_an_id_and_a_move_that_others_wrote_over_are_written_back_before_anything_else(bench: Bench) -> None:
    """KAFKA-14190, KAFKA-9038: a tool that knows neither writes the topic as it read it before."""
    await bench.begin_move((1, 2), (3, 4))
    moving = await bench.read_assignment(TP)
    written = formats.TopicZnode({0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((2, 1))}, None)
    await bench.store.multi([Set(paths.topic("orders"), formats.encode_topic(written), -1)])
    await bench.handle(PartitionModifications("orders"))

    znode = await bench.znode(paths.topic("orders"))
    stored = formats.decode_topic("orders", znode.data)
    assert stored == formats.TopicZnode({0: moving, 1: ReplicaAssignment((2, 1))}, "id-of-orders")
    assert (await bench.read_state(SECOND)).isr == (2, 1)
    await bench.fail_over()
    assert bench.context.topic_id("orders") == "id-of-orders"
    assert list(bench.context.reassigning) == [TP]


async def test_a_topic_that_was_set_aside_and_repaired_is_started(bench: Bench) -> None:
    await bench.store.multi([Create(paths.topic("orders"), b"damaged")])
    await bench.start(brokers=(1, 2))
    assert bench.context.topics == {}
    repaired = formats.TopicZnode({0: ReplicaAssignment((2, 1))}, "id-of-orders")
    await bench.store.multi([Set(paths.topic("orders"), formats.encode_topic(repaired), 0)])
    await bench.handle(PartitionModifications("orders"))
    assert (await bench.read_state(TP)).leader == 2
