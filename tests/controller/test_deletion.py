"""Topics that are deleted: the wait for brokers, the next controller that continues, and namesakes."""

from __future__ import annotations

import pytest

from controller.config import ControllerConfig
from controller.events import (
    LeaderAndIsrResponseReceived,
    PartitionModifications,
    ReplicasDeleted,
    ReplicasNotDeleted,
    TopicChange,
    TopicDeletion,
)
from controller.handlers import deletion
from controller.handlers.deletion import RETRY_SECONDS
from controller.model.state_machines import PartitionPhase
from controller.node import alarms
from tests.controller.conftest import TP, Bench
from tests.controller.deletions import (
    INELIGIBLE,
    SECOND,
    STARTED,
    SUCCESSFUL,
    create,
    deleted,
    leaves_no_trace,
    mark,
    obeyed,
    phases,
    replica,
    start_and_mark,
    told_to_delete,
    znodes,
)
from tests.controller.failures import log_lost
from tests.controller.meddler import Meddler
from transport.errors import ErrorCode
from transport.messages import LeaderAndIsrPartition, LeaderAndIsrRequest, LeaderAndIsrResponse, PartitionError
from transport.metadata import LEADER_DURING_DELETE, ReplicaAssignment, Stray, TopicPartition
from transport.store import formats, paths
from transport.store.limits import RequestLimits
from transport.store.protocol import Create, Delete, Op

pytestmark = pytest.mark.usefixtures("all_transitions_are_legal")


@pytest.mark.requirement("D8", "D3")
async def test_brokers_delete_the_replicas_and_then_the_znodes_go(bench: Bench) -> None:
    await bench.start((1, 2), (2, 3))
    await bench.write_topic("others", (1, 2))
    await bench.handle(TopicChange())
    await bench.store.multi([Create(paths.topic_config("orders"), b"{}")])
    bench.seen.clear()
    await mark(bench, "orders")

    assert bench.context.in_phase(PartitionPhase.NON_EXISTENT) == [TP, SECOND]
    assert phases(bench) == {1: STARTED, 2: STARTED}
    assert told_to_delete(bench) == [(1, TP), (2, TP), (2, SECOND), (3, SECOND)]
    told = [state for tell in bench.seen.metadata() for state in tell.partitions if tell.brokers is None]
    assert [(state.partition, state.leader) for state in told] == [(0, LEADER_DURING_DELETE), (1, LEADER_DURING_DELETE)]
    assert bench.seen.leader_and_isr() == []
    assert bench.context.partitions_on([1, 2, 3]) == [TopicPartition("others", 0)]

    await bench.handle(TopicDeletion())
    await deleted(bench, replica(1), replica(2))
    assert phases(bench) == {1: SUCCESSFUL, 2: SUCCESSFUL}
    assert paths.topic("orders") in await znodes(bench), "its other partition is left"
    await deleted(bench, replica(2, 1), replica(3, 1))
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)
    assert TopicPartition("others", 0) in bench.context.leadership
    await bench.handle(TopicChange())
    assert told_to_delete(bench) == [(1, TP), (2, TP), (2, SECOND), (3, SECOND)], "nobody is told again"


@pytest.mark.requirement("D8")
async def test_all_topics_are_deleted_together(bench: Bench) -> None:
    """KAFKA-9499: not a request per partition, nor a commit per topic."""
    names = [f"topic-{number:02}" for number in range(20)]
    for name in names:
        await bench.write_topic(name, *[(1, 2)] * 3)
    await bench.start()
    await mark(bench, *names)
    assert bench.seen.rounds == ["(delete)", "(stop)"]
    bench.seen.clear()
    await deleted(bench, *[replica(b, number, name) for name in names for number in range(3) for b in (1, 2)])
    assert bench.seen.rounds == ["remove"]
    assert all(leaves_no_trace(bench, name) for name in names)


async def test_a_topic_of_thousands_of_partitions_goes_in_commits_that_a_store_accepts(bench: Bench) -> None:
    await bench.start(*[(1,)] * 2000)
    await mark(bench, "orders")
    bench.seen.clear()
    await deleted(bench, *[replica(1, number) for number in range(2000)])
    assert bench.seen.rounds == ["remove"] * 8
    assert await bench.store.children([paths.TOPICS, paths.DELETE_TOPICS]) == [[], []]


async def test_a_topic_without_partitions_is_deleted_at_once(bench: Bench) -> None:
    await bench.start()
    await bench.write_topic("orders")
    await bench.handle(TopicChange())
    await mark(bench, "orders")
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)


# --- dead brokers and failures ----------------------------------------------------------------------------------------


@pytest.mark.requirement("D8", "D3")
async def test_it_waits_for_a_dead_broker_and_goes_on_when_that_is_back(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.kill(2)
    bench.seen.clear()
    await mark(bench, "orders")
    assert phases(bench) == {1: STARTED, 2: INELIGIBLE, 3: STARTED}
    await deleted(bench, replica(1), replica(3))
    assert phases(bench) == {1: SUCCESSFUL, 2: INELIGIBLE, 3: SUCCESSFUL}
    await bench.handle(TopicDeletion())
    assert told_to_delete(bench) == [(1, TP), (3, TP)], "nobody is told in vain, nor again"
    bench.seen.clear()

    await bench.revive(2)
    assert phases(bench) == {1: SUCCESSFUL, 2: STARTED, 3: SUCCESSFUL}
    assert told_to_delete(bench) == [(2, TP)]
    assert bench.seen.leader_and_isr() == [], "KAFKA-13342"
    [introduction] = [tell for tell in bench.seen.metadata() if tell.brokers == (2,)]
    assert [state.leader for state in introduction.partitions] == [LEADER_DURING_DELETE]
    await deleted(bench, replica(2))
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)


