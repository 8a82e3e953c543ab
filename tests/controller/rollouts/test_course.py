"""Rollouts from start to end: a few moves at a time, carried on by the next controller."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import RolloutLook, TopicChange
from controller.handlers import rollout_plans
from controller.model.facts import MinIsrRead
from controller.model.rounds import Step, apply
from controller.rollout.backlog import Backlog
from tests.controller.rollouts.operator import ORIGIN, TARGET, Operator
from transport.errors import ApiError
from transport.messages import (
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    StartRolloutResponse,
    UploadRolloutRequest,
    UploadRolloutResponse,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.limits import LEAST_MAX_BUFFER
from transport.store.protocol import Create, Delete
from transport.store.tree import Access


async def test_a_few_moves_are_in_flight_at_a_time_until_all_are_done(operator: Operator) -> None:
    started = await operator.start(20, into=3)
    assert (started.moves, started.place) == (20, 0)
    assert operator.in_flight() == [0, 1, 2]
    await operator.catch_up(1)
    assert operator.in_flight() == [0, 2, 3]
    at_once = set()
    while operator.in_flight():
        at_once.add(len(operator.in_flight()))
        await operator.catch_up(operator.in_flight()[0])
    assert max(at_once) == 3
    described = await operator.describe()
    assert (described.phase, described.counts, described.bytes_left) == ("done", (("done", 20),), 0)
    assert {a.replicas for a in operator.bench.context.topics["orders"].znode.partitions.values()} == {TARGET}


async def test_the_next_controller_carries_on_within_the_limits(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.catch_up(0, 1)
    assert operator.in_flight() == [2, 3, 4]
    await operator.fail_over()
    assert operator.in_flight() == [2, 3, 4]
    await operator.catch_up(3)
    assert operator.in_flight() == [2, 4, 5]
    await operator.finish()
    described = await operator.describe()
    assert (described.phase, described.counts, described.started_by) == ("done", (("done", 20),), "alice")


@pytest.mark.parametrize("moment", ["marks", "U1", "(U1)", "B4", "B6", "(B6)"])
async def test_a_controller_that_dies_at_any_moment_leaves_nothing_undone(operator: Operator, moment: str) -> None:
    await operator.start(20, into=3)
    await operator.bench.crash(operator.catch_up(0), after=moment)
    await operator.fail_over()
    assert len(operator.in_flight()) == 3
    await operator.finish()
    assert (await operator.describe()).counts == (("done", 20),)


async def test_abort_restores_the_order_of_what_is_in_flight_and_keeps_what_is_finished(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.catch_up(0)
    await operator.order(RolloutOrder.ABORT)
    assert operator.in_flight() == []
    described = await operator.describe()
    assert (described.phase, described.counts) == ("aborted", (("pending", 19), ("done", 1)))
    assignments = operator.bench.context.topics["orders"].znode.partitions
    assert [assignments[n].replicas for n in range(4)] == [TARGET, ORIGIN, ORIGIN, ORIGIN]


async def test_a_move_to_a_dead_broker_waits_and_so_does_the_rollout(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.bench.kill(3)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).why == "broker 3 died"
    await operator.bench.revive(3)
    await operator.bench.handle(RolloutLook())
    await operator.finish()
    assert (await operator.describe()).counts == (("done", 20),)


async def test_any_number_of_moves_to_a_dead_broker_hold_up_no_others(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    *functions, _ = Backlog.candidates.__defaults__ or ()
    monkeypatch.setattr(Backlog.candidates, "__defaults__", (*functions, 5))
    await operator.bench.kill(5)
    moves = [RolloutMove("orders", number, (3, 5) if number < 10 else TARGET) for number in range(20)]
    await operator.upload(*moves)
    await operator.bench.ask(StartRolloutRequest("monday", "digest", 20), StartRolloutResponse)
    assert operator.in_flight() == [10, 11, 12, 13, 14]
    assert (await operator.describe()).waits[0] == ("broker 5 is not alive", 1)


async def test_rollouts_wait_for_each_other(operator: Operator) -> None:
    await operator.start(10, name="monday")
    second = await operator.start(10, name="tuesday", first=10)
    assert second.place == 1
    assert (await operator.describe("tuesday")).why == "1 rollout before it"
    assert operator.in_flight() == [0, 1, 2, 3, 4]
    await operator.finish()
    assert [(await operator.describe(name)).counts for name in ("monday", "tuesday")] == [(("done", 10),)] * 2


REFUSALS = {
    "no partition": (RolloutMove("orders", 99, TARGET), "there is no such partition"),
    "moved since": (RolloutMove("orders", 0, TARGET, (4, 5)), "has replicas [1, 2], not [4, 5]"),
    "another topic": (RolloutMove("orders", 0, TARGET, ORIGIN, "earlier"), "its topic was deleted and created again"),
    "no replicas": (RolloutMove("orders", 0, ()), "the list of replicas is empty"),
}


@pytest.mark.parametrize(("move", "why"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_a_plan_for_another_cluster_is_refused_or_its_moves_are_left_out(
    operator: Operator, move: RolloutMove, why: str
) -> None:
    sound = RolloutMove("orders", 1, TARGET, ORIGIN, "id-of-orders")
    refused = await operator.upload(move, sound)
    assert [(item.tp, item.message) for item in refused.left_out] == [(move.tp, why)]
    assert await operator.bench.read(paths.rollout_plan("monday", 0)) is None
    skipped = await operator.upload(move, sound, skips=True)
    assert skipped == refused
    started = await operator.bench.ask(StartRolloutRequest("monday", "digest", 2), StartRolloutResponse)
    assert started.moves == 1


async def test_what_an_upload_has_left_is_removed_by_the_next_controller(operator: Operator) -> None:
    await operator.upload(RolloutMove("orders", 0, TARGET))
    assert await operator.bench.read(paths.rollout_plan("monday", 0)) is not None
    await operator.fail_over()
    assert await operator.bench.read(paths.rollout("monday")) is None


async def test_a_rollout_that_is_over_can_be_removed(operator: Operator) -> None:
    await operator.start(2)
    await operator.finish()
    await operator.order(RolloutOrder.REMOVE)
    assert await operator.bench.read(paths.rollout("monday")) is None
    await operator.fail_over()
    assert operator.bench.context.rollouts.by_name == {}


async def test_a_topic_that_is_deleted_and_created_again_is_another_one(operator: Operator) -> None:
    await operator.start(3, into=1)
    await operator.bench.delete_topic("orders", 20)
    other = formats.TopicZnode({n: ReplicaAssignment(ORIGIN) for n in range(20)}, "id-of-another")
    await operator.bench.store.multi([Create(paths.topic("orders"), formats.encode_topic(other))])
    await operator.fail_over()
    assert operator.in_flight() == []
    another = "overridden: its topic was deleted and created again"
    assert await operator.states() == {0: another, 1: another, 2: another}


async def test_a_topic_that_is_created_again_between_the_upload_of_a_plan_and_its_start_is_not_moved(
    operator: Operator,
) -> None:
    moves = [RolloutMove("orders", number, TARGET, ORIGIN, "id-of-orders") for number in range(3)]
    assert (await operator.upload(*moves)).left_out == ()
    await operator.bench.delete_topic("orders", 20)
    await operator.bench.handle(TopicChange())
    other = formats.TopicZnode({n: ReplicaAssignment(ORIGIN) for n in range(20)}, "id-of-another")
    await operator.bench.store.multi([Create(paths.topic("orders"), formats.encode_topic(other))])
    await operator.bench.handle(TopicChange())
    await operator.bench.ask(StartRolloutRequest("monday", "digest", 3), StartRolloutResponse)
    await operator.finish()
    another = "overridden: its topic was deleted and created again"
    assert await operator.states() == {0: another, 1: another, 2: another}


async def test_what_lacks_replicas_goes_first_whatever_holds_the_others(operator: Operator) -> None:
    await operator.bench.run(apply("settings", [Step(facts=(MinIsrRead("orders", 2),))]))
    await operator.bench.alter_isr(TopicPartition("orders", 7), 1)
    await operator.start(10)
    assert operator.in_flight() == [7]


async def test_after_a_time_under_kafkas_controller_it_waits_for_its_operator(operator: Operator) -> None:
    bench = operator.bench
    await bench.store.multi([Create(paths.CONTROLLER, b"ours")])
    await operator.start(4, into=2)

    async def take_office() -> str:
        """Replace the controller, and return why the rollout waits."""
        await bench.fail_over()
        bench.context.config = ControllerConfig(1001, kafka=True)
        await bench.run(rollout_plans.load(bench.context, ["monday"]))
        bench.context.config = ControllerConfig(1001)
        return (await operator.describe()).why

    assert await take_office() == ""
    await bench.store.multi([Delete(paths.CONTROLLER), Create(paths.CONTROLLER, b"ours again")])
    assert [await take_office() for _ in range(2)] == ["paused by foreign controller"] * 2
    await operator.order(RolloutOrder.RESUME)
    assert await take_office() == ""


async def test_a_plan_whose_state_would_be_too_large_is_refused(operator: Operator) -> None:
    operator.bench.context.config = ControllerConfig(1001, jute_maxbuffer=LEAST_MAX_BUFFER)
    for first in range(20):
        move = RolloutMove("orders", first, TARGET)
        await operator.bench.ask(UploadRolloutRequest("monday", "digest", first, (move,)), UploadRolloutResponse)
    request = StartRolloutRequest("monday", "digest", 20, RolloutSettings(go_url="http://" + "x" * 3_000))
    with pytest.raises(ApiError, match="too many parts for ZooKeeper's limit of 10000 bytes"):
        await operator.bench.ask(request, StartRolloutResponse)
    assert operator.bench.context.rollouts.by_name == {}


async def test_marks_that_cannot_be_written_do_not_keep_the_queue_busy(operator: Operator) -> None:
    await operator.bench.store.multi(
        [Create(paths.ROLLOUTS), Create(paths.rollout("monday")), Create(f"{paths.rollout('monday')}/marks")]
    )
    await operator.bench.store.multi([Create(paths.rollout_plans("monday"))])
    operator.bench.seen.zookeeper.tree.allow(f"{paths.rollout('monday')}/marks", Access.READ)
    with capture_logs() as logs:
        await operator.start(3)
    assert operator.in_flight() == []
    assert [log["event"] for log in logs if log["log_level"] == "error"] == [
        "set aside: the store will never accept this"
    ]
