"""Topics with thousands of moves are deleted in multis of bounded size, and the next controller can continue."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from controller.config import ControllerConfig
from controller.events import TopicDeletion, TopicsDeleted
from controller.handlers import deletion, reassignments
from controller.handlers.failover import failover
from controller.model.context import ControllerContext
from controller.model.rounds import Publication
from controller.node.round_runner import RoundRunner
from controller.observation.observer import Observer
from tests.controller.conftest import ENDPOINT, Bench, Recorder
from tests.controller.deletions import deleted, leaves_no_trace, mark, obeyed, replica, told_to_delete
from transport.metadata import BrokerRegistration, ReplicaAssignment, Stray, TopicPartition
from transport.store import formats, paths
from transport.store.limits import RequestLimits
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, MetadataStore, ensure_paths
from transport.store.requests import MAX_REQUEST_BYTES, weight_of
from transport.store.zookeeper import open_zookeeper

NAME = "x" * 240
MANY = 3_200
BROKERS_OF_ALL = (1, 2)

pytestmark = pytest.mark.usefixtures("all_transitions_are_legal")


async def delete_while_all_moves(bench: Bench) -> None:
    """Begin a move of every partition, and mark the topic for deletion."""
    await bench.register(*BROKERS_OF_ALL)
    await bench.write_topic(NAME, *[(1,)] * MANY)
    await bench.start(brokers=())
    tps = [TopicPartition(NAME, number) for number in range(MANY)]
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(tps, (2,))))
    assert len(bench.context.reassigning) == MANY
    [moves] = await bench.store.children([paths.topic_reassignments(NAME)])
    assert moves is not None
    together = [Create(paths.reassignment(tp)) for tp in tps]
    assert (len(moves), weight_of(together) > MAX_REQUEST_BYTES) == (MANY, True)
    await mark(bench, NAME)


async def all_brokers_answer(bench: Bench) -> None:
    await deleted(bench, *[replica(broker, number, NAME) for number in range(MANY) for broker in BROKERS_OF_ALL])


async def what_is_left(store: MetadataStore) -> list[list[str] | None]:
    return await store.children([paths.TOPICS, paths.REASSIGNMENTS, paths.DELETE_TOPICS])


@pytest.mark.requirement("D7", "D8")
async def test_a_topic_of_thousands_of_moves_goes_in_commits_that_a_store_accepts(bench: Bench) -> None:
    await delete_while_all_moves(bench)
    await all_brokers_answer(bench)
    assert await what_is_left(bench.store) == [[], [], []]
    assert leaves_no_trace(bench, NAME)


@pytest.mark.requirement("D7", "D8")
@pytest.mark.parametrize(
    ("moment", "left"),
    [("remove", [[NAME], [NAME], [NAME]]), ("identify", [[], [NAME], []])],
    ids=["while partitions go", "while moves go"],
)
async def test_the_next_controller_goes_on_where_some_of_it_is_gone_and_some_is_not(
    bench: Bench, moment: str, left: list[list[str] | None]
) -> None:
    await delete_while_all_moves(bench)
    await bench.crash(all_brokers_answer(bench), after=moment)
    assert await what_is_left(bench.store) == left
    await bench.fail_over()
    if moment == "remove":
        assert list(bench.context.deletions) == [NAME]
        await all_brokers_answer(bench)
    assert await what_is_left(bench.store) == [[], [], []]
    assert leaves_no_trace(bench, NAME)


async def test_what_others_left_below_a_topic_goes_with_it_however_much_it_is(bench: Bench) -> None:
    await bench.start((1, 2))
    tp = TopicPartition("orders", 0)
    parents = (paths.topic("orders"), paths.partition(tp))
    left = [f"{parent}/{'y' * 200}-{number}" for parent in parents for number in range(4_000)]
    for start in range(0, len(left), 500):
        await bench.store.multi([Create(path) for path in left[start : start + 500]])
    await mark(bench, "orders")
    await deleted(bench, replica(1), replica(2))
    assert await what_is_left(bench.store) == [[], [], []]


async def test_other_events_have_their_turn_while_many_topics_are_deleted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request to the store has room for ten operations: an event begins or removes 200 partitions."""
    names = [f"topic-{number}" for number in range(12)]
    for name in names:
        await bench.write_topic(name, *[(1,)] * 20)
    await bench.start()
    monkeypatch.setattr(ControllerConfig, "request_limits", RequestLimits(operations=10))
    await bench.store.multi([Create(paths.delete_topic(name)) for name in names])

    assert await bench.run(deletion.topic_deletion(bench.context)) == sorted(names)[10:]
    assert [*bench.context.deletions] == sorted(names)[:10]
    await bench.handle(TopicDeletion())
    assert [*bench.context.deletions] == sorted(names)
    assert len(told_to_delete(bench)) == 240

    answer = obeyed(*(replica(1, number, name) for name in names for number in range(20)))
    done = await bench.run(deletion.replicas_deleted(bench.context, 1, answer.orders))
    assert done == names
    assert await bench.run(deletion.topics_deleted(bench.context, done)) == names[10:]
    assert len(bench.context.topics) == 2
    await bench.handle(TopicsDeleted(tuple(done)))
    assert await what_is_left(bench.store) == [[], [], []]


class Unheard(Recorder):
    """Takes what is told to brokers, and forgets it."""

    def publish(self, publications: Sequence[Publication]) -> None:
        """Do nothing."""


@pytest.mark.requirement("D7", "D8")
async def test_a_real_zookeeper_accepts_the_commits_too(zookeeper: str) -> None:
    async with open_zookeeper(f"{zookeeper}/large-deletion") as store:
        await ensure_paths(store, paths.PERSISTENT)
        for id_ in BROKERS_OF_ALL:
            data = formats.encode_broker(BrokerRegistration(id_, "127.0.0.1", 1, -1), 0)
            await store.multi([Create(paths.broker(id_), data, ephemeral=True)])
        moving = ReplicaAssignment((2, 1), (2,), (1,))
        topic = formats.TopicZnode(dict.fromkeys(range(MANY), moving), "id-of-it")
        await store.multi([Create(paths.CONTROLLER_EPOCH, b"1")])
        await store.multi([Create(paths.topic(NAME), formats.encode_topic(topic)), Create(paths.delete_topic(NAME))])
        context = ControllerContext(ENDPOINT, 1, 0)
        runner = RoundRunner(store, context, Unheard(MemoryZooKeeper(lambda: 0)), Observer())
        await runner.run("failover", failover(context, iter(())))
        [moves] = await store.children([paths.topic_reassignments(NAME)])
        assert moves is not None
        assert (len(moves), list(context.deletions)) == (MANY, [NAME])
        done: list[str] = []
        for broker_id in BROKERS_OF_ALL:
            answer = obeyed(*(Stray("id-of-it", NAME, number, broker_id) for number in range(MANY)))
            done = await runner.run("deleted", deletion.replicas_deleted(context, broker_id, answer.orders))
        assert await runner.run("removed", deletion.topics_deleted(context, done)) == []
        assert await what_is_left(store) == [[], [], []]
        assert context.topics == {}