@pytest.mark.requirement("D8", "D3")
async def test_a_broker_dies_after_it_was_told(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2, 3))
    state = await bench.read_state(TP)
    bench.seen.clear()
    await bench.kill(1)
    assert phases(bench) == {1: INELIGIBLE, 2: STARTED, 3: STARTED}
    assert await bench.read_state(TP) == state, "nobody is elected, nor taken out of an ISR"
    assert bench.seen.leader_and_isr() == []
    await deleted(bench, replica(2), replica(3))
    await bench.revive(1)
    assert told_to_delete(bench) == [(1, TP)]
    await deleted(bench, replica(1))
    assert leaves_no_trace(bench)


async def test_an_answer_that_comes_after_its_broker_died_says_nothing(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
    await bench.kill(2)
    await deleted(bench, replica(2))
    assert phases(bench) == {1: STARTED, 2: INELIGIBLE}


async def test_a_failure_is_tried_again_after_a_while(bench: Bench) -> None:
    await bench.start((1, 2))
    failure = ReplicasNotDeleted((replica(2),))
    assert alarms.alarms(bench.context, failure) == [], "that was a replica which a reassignment removed"
    await mark(bench, "orders")
    assert alarms.alarms(bench.context, failure) == [(RETRY_SECONDS, TopicDeletion())]
    assert alarms.alarms(bench.context, TopicDeletion()) == []


async def test_a_log_that_can_be_used_again_changes_nothing(bench: Bench) -> None:
    await bench.start((1, 2))
    broker = bench.context.brokers[2]
    event = LeaderAndIsrResponseReceived(2, broker.epoch, bench.context.epoch)
    bench.context.apply(log_lost(TP, 2))
    await mark(bench, "orders")
    led = LeaderAndIsrRequest(
        1001, 1, broker.epoch, (LeaderAndIsrPartition(bench.seen.latest_metadata(TP), is_new=False),)
    )
    for error in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE):
        event.outcomes.gather(2, led, LeaderAndIsrResponse((PartitionError(*TP, error),)))
        await bench.handle(event)
        assert phases(bench) == {1: STARTED, 2: STARTED}


async def test_a_broker_that_bounced_is_told_again(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
    bench.seen.clear()
    await bench.unregister(2)
    await bench.revive(2)
    assert told_to_delete(bench) == [(2, TP)]
    assert phases(bench) == {1: STARTED, 2: STARTED}


@pytest.mark.requirement("D8", "D3")
async def test_a_replica_that_could_not_be_deleted_is_ineligible_until_it_is_tried_again(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
    await bench.handle(ReplicasNotDeleted((replica(2),)))
    assert phases(bench) == {1: STARTED, 2: INELIGIBLE}
    bench.seen.clear()
    await deleted(bench, replica(1))
    assert told_to_delete(bench) == [], "not before its time"
    await bench.handle(TopicDeletion())
    assert told_to_delete(bench) == [(2, TP)]
    await deleted(bench, replica(2))
    assert leaves_no_trace(bench)


@pytest.mark.requirement("D8")
@pytest.mark.parametrize(
    "answer",
    [
        obeyed(replica(2), epoch=0),
        obeyed(Stray("another-id", "orders", 0, 2)),
        obeyed(replica(7)),
        obeyed(replica(2, 0, "unknown")),
        ReplicasNotDeleted((Stray("another-id", "orders", 0, 2),)),
    ],
    ids=["of a reassignment", "of a namesake", "of no replica", "of no topic", "failed of a namesake"],
)
async def test_an_answer_to_something_else_says_nothing(
    bench: Bench, answer: ReplicasDeleted | ReplicasNotDeleted
) -> None:
    """KAFKA-9946."""
    await start_and_mark(bench, (1, 2))
    await bench.handle(answer)
    assert phases(bench) == {1: STARTED, 2: STARTED}


# --- resumed by the next controller -----------------------------------------------------------------------------


@pytest.fixture
def small_multis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each znode below a topic be removed in a multi of its own, except the last, which goes with the topic."""
    monkeypatch.setattr(ControllerConfig, "request_limits", RequestLimits(operations=1))
    monkeypatch.setattr(deletion, "REMOVED_AT_ONCE", 1)


@pytest.mark.requirement("D7", "D8")
@pytest.mark.usefixtures("small_multis")
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
            path = paths.partition_state(TP)
            bench.runner.store = Meddler(bench.store, path, [Delete(path)])
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
    [complete] = [tell for tell in bench.seen.metadata() if tell.topics is not None]
    assert (complete.topics, {(state.partition, state.leader) for state in complete.partitions}) == (
        (),
        {(0, -2), (1, -2)},
    )
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
@pytest.mark.usefixtures("small_multis")
@pytest.mark.parametrize("is_begun", [False, True], ids=["before anything goes", "before the topic itself goes"])
async def test_a_namesake_that_comes_at_the_last_moment_is_not_harmed(bench: Bench, is_begun: bool) -> None:
    await start_and_mark(bench, (1, 2))
    topic = paths.topic("orders")
    data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((2, 3))}, "another-id"))
    left = BELOW[1:] if is_begun else BELOW
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
