"""The requests of administrators to a simulated cluster are recorded, and answers that no order explains are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import trio
from msgspec.structs import replace

from controller.handlers import configs, metadata, reassignment_requests, topic_requests
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds
from controller.node import dispatch
from klamm.testing import SimulatedCluster, open_cluster
from klamm.testing.actions import CreateTopic, DescribeTopics, ListReassignments, RewriteTopic, WriteRequests
from simulator.linearizability import checker, history, partition
from transport import messages
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages import ElectionType, PartitionError, ReassignablePartition, TopicError
from transport.metadata import TopicPartition
from transport.wire import WireError

pytestmark = pytest.mark.usefixtures("autojump_clock")

REQUESTS = dict(dispatch.REQUESTS)
FIRST = TopicPartition("orders", 0)


async def administrate(c: SimulatedCluster) -> None:
    """Make requests of each kind, also refused ones, and look after each."""
    await c.create_topic("orders", [[1, 2], [2, 3]])
    await c.until(lambda: c.partition("orders-1") is not None)
    await attempt(c.create_topic, "orders", [[1]])
    c.brokers[4].stop_fetching(FIRST)
    await c.reassign({"orders-0": (4, 2), "orders-1": (3, 2)})
    await look(c)
    await attempt(c.reassign, {"orders-1": (99,)})
    await attempt(c.reassign, {"orders-0": None})
    await attempt(c.reassign, {"orders-0": None})
    await look(c)
    await c.elect_leaders(ElectionType.PREFERRED, (), {"orders-0": (2, 1)})
    await attempt(c.validate_partitions, {"orders": 3, "nowhere": 1})
    await attempt(c.validate_topics, [messages.NewTopic(name, 1, 1) for name in ("orders", "others")])
    await attempt(c.add_partitions, "orders", 3)
    await c.alter_topics({"orders": {"min.insync.replicas": "2", "max.message.bytes": " 2000 "}})
    await c.alter_topics({"orders": {"max.message.bytes": None}})
    await look(c)
    await c.delete_topic("orders")
    await look(c)
    await trio.sleep(10)
    await look(c)


async def attempt(request: Callable[..., object], *arguments: object) -> None:
    """Make a request that may be refused."""
    try:
        await request(*arguments)  # type: ignore[misc]  # one of the cluster's requests
    except ApiError:
        return


async def look(c: SimulatedCluster) -> None:
    await ListReassignments().on(c)
    await DescribeTopics().on(c)


def verdict(c: SimulatedCluster) -> history.Verdict:
    return c.world.safety.history.judge()


async def test_what_a_sound_controller_answers_is_explained() -> None:
    async with open_cluster(brokers=4) as c:
        await administrate(c)
        judged = verdict(c)
    assert (judged.faults, judged.too_long, judged.written_by_others) == ([], 0, 0)
    # The topic, its three partitions and its settings; two that were only asked about, each with its settings.
    assert judged.explained == 9


# --- controllers that are not sound -------------------------------------------------------------------------------


def empty_list(_: ControllerContext, __: object) -> messages.ListPartitionReassignmentsResponse:
    return messages.ListPartitionReassignmentsResponse(())


def stale_description(context: ControllerContext, names: Sequence[str] | None) -> messages.MetadataResponse:
    """Describe all topics as they were the last time."""
    now = metadata.describe_topics(context, names)
    if names is not None:
        return now
    latest, SHOWN[id(context)] = SHOWN.get(id(context), now), now
    return latest


SHOWN: dict[int, messages.MetadataResponse] = {}


def moved(context: ControllerContext, partitions: tuple[ReassignablePartition, ...]) -> Rounds[object]:
    """Begin moves, and say that they are refused."""
    answer = yield from reassignment_requests.requested_by_api(context, partitions)
    return turned(answer, {ErrorCode.NONE: ErrorCode.INVALID_REPLICA_ASSIGNMENT})


def cancelled(context: ControllerContext, partitions: tuple[ReassignablePartition, ...]) -> Rounds[object]:
    """Say of each cancel that it is granted."""
    answer = yield from reassignment_requests.requested_by_api(context, partitions)
    return turned(answer, {ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: ErrorCode.NONE})


def turned(
    answer: messages.AlterPartitionReassignmentsResponse, wrong: dict[ErrorCode, ErrorCode]
) -> messages.AlterPartitionReassignmentsResponse:
    items = tuple(PartitionError(*item.tp, wrong.get(item.error, item.error)) for item in answer.partitions)
    return messages.AlterPartitionReassignmentsResponse(items)


def created(context: ControllerContext, request: messages.CreateTopicsRequest, host: Host) -> Rounds[object]:
    """Say of each topic that it is created."""
    yield from topic_requests.create_topics(context, request, dispatch.new_ids(host), dispatch.new_starts(host))
    return messages.CreateTopicsResponse(tuple(TopicError(topic.name) for topic in request.topics))


def unset(context: ControllerContext, request: messages.DescribeConfigsRequest, _: Host) -> Rounds[object]:
    """Describe settings as if none were set."""
    answer = yield from configs.describe_configs(context, request.resources)
    return messages.DescribeConfigsResponse(tuple(replace(each, entries=()) for each in answer.resources))


@pytest.mark.parametrize(
    ("request_type", "handler", "found"),
    [
        (messages.ListPartitionReassignmentsRequest, dispatch._reading(empty_list, "partitions"), "list shows no move"),  # noqa: SLF001
        (messages.MetadataRequest, dispatch._reading(stale_description, "topics"), "description as"),  # noqa: SLF001
        (messages.AlterPartitionReassignmentsRequest, dispatch._taking(moved, "partitions"), "the store has"),  # noqa: SLF001
        (messages.AlterPartitionReassignmentsRequest, dispatch._taking(cancelled, "partitions"), "cancel answered"),  # noqa: SLF001
        (messages.DescribeConfigsRequest, unset, "description as {}"),
        (messages.CreateTopicsRequest, created, "creation of 1 partitions answered NONE"),
    ],
    ids=[
        "empty list",
        "stale description",
        "refused and done",
        "nothing to cancel",
        "nothing set",
        "created twice",
    ],
)
async def test_wrong_answers_are_found(
    request_type: type[messages.Request[object]],
    handler: dispatch.Handler,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(REQUESTS, request_type, handler)
    monkeypatch.setattr(dispatch, "REQUESTS", REQUESTS)
    async with open_cluster(brokers=4) as c:
        with trio.move_on_after(60):
            await attempt(administrate, c)
        faults = verdict(c).faults
    assert any(f"explains: {found}" in fault for fault in faults), faults


# --- what a sound cluster may do ----------------------------------------------------------------------------------


async def test_a_request_whose_answer_is_lost_may_have_been_carried_out() -> None:
    async with open_cluster(brokers=4) as c:
        await c.create_topic("orders", [[1, 2]])
        controller = c.active_controller
        assert controller is not None
        c.brokers[4].stop_fetching(FIRST)
        c.crash_at("U1")
        with pytest.raises(WireError):
            await c.reassign({"orders-0": (4, 2)})
        c.restart(controller)
        await look(c)
        assert verdict(c).faults == []


@pytest.mark.parametrize("end", ["by hand", "by hand, as it knows", "by its session"])
async def test_a_controller_that_was_deposed_by_hand_may_answer_from_before_until_it_knows(end: str) -> None:
    async with open_cluster(brokers=4) as c:
        await c.create_topic("orders", [[1, 2]])
        old = c.active_controller
        assert old is not None
        # What the store has to tell waits for the end of the pause.
        c.pause(old, keeps_session=end != "by its session")
        if end != "by its session":
            c.depose()
        await c.until(lambda: c.active_controller not in (None, old))
        if end == "by hand, as it knows":
            c.wake(old)
        c.brokers[4].stop_fetching(FIRST)
        await c.reassign({"orders-0": (4, 2)})
        answer_without_a_move(c, old)
        expected = 0 if end == "by hand" else 1
        assert len(verdict(c).faults) == expected
        assert c.active_controller is not None
        answer_without_a_move(c, c.active_controller)
        assert len(verdict(c).faults) == 1


def answer_without_a_move(c: SimulatedCluster, controller_id: int) -> None:
    """Record that a controller has answered that the first partition is not being moved."""
    request = c.world.safety.history.request()
    request.sent_to(controller_id)
    request.answered(history.Operations(partitions={FIRST: partition.List(None)}))


async def test_requests_in_the_store_explain_moves() -> None:
    async with open_cluster(brokers=4) as c:
        await c.create_topic("orders", [[1, 2]])
        await c.until(lambda: c.partition("orders-0") is not None)
        WriteRequests({"orders-0": (4, 2)}).on(c)
        await c.until_moved("orders-0")
        await look(c)
        assert verdict(c).faults == []


async def test_topics_that_are_rewritten_by_hand_are_left_out() -> None:
    async with open_cluster(brokers=4) as c:
        await c.create_topic("orders", [[1, 2]])
        await c.until(lambda: c.partition("orders-0") is not None)
        RewriteTopic((CreateTopic("orders", ((3, 4),)),)).on(c)
        await trio.sleep(1)
        judged = verdict(c)
    assert (judged.faults, judged.explained, judged.written_by_others) == ([], 0, 1)


async def test_histories_that_are_too_long_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "MOST_INTERVALS", 3)
    monkeypatch.setattr(history, "MOST_PARTITIONS", 1)
    async with open_cluster(brokers=4) as c:
        await c.create_topic("orders", [[1, 2], [2, 3]])
        await look(c)
        judged = verdict(c)
        assert (judged.faults, judged.explained, judged.too_long) == ([], 1, 3)  # its settings
        monkeypatch.setattr(history, "MOST_RECORDED", 3)
        monkeypatch.setattr(checker, "MOST_INTERVALS", 1_000)
        assert verdict(c).too_long == 4
