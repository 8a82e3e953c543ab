"""Deletions that the next controller goes on with, and namesakes that are not harmed by them."""

from __future__ import annotations

import pytest

from controller.events import PartitionModifications, TopicChange, TopicDeletion
from tests.controller.conftest import TP, Bench
from tests.controller.deletions import (
    INELIGIBLE,
    SECOND,
    STARTED,
    create,
    deleted,
    leaves_no_trace,
    mark,
    phases,
    replica,
    start_and_mark,
    told_to_delete,
    znodes,
)
from tests.controller.meddler import Meddler
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Op

pytestmark = pytest.mark.usefixtures("all_transitions_are_legal")


@pytest.mark.requirement("D7", "D8")
@pytest.mark.parametrize("moment", ["(delete)", "(stop)", "deleted", "remove", "second remove"])
async def test_the_next_controller_goes_on_from_wherever_the_last_one_died(bench: Bench, moment: str) -> None:
    await bench.start((1, 2), (2, 3))
    everywhere = [replica(1), replica(2), replica(2, 1), replica(3, 1)]
    if moment.startswith("("):
        await bench.crash(mark(bench, "orders"), after=moment)
    else:
        await mark(bench, "orders")
        if moment == "remove":
            await bench.crash(deleted(bench, *everywhere), after="remove")
        elif moment == "second remove":
            path = paths.partition(SECOND)
            bench.runner.store = Meddler(bench.store, path, [Delete(paths.partition_state(SECOND))])
            await bench.crash(deleted(bench, *everywhere), after="remove")
            bench.runner.store = bench.store
        else:
            await deleted(bench, replica(1))
    bench.seen.clear()

    await bench.fail_over()
    assert bench.seen.leader_and_isr() == []
    assert "elect" not in bench.seen.rounds
    assert "create" not in bench.seen.rounds
    assert told_to_delete(bench) == [(1, TP), (2, TP), (2, SECOND), (3, SECOND)]
    told = [state for tell in bench.seen.metadata() for state in tell.partitions if tell.brokers is None]
    assert {(state.partition, state.leader) for state in told} == {(0, -2), (1, -2)}
    await deleted(bench, *everywhere)
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)


@pytest.mark.requirement("D7", "D8")
async def test_the_next_controller_waits_for_the_dead_and_has_the_others_delete_at_once(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.write_topic("others", (1, 2))
    await bench.handle(TopicChange())
    await bench.unregister(2)
    await bench.store.multi([Create(paths.delete_topic("orders"))])
    bench.seen.clear()
    await bench.fail_over()
    assert list(bench.context.deletions) == ["orders"]
    assert phases(bench) == {1: STARTED, 2: INELIGIBLE, 3: STARTED}
    assert told_to_delete(bench) == [(1, TP), (3, TP)]
    assert {tell.state.topic for tell in bench.seen.leader_and_isr()} == {"others"}


async def test_a_topic_that_was_never_led_is_deleted(bench: Bench) -> None:
    """KAFKA-6650."""
    await bench.start((1, 2), brokers=())
    await mark(bench, "orders")
    await bench.revive(1, 2)
    assert told_to_delete(bench) == [(1, TP), (2, TP)]
    assert bench.seen.leader_and_isr() == []
    await deleted(bench, replica(1), replica(2))
    assert await znodes(bench) == []


# --- namesakes --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D8")
async def test_who_creates_the_topic_again_has_a_new_one(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
    await deleted(bench, replica(1), replica(2))
    await create(bench, "another-id", 2, 3)
    await bench.handle(PartitionModifications("orders"))
    await bench.handle(TopicChange())
    await bench.handle(TopicDeletion())
    await deleted(bench, replica(2))
    assert (await bench.read_state(TP)).isr == (2, 3)
    assert bench.context.topic_id("orders") == "another-id"
    bench.seen.clear()
    await bench.fail_over()
    assert told_to_delete(bench) == []


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("is_seen", [True, False])
async def test_a_namesake_that_somebody_put_in_its_place_is_not_harmed(bench: Bench, is_seen: bool) -> None:
    await start_and_mark(bench, (1, 2))
    await bench.delete_topic("orders", 1)
    await create(bench, "another-id", 2, 3)
    if is_seen:
        await bench.handle(PartitionModifications("orders"))
    await deleted(bench, replica(1), replica(2))
    await bench.handle(TopicChange())
    await bench.handle(TopicDeletion())
    assert (await bench.read_state(TP)).isr == (2, 3)
    assert bench.context.deletions == {}
    assert paths.delete_topic("orders") not in await znodes(bench)


BELOW = (paths.partition_state(TP), paths.partition(TP), paths.topic_partitions("orders"))


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("is_begun", [False, True], ids=["before anything goes", "before the topic itself goes"])
async def test_a_namesake_that_comes_at_the_last_moment_is_not_harmed(bench: Bench, is_begun: bool) -> None:
    await start_and_mark(bench, (1, 2))
    topic = paths.topic("orders")
    data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((2, 3))}, "another-id"))
    left = BELOW[2:] if is_begun else BELOW
    replacement: list[Op] = [*map(Delete, left), Delete(topic), Create(topic, data)]
    bench.runner.store = meddler = Meddler(bench.store, topic if is_begun else BELOW[0], replacement)
    await deleted(bench, replica(1), replica(2))
    assert (await znodes(bench), meddler.overtaken) == ([topic], 1)
    await bench.handle(TopicChange())
    assert (await bench.read_state(TP)).isr == (2, 3)


@pytest.mark.requirement("D8")
async def test_brokers_are_told_which_topics_there_are_in_case_they_missed_a_deletion(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.write_topic("others", (1, 2))
    await bench.handle(TopicChange())
    await bench.store.multi([Create(paths.topic("damaged"), b"no JSON")])
    await bench.kill(3)
    await mark(bench, "orders")
    expected = (("damaged", ""), ("others", "id-of-others"))
    bench.seen.clear()
    await bench.revive(3)
    assert [(tell.brokers, tell.topics) for tell in bench.seen.metadata() if tell.topics] == [((3,), expected)]
    bench.seen.clear()
    await bench.fail_over()
    assert [(tell.brokers, tell.topics) for tell in bench.seen.metadata() if tell.topics] == [(None, expected)]


@pytest.mark.requirement("D8")
async def test_a_topic_whose_znodes_somebody_removes_meanwhile_leaves_no_marker(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
    await bench.delete_topic("orders", 1)
    await bench.handle(TopicChange())
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)
