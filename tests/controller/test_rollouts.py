"""Rollouts that the controller carries out: begun a few moves at a time, and carried on by the next controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from attrs import define
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import (
    CopyingSeen,
    ReassignmentProgress,
    RolloutLook,
    RolloutsDue,
    RolloutSignalled,
    RoomSeen,
    ZkPartitionReassignment,
)
from controller.handlers import rollout_plans, rollouts
from controller.model.facts import MinIsrRead
from controller.model.rounds import Step, change
from controller.node.alarms import ASKED_SECONDS, alarms, first_alarms
from controller.observation.event_log import EventLog
from controller.progress.tracker import Moves
from controller.rollout.adapting import FIRST
from controller.rollout.backlog import Backlog
from tests.controller.conftest import BROKERS, Bench
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    ChangeRolloutRequest,
    ChangeRolloutResponse,
    DescribeRolloutMovesRequest,
    DescribeRolloutMovesResponse,
    DescribeRolloutsRequest,
    DescribeRolloutsResponse,
    RolloutChanges,
    RolloutDescription,
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
from transport.store.protocol import Create, Delete, Set, Znode
from transport.store.tree import Access

ORIGIN, TARGET = (1, 2), (3, 2)


@define
class Operator:
    """An operator of the bench."""

    bench: Bench

    async def upload(self, *moves: RolloutMove, name: str = "monday", skips: bool = False) -> UploadRolloutResponse:
        """Upload a plan of one part."""
        request = UploadRolloutRequest(name, "digest", 0, moves, skips)
        return await self.bench.ask(request, UploadRolloutResponse)

    async def start(self, count: int, *, name: str = "monday", first: int = 0, **settings: Any) -> StartRolloutResponse:
        """Upload a plan that moves some partitions of the topic, and start it."""
        moves = [RolloutMove("orders", number, TARGET, size=100) for number in range(first, first + count)]
        assert (await self.upload(*moves, name=name)).left_out == ()
        request = StartRolloutRequest(name, "digest", count, RolloutSettings(**settings), "alice")
        return await self.bench.ask(request, StartRolloutResponse)

    async def order(self, order: RolloutOrder, *, name: str = "monday", **changes: Any) -> RolloutDescription | None:
        """Give an order."""
        request = ChangeRolloutRequest(name, order, RolloutChanges(**changes))
        return (await self.bench.ask(request, ChangeRolloutResponse)).rollout

    async def describe(self, name: str = "monday") -> RolloutDescription:
        """Describe a rollout."""
        [found] = (await self.bench.ask(DescribeRolloutsRequest((name,)), DescribeRolloutsResponse)).rollouts
        return found

    async def states(self, name: str = "monday") -> dict[int, str]:
        """Return the states of the moves, by partition, with the reasons."""
        found = await self.bench.ask(DescribeRolloutMovesRequest(name), DescribeRolloutMovesResponse)
        return {move.partition: move.state + (f": {move.why}" if move.why else "") for move in found.moves}

    def in_flight(self) -> list[int]:
        """Return the partitions that are being moved."""
        return sorted(tp.partition for tp in self.bench.context.reassigning)

    async def catch_up(self, *partitions: int) -> None:
        """Let the new replicas of partitions join the ISR."""
        for number in partitions or self.in_flight():
            tp = TopicPartition("orders", number)
            await self.bench.alter_isr(tp, *self.bench.context.assignment(tp).replicas)

    async def finish(self) -> None:
        """Let all moves come to their end."""
        while self.in_flight():
            await self.catch_up()

    async def fail_over(self) -> None:
        """Replace the controller."""
        await self.bench.fail_over()
        for _, event in first_alarms(self.bench.context):
            if isinstance(event, RolloutLook):
                await self.bench.handle(event)


@pytest.fixture
async def operator(bench: Bench) -> Operator:
    await bench.start(*[ORIGIN] * 20)
    return Operator(bench)


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


async def test_it_pauses_and_resumes(operator: Operator) -> None:
    await operator.start(20, into=3)
    described = await operator.order(RolloutOrder.PAUSE)
    assert described is not None
    assert (described.holds, described.why) == (("operator",), "paused by operator")
    await operator.catch_up()
    assert operator.in_flight() == []
    await operator.fail_over()
    assert operator.in_flight() == []
    await operator.order(RolloutOrder.RESUME)
    assert operator.in_flight() == [3, 4, 5]


async def test_abort_restores_the_order_of_what_is_in_flight_and_keeps_what_is_finished(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.catch_up(0)
    await operator.order(RolloutOrder.ABORT)
    assert operator.in_flight() == []
    described = await operator.describe()
    assert (described.phase, described.counts) == ("aborted", (("pending", 19), ("done", 1)))
    assignments = operator.bench.context.topics["orders"].znode.partitions
    assert [assignments[n].replicas for n in range(4)] == [TARGET, ORIGIN, ORIGIN, ORIGIN]


async def test_undo_moves_back_what_was_moved_and_leaves_alone_what_was_moved_by_hand(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.catch_up(0, 1)
    await operator.bench.move(TopicPartition("orders", 0), (5, 6))
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    described = await operator.describe()
    assert (described.phase, described.counts) == ("undone", (("overridden", 1), ("back", 19)))
    assignments = operator.bench.context.topics["orders"].znode.partitions
    assert [assignments[n].replicas for n in range(3)] == [(5, 6), ORIGIN, ORIGIN]


async def seen_at(operator: Operator, *moments: float) -> RolloutDescription:
    """Let moves end and the controller look around before each moment, and describe the rollout."""
    for now in moments:
        await operator.catch_up()
        await operator.bench.run(rollouts.advance(operator.bench.context, now, looks=True))
    return await operator.describe()


async def test_the_time_left_of_an_undo_is_by_what_is_moved_back(operator: Operator) -> None:
    await operator.start(20, into=2)
    described = await seen_at(operator, 0, 10, 20, 30, 40)
    assert (described.rate, described.left_ms) == (25, 40_000)
    await operator.order(RolloutOrder.UNDO)
    described = await seen_at(operator, 10, 20)
    assert (described.phase, described.rate, described.left_ms) == ("undoing", 20, 30_000)


async def test_a_clock_that_is_set_back_does_not_make_a_rate_larger(operator: Operator) -> None:
    await operator.start(20, into=2)
    described = await seen_at(operator, 10, 20, 0, 10)
    assert described.rate == 800 // 30


@pytest.mark.parametrize("is_over", [False, True])
async def test_undo_leaves_alone_what_was_moved_away_by_hand_and_back(operator: Operator, is_over: bool) -> None:
    tp = TopicPartition("orders", 0)
    await operator.start(20, into=3)
    await operator.catch_up(0)
    if is_over:
        await operator.finish()
    for replicas in ((5, 6), TARGET):
        await operator.bench.move(tp, replicas)
        await operator.catch_up(0)
    await operator.fail_over()
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    assert (await operator.describe()).phase == "undone"
    assert (await operator.states())[0] == "overridden: an administrator has moved it"
    assert await operator.bench.read_assignment(tp) == ReplicaAssignment(TARGET)


async def test_a_finished_move_that_is_made_again_by_hand_during_a_failover_is_overridden(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.catch_up(0)
    await operator.bench.request_moves({TopicPartition("orders", 0): (5, 6)})
    await operator.fail_over()
    assert (await operator.states())[0] == "overridden: an administrator has moved it"


async def test_moves_by_hand_of_partitions_that_are_not_in_the_plan_are_forgotten(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.rollout_overrides._LOOKED_THROUGH", 2)
    await operator.start(3)
    await operator.finish()
    for number, replicas in [(0, (5, 6)), (0, TARGET), *((number, (5, 6)) for number in range(5, 15))]:
        await operator.bench.move(TopicPartition("orders", number), replicas)
        await operator.catch_up(number)
    remembered = operator.bench.context.rollouts.by_name["monday"].by_hand
    assert (TopicPartition("orders", 0) in remembered, len(remembered) <= 2) == (True, True)
    await operator.fail_over()
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    assert await operator.states() == {0: "overridden: an administrator has moved it", 1: "back", 2: "back"}


async def test_what_is_remembered_of_moves_by_hand_is_looked_through_a_few_parts_at_a_time(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.rollout_overrides._LOOKED_THROUGH", 2)
    monkeypatch.setattr("controller.handlers.rollout_overrides.READ_AT_ONCE", 1)
    await large.start()
    monkeypatch.setattr("controller.handlers.rollouts.LOOKED_AHEAD", 0)
    bench, read, at_once = large.operator.bench, large.operator.bench.store.read, []

    async def noting(wanted: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        at_once.append([path for path in wanted if path.startswith(f"{paths.rollout_plans('monday')}/")])
        return await read(wanted, watch=watch)

    monkeypatch.setattr(bench.store, "read", noting)
    await bench.request_moves({TopicPartition("orders", number): (5, 6) for number in (0, 1, 2, 11)})
    await bench.handle(ZkPartitionReassignment())
    parts = [[paths.rollout_plan("monday", first)] for first in (5, 10, 15)]
    assert [found for found in at_once if found] == parts
    rollout = bench.context.rollouts.by_name["monday"]
    assert (set(rollout.by_hand), rollout.sifting) == ({TopicPartition("orders", 11)}, None)


async def test_undo_leaves_what_would_go_back_to_a_dead_broker(operator: Operator) -> None:
    await operator.start(2)
    await operator.finish()
    await operator.bench.kill(1)
    await operator.order(RolloutOrder.UNDO)
    assert (await operator.describe()).phase == "undone"
    text = "done: broker 1 of [1, 2] not alive"
    assert await operator.states() == {0: text, 1: text}


async def test_a_move_back_to_a_broker_that_dies_is_cancelled_and_named(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.rollout_moves.BEGUN_AT_ONCE", 1)
    await operator.start(6, into=3, throttle=1_000)
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    await operator.catch_up(1)
    assert operator.in_flight() == [0, 2]
    await operator.bench.kill(1)
    await operator.bench.handle(RolloutLook())
    text = "done: broker 1 of [1, 2] not alive"
    assert await operator.states() == {number: "back" if number == 1 else text for number in range(6)}
    assert (operator.in_flight(), (await operator.describe()).phase) == ([], "undone")
    assert await operator.bench.read_assignment(TopicPartition("orders", 0)) == ReplicaAssignment(TARGET)
    assert await settings(operator.bench, paths.topic_config("orders")) == {}
    await operator.bench.revive(1)
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    assert set((await operator.states()).values()) == {"back"}


@pytest.mark.parametrize("moment", ["U1", "(U1)", "marks"])
async def test_a_controller_that_dies_while_it_cancels_moves_back_leaves_none_behind(
    operator: Operator, moment: str
) -> None:
    await operator.start(3)
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    await operator.bench.crash(operator.bench.kill(1), after=moment)
    await operator.fail_over()
    await operator.bench.handle(RolloutLook())
    assert set((await operator.states()).values()) == {"done: broker 1 of [1, 2] not alive"}
    assert await operator.bench.read_assignment(TopicPartition("orders", 0)) == ReplicaAssignment(TARGET)


async def test_a_later_undo_takes_back_what_an_earlier_one_has_not_quite_cancelled(operator: Operator) -> None:
    tp = TopicPartition("orders", 0)
    await operator.upload(RolloutMove("orders", 0, (3, 4)))
    await operator.bench.ask(StartRolloutRequest("monday", "digest", 1), StartRolloutResponse)
    await operator.finish()
    await operator.bench.run(change("settings", [Step(facts=(MinIsrRead("orders", 2),))]))
    await operator.order(RolloutOrder.UNDO)
    await operator.bench.alter_isr(tp, 3, 1)
    await operator.bench.kill(2)
    await operator.bench.handle(RolloutLook())
    assert await operator.states() == {0: "done: broker 2 of [1, 2] not alive"}
    assert operator.in_flight() == [0], "only when 4 has caught up, 1 may go"
    await operator.bench.revive(2)
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    assert await operator.states() == {0: "back"}
    assert await operator.bench.read_assignment(tp) == ReplicaAssignment(ORIGIN)


async def test_an_undo_that_is_paused_cancels_nothing_while_a_broker_restarts(operator: Operator) -> None:
    await operator.start(3)
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    await operator.order(RolloutOrder.PAUSE)
    await operator.bench.kill(1)
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [0]
    await operator.bench.revive(1)
    await operator.order(RolloutOrder.RESUME)
    await operator.finish()
    assert set((await operator.states()).values()) == {"back"}


async def test_a_move_by_hand_takes_its_partition_out_for_good(operator: Operator) -> None:
    await operator.start(20, into=3)
    for number in (0, 7):
        assert (await operator.bench.move(TopicPartition("orders", number), (5, 6))).error is ErrorCode.NONE
    await operator.bench.move(TopicPartition("orders", 7), None)
    await operator.fail_over()
    await operator.finish()
    states = await operator.states()
    assert {number: state for number, state in states.items() if state != "done"} == dict.fromkeys(
        (0, 7), "overridden: an administrator has moved it"
    )
    assignments = operator.bench.context.topics["orders"].znode.partitions
    assert [assignments[n].replicas for n in (0, 7)] == [(5, 6), ORIGIN]


async def test_what_others_have_moved_to_the_target_stays_when_the_rollout_is_undone(operator: Operator) -> None:
    await operator.start(10)
    await operator.start(1, name="tuesday", first=9)
    await operator.finish()
    text = "overridden: somebody else has moved it there"
    assert await operator.states("tuesday") == {9: text}
    await operator.order(RolloutOrder.UNDO, name="tuesday")
    await operator.finish()
    assert await operator.states("tuesday") == {9: text}
    assert operator.bench.context.assignment(TopicPartition("orders", 9)).replicas == TARGET


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


async def test_a_rollout_that_waits_can_be_aborted(operator: Operator) -> None:
    await operator.start(10, name="monday")
    await operator.start(10, name="tuesday", first=10)
    await operator.order(RolloutOrder.ABORT, name="tuesday")
    assert (await operator.describe("tuesday")).phase == "aborted"
    assert operator.in_flight() == [0, 1, 2, 3, 4]


async def test_throttles_are_named_with_the_moves_and_gone_after_them(operator: Operator) -> None:
    await operator.start(4, into=2, throttle=1_000)
    assert await settings(operator.bench, paths.topic_config("orders")) == {
        "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
        "follower.replication.throttled.replicas": "0:3,1:3",
        "klamm.moves.leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
        "klamm.moves.follower.replication.throttled.replicas": "0:3,1:3",
    }
    assert (await settings(operator.bench, paths.broker_config(3)))["follower.replication.throttled.rate"] == "1000"
    await operator.order(RolloutOrder.SET, throttle=2_000)
    assert (await settings(operator.bench, paths.broker_config(3)))["follower.replication.throttled.rate"] == "2000"
    await operator.fail_over()
    await operator.finish()
    assert await settings(operator.bench, paths.topic_config("orders")) == {}
    for broker in (1, 2, 3):
        assert await settings(operator.bench, paths.broker_config(broker)) == {}


@pytest.mark.parametrize("access", [Access.READ, Access.NONE])
async def test_rates_that_cannot_be_restored_are_restored_once_they_can_be(operator: Operator, access: Access) -> None:
    await operator.start(4, into=2, throttle=1_000)
    tree, path = operator.bench.seen.zookeeper.tree, paths.broker_config(3)
    tree.allow(path, access)
    await operator.finish()
    assert (await operator.describe()).phase == "done"
    await operator.fail_over()
    tree.allow(path, Access.ALL)
    assert "follower.replication.throttled.rate" in await settings(operator.bench, path)
    await operator.bench.handle(RolloutLook())
    assert await settings(operator.bench, path) == {}
    assert alarms(operator.bench.context, RolloutLook()) == []


async def test_a_rollout_that_has_left_rates_is_not_removed_before_they_are_restored(operator: Operator) -> None:
    await operator.start(4, into=2, throttle=1_000)
    tree, path = operator.bench.seen.zookeeper.tree, paths.broker_config(3)
    tree.allow(path, Access.NONE)
    await operator.finish()
    with pytest.raises(ApiError, match="has left rates of brokers that cannot be restored now"):
        await operator.order(RolloutOrder.REMOVE)
    tree.allow(path, Access.ALL)
    await operator.order(RolloutOrder.REMOVE)
    assert operator.bench.context.rollouts.by_name == {}
    assert await settings(operator.bench, path) == {}


async def rate_of(operator: Operator) -> int:
    """Return the rate of a broker that receives replicas, which is also the one that the rollout tells."""
    found = await settings(operator.bench, paths.broker_config(3))
    told = (await operator.describe()).settings.throttle
    assert found["follower.replication.throttled.rate"] == str(told)
    return told


async def test_throttled_replicas_that_others_have_damaged_cost_a_rollout_nothing_else(operator: Operator) -> None:
    damaged = formats.encode_config({"klamm.moves.follower.replication.throttled.replicas": "TRUE?"})
    await operator.bench.store.multi([Create(paths.topic_config("orders"), damaged)])
    await operator.start(4, into=2, throttle=1_000)
    await operator.finish()
    assert (await operator.describe()).counts == (("done", 4),)


async def test_a_move_by_hand_during_a_failover_loses_its_throttle(operator: Operator) -> None:
    await operator.start(4, into=2, throttle=1_000)
    await operator.bench.request_moves({TopicPartition("orders", 0): (5, 6)})
    await operator.fail_over()
    await operator.finish()
    assert (await operator.states())[0] == "overridden: an administrator has moved it"
    assert await settings(operator.bench, paths.topic_config("orders")) == {}


async def test_a_throttle_is_found_by_how_brokers_get_on(operator: Operator) -> None:
    await operator.start(20, into=2, throttle=FIRST, adapts=True)
    assert await rate_of(operator) == FIRST
    await operator.bench.handle(CopyingSeen(0.1, (), 1e9))
    assert await rate_of(operator) == FIRST * 5 // 4
    await operator.bench.handle(CopyingSeen(0.1, (), FIRST / 2))
    assert await rate_of(operator) == FIRST * 5 // 4
    await operator.fail_over()
    await operator.bench.handle(CopyingSeen(0.9, (), 1e9))
    assert await rate_of(operator) == FIRST * 5 // 8
    await operator.bench.handle(CopyingSeen(0.1, (2,), 1e9))
    assert await rate_of(operator) == FIRST * 5 // 16
    await operator.order(RolloutOrder.SET, throttle=5_000_000)
    await operator.bench.handle(CopyingSeen(0.9, (), 1e9))
    assert await rate_of(operator) == 5_000_000


async def test_a_throttle_is_halved_while_partitions_that_do_not_move_lack_live_replicas(operator: Operator) -> None:
    await operator.start(20, into=2, throttle=FIRST, adapts=True)
    await operator.bench.alter_isr(TopicPartition("orders", 0), 1)
    await operator.bench.handle(CopyingSeen(0.1, (), 1e9))
    assert await rate_of(operator) == FIRST * 5 // 4
    await operator.bench.alter_isr(TopicPartition("orders", 19), 1)
    await operator.bench.handle(CopyingSeen(0.1, (), 1e9))
    assert await rate_of(operator) == FIRST * 5 // 8
    await operator.bench.kill(2)
    await operator.bench.handle(CopyingSeen(0.1, (), 1e9))
    assert await rate_of(operator) == FIRST * 25 // 32


async def test_a_rollout_with_a_rate_or_none_can_find_it_by_itself_from_then_on(operator: Operator) -> None:
    await operator.start(20, into=2)
    await operator.order(RolloutOrder.SET, adapts=True)
    assert await rate_of(operator) == FIRST
    await operator.bench.handle(CopyingSeen(0.9, (), None))
    assert await rate_of(operator) == FIRST // 2
    await operator.order(RolloutOrder.SET, throttle=FIRST // 2)
    await operator.bench.handle(CopyingSeen(0.9, (), None))
    assert await rate_of(operator) == FIRST // 2
    await operator.order(RolloutOrder.SET, adapts=True)
    await operator.bench.handle(CopyingSeen(0.9, (), None))
    assert await rate_of(operator) == FIRST // 4


async def test_a_throttle_that_is_given_again_reaches_brokers_that_a_dead_controller_had_not_told(
    operator: Operator,
) -> None:
    await operator.start(20, into=2, throttle=FIRST)
    await operator.bench.crash(operator.order(RolloutOrder.SET, throttle=5_000_000), after="rollouts")
    await operator.fail_over()
    assert (await operator.describe()).settings.throttle == 5_000_000
    await operator.order(RolloutOrder.SET, throttle=5_000_000)
    assert await rate_of(operator) == 5_000_000


async def test_an_abort_cancels_what_it_can_behind_any_number_that_cannot_be(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.rollout_moves.BEGUN_AT_ONCE", 2)
    await operator.start(6, into=6, out_of=6, leaders=6)
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [0, 1, 2, 3, 4, 5]
    for number in (0, 1):
        await operator.bench.alter_isr(TopicPartition("orders", number), 1, 3)
    await operator.bench.kill(1)
    await operator.order(RolloutOrder.ABORT)
    assert operator.in_flight() == [0, 1], "only the new replica of these could lead"
    await operator.bench.revive(1)
    for number in (0, 1):
        await operator.bench.alter_isr(TopicPartition("orders", number), 3, 1)
    await operator.bench.handle(RolloutLook())
    assert (operator.in_flight(), (await operator.describe()).phase) == ([], "aborted")


async def test_it_goes_on_without_the_brokers_that_are_dead_when_the_operator_says_so(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.bench.kill(4)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).why == "broker 4 died"
    request = ChangeRolloutRequest("monday", RolloutOrder.RESUME, without_dead=True)
    await operator.bench.ask(request, ChangeRolloutResponse)
    await operator.catch_up(0)
    assert operator.in_flight() == [1, 2, 3]
    await operator.bench.kill(5)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).why == "broker 5 died"


async def test_it_goes_on_under_min_isr_when_the_operator_says_so(operator: Operator) -> None:
    await operator.bench.run(change("settings", [Step(facts=(MinIsrRead("orders", 2),))]))
    await operator.bench.alter_isr(TopicPartition("orders", 19), 1)
    await operator.start(3)
    await operator.order(RolloutOrder.RESUME)
    assert operator.in_flight() == []
    await operator.order(RolloutOrder.RESUME, ignore_min_isr=True)
    assert operator.in_flight() == [0, 1, 2]
    await operator.fail_over()
    await operator.order(RolloutOrder.SET, into=4)
    await operator.finish()
    assert (await operator.describe()).phase == "done"


async def test_an_order_against_the_phase_is_refused_and_changes_nothing(operator: Operator) -> None:
    await operator.start(4, into=2)
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    with pytest.raises(ApiError, match="rollout monday is undoing: it cannot abort"):
        await operator.order(RolloutOrder.ABORT, into=1)
    assert (await operator.describe()).settings.into == 2


async def test_an_order_may_be_given_again(operator: Operator) -> None:
    await operator.start(4, into=2)
    await operator.finish()
    for _ in range(2):
        await operator.order(RolloutOrder.UNDO)
        assert (await operator.describe()).phase == "undoing"


async def test_an_abort_does_not_stop_an_undo_without_a_word(operator: Operator) -> None:
    await operator.start(3)
    await operator.bench.alter_isr(TopicPartition("orders", 0), 1, 3)
    await operator.bench.kill(1, 2)
    await operator.order(RolloutOrder.UNDO)
    assert (await operator.describe()).phase == "aborting to undo"
    with pytest.raises(ApiError, match="rollout monday is aborting to undo: it cannot abort"):
        await operator.order(RolloutOrder.ABORT)


@pytest.mark.parametrize("setting", ["into", "out_of", "leaders", "in_all", "bytes", "throttle"])
async def test_a_limit_that_lets_nothing_begin_is_refused(operator: Operator, setting: str) -> None:
    none: dict[str, Any] = {setting: 0}
    with pytest.raises(ApiError, match="must be greater than 0"):
        await operator.start(4, **none)
    assert operator.bench.context.rollouts.by_name == {}
    await operator.start(4)
    with pytest.raises(ApiError, match="must be greater than 0"):
        await operator.order(RolloutOrder.SET, **none)


async def test_a_throttle_to_be_found_begins_with_one(operator: Operator) -> None:
    await operator.start(20, into=2, adapts=True)
    assert await rate_of(operator) == FIRST


async def test_limits_change_while_it_runs(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.order(RolloutOrder.SET, into=5)
    assert operator.in_flight() == [0, 1, 2, 3, 4]


async def settings(bench: Bench, path: str) -> dict[str, str]:
    """Read settings from the store."""
    return formats.decode_config(path, (await bench.znode(path)).data)


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


@define
class Large:
    """A rollout whose plan has several parts, of which only the first is read while enough moves wait in it."""

    operator: Operator

    async def start(self, target: Callable[[int], tuple[int, ...]] = lambda _: TARGET) -> None:
        """Start it: four parts of five moves each."""
        for first in range(0, 20, 5):
            moves = tuple(RolloutMove("orders", number, target(number)) for number in range(first, first + 5))
            await self.operator.bench.ask(UploadRolloutRequest("monday", "digest", first, moves), UploadRolloutResponse)
        settings = RolloutSettings(into=2)
        await self.operator.bench.ask(StartRolloutRequest("monday", "digest", 20, settings), StartRolloutResponse)

    @property
    def open(self) -> list[int]:
        """The parts that are in memory."""
        return list(self.operator.bench.context.rollouts.by_name["monday"].parts)


@pytest.fixture
def large(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Large:
    monkeypatch.setattr("controller.handlers.rollouts.LOOKED_AHEAD", 2)
    return Large(operator)


async def test_a_plan_is_read_part_by_part_and_forgotten_again(large: Large) -> None:
    await large.start()
    assert large.open == [0]
    seen = [large.open]
    while large.operator.in_flight():
        await large.operator.catch_up(large.operator.in_flight()[0])
        seen.append(large.open)
    assert [parts for parts, before in pairwise(reversed(seen)) if parts != before] == [
        [],
        [15],
        [10, 15],
        [10],
        [5, 10],
        [5],
        [0, 5],
    ]
    assert (await large.operator.describe()).counts == (("done", 20),)


@pytest.mark.parametrize(("most", "opened"), [(20, [0, 5, 10]), (8, [0, 5]), (5, [0])])
async def test_moves_that_cannot_begin_keep_others_out_of_memory_only_if_they_are_very_many(
    large: Large, monkeypatch: pytest.MonkeyPatch, most: int, opened: list[int]
) -> None:
    monkeypatch.setattr("controller.handlers.rollouts.MOST_STUCK", most)
    await large.operator.bench.kill(5)
    await large.start(lambda number: (3, 5) if number < 10 else TARGET)
    assert large.open == opened
    assert large.operator.in_flight() == ([10, 11] if 10 in opened else [])


async def test_moves_behind_others_that_cannot_end_keep_no_others_out_of_memory(large: Large) -> None:
    await large.start(lambda number: (3, 4) if number < 2 else (3, 2) if number < 5 else (5, 2))
    assert (large.open, large.operator.in_flight()) == ([0], [0, 1])
    await large.operator.bench.kill(4)
    request = ChangeRolloutRequest("monday", RolloutOrder.RESUME, without_dead=True)
    await large.operator.bench.ask(request, ChangeRolloutResponse)
    await large.operator.bench.handle(RolloutLook())
    assert (large.open, large.operator.in_flight()) == ([0, 5], [0, 1, 5, 6])


async def test_the_next_controller_reads_the_open_parts_only(large: Large) -> None:
    await large.start()
    await large.operator.catch_up()
    await large.operator.catch_up()
    before = (large.open, large.operator.in_flight(), (await large.operator.describe()).counts)
    await large.operator.fail_over()
    assert (large.open, large.operator.in_flight(), (await large.operator.describe()).counts) == before
    await large.operator.finish()
    assert (await large.operator.describe()).counts == (("done", 20),)


async def test_the_next_controller_reads_states_and_open_parts_and_nothing_else(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    await large.start()
    await large.operator.catch_up()
    await large.operator.catch_up(2)
    assert large.open == [0, 5]
    store = large.operator.bench.store
    read = store.read
    found: list[str] = []

    async def noting(wanted: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        found.extend(path for path in wanted if path.startswith(paths.ROLLOUTS))
        return await read(wanted, watch=watch)

    monkeypatch.setattr(store, "read", noting)
    await large.operator.fail_over()
    assert large.open == [0, 5]
    expected = [paths.rollout("monday"), paths.rollout_strangers("monday")]
    for first in large.open:
        expected += [paths.rollout_plan("monday", first), paths.rollout_marks("monday", first)]
    assert found == expected


async def test_a_move_by_hand_counts_even_before_its_part_is_read(large: Large) -> None:
    await large.start()
    tp = TopicPartition("orders", 17)
    await large.operator.bench.move(tp, (5, 2))
    await large.operator.catch_up(17)
    await large.operator.bench.move(tp, ORIGIN)
    await large.operator.catch_up(17)
    await large.operator.fail_over()
    await large.operator.finish()
    assert (await large.operator.describe()).counts == (("done", 19), ("overridden", 1))
    assert await large.operator.bench.read_assignment(tp) == ReplicaAssignment(ORIGIN)


async def test_an_undo_reads_the_parts_again_that_have_something_to_take_back(large: Large) -> None:
    await large.start()
    for _ in range(4):
        await large.operator.catch_up()
    await large.operator.order(RolloutOrder.UNDO)
    await large.operator.fail_over()
    await large.operator.finish()
    described = await large.operator.describe()
    assert (described.phase, described.counts) == ("undone", (("pending", 12), ("back", 8)))


async def test_a_part_that_cannot_be_read_is_left_out(large: Large) -> None:
    await large.start()
    await large.operator.bench.store.multi([Set(paths.rollout_plan("monday", 10), b"damaged", -1)])
    with capture_logs() as logs:
        await large.operator.finish()
    assert [log["event"] for log in logs if log["log_level"] == "error"] == [
        "a part of a rollout is left out: it cannot be read"
    ]
    assert (await large.operator.describe()).counts == (("done", 15), ("failed", 5))


async def test_nothing_begins_until_the_operators_signal_says_yes(operator: Operator) -> None:
    await operator.start(3, go_url="http://monitoring/go")
    assert (await operator.describe()).why == "its signal has not been asked for yet"
    await operator.bench.handle(RolloutSignalled("monday", "http://monitoring/go answers 503"))
    assert ((await operator.describe()).why, operator.in_flight()) == ("http://monitoring/go answers 503", [])
    await operator.bench.handle(RolloutSignalled("monday", ""))
    assert operator.in_flight() == [0, 1, 2]


async def test_partitions_under_min_isr_hold_it_up(operator: Operator) -> None:
    tp = TopicPartition("orders", 19)
    await operator.bench.run(change("settings", [Step(facts=(MinIsrRead("orders", 2),))]))
    await operator.bench.alter_isr(tp, 1)
    await operator.start(3)
    assert ((await operator.describe()).why, operator.in_flight()) == ("orders-19 is under min ISR", [])
    await operator.bench.alter_isr(tp, 1, 2)
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [0, 1, 2]


async def test_what_lacks_replicas_goes_first_whatever_holds_the_others(operator: Operator) -> None:
    await operator.bench.run(change("settings", [Step(facts=(MinIsrRead("orders", 2),))]))
    await operator.bench.alter_isr(TopicPartition("orders", 7), 1)
    await operator.start(10)
    assert operator.in_flight() == [7]


async def test_a_look_at_a_rollout_is_no_decision(operator: Operator) -> None:
    await operator.start(3)
    log = EventLog()
    operator.bench.runner.instrument = log
    for event in (RolloutLook(), room_of(1_000), RolloutsDue(), RolloutSignalled("monday", "busy")):
        log.started(event, 0)
        await operator.bench.handle(event)
        log.finished(event, 0)
    assert [decision.event for decision in log.decisions.latest()] == ["RolloutSignalled"]


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


def room_of(*directories: int) -> RoomSeen:
    """Tell the free bytes in the directories of broker 3."""
    return RoomSeen(((3, sum(directories), max(directories)),))


async def test_a_move_waits_until_its_broker_has_room(operator: Operator) -> None:
    await operator.start(6, into=2)
    await operator.bench.handle(room_of(350))
    await operator.catch_up(0)
    assert operator.in_flight() == [1, 2]
    await operator.catch_up(1)
    assert operator.in_flight() == [2]
    assert (await operator.describe()).waits == (("broker 3 has room for 50 bytes, and it needs 100", 3),)
    await operator.bench.handle(room_of(250))
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [2, 3]


async def test_a_move_waits_for_room_in_one_directory(operator: Operator) -> None:
    await operator.start(3, into=1)
    await operator.bench.handle(room_of(90, 90, 90))
    await operator.catch_up(0)
    assert operator.in_flight() == []
    assert (await operator.describe()).waits == (("broker 3 has room for 90 bytes, and it needs 100", 2),)
    await operator.bench.handle(room_of(90, 110, 90))
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [1]


async def test_brokers_are_asked_for_their_room_while_moves_wait_for_it(operator: Operator) -> None:
    await operator.start(2, into=1)
    await operator.bench.handle(room_of(50))
    await operator.catch_up(0)
    assert operator.in_flight() == []
    moves = await operator.bench.handle(ReassignmentProgress())
    assert isinstance(moves, Moves)
    assert not moves.partitions
    assert moves.asked == {3}
    assert ReassignmentProgress() in [event for _, event in alarms(operator.bench.context, RolloutLook())]
    await operator.bench.handle(room_of(100))
    await operator.bench.handle(RolloutLook())
    await operator.finish()
    assert ReassignmentProgress() not in [event for _, event in alarms(operator.bench.context, RolloutLook())]


ASKED = "broker 3 has been asked for the room on its disks"


@pytest.fixture
def silent(operator: Operator) -> Operator:
    """Return the operator of a cluster whose brokers do not answer by themselves."""
    operator.bench.do_brokers_answer = False
    return operator


async def asked(operator: Operator) -> set[int]:
    """Return the brokers that are asked for their room."""
    moves = await operator.bench.handle(ReassignmentProgress())
    assert isinstance(moves, Moves)
    return set(moves.asked)


async def test_no_move_begins_before_its_broker_has_told_its_room(silent: Operator) -> None:
    await silent.start(6, into=3)
    assert silent.in_flight() == []
    assert (await silent.describe()).waits == ((ASKED, 6),)
    assert await asked(silent) == {3}
    assert (ASKED_SECONDS, ReassignmentProgress()) in alarms(silent.bench.context, RolloutLook())
    await silent.bench.handle(room_of(250))
    assert silent.in_flight() == [0, 1]
    assert (await silent.describe()).waits == (("broker 3 has room for 50 bytes, and it needs 100", 4),)
    assert (1.0, ReassignmentProgress()) in alarms(silent.bench.context, RolloutLook())


async def test_a_broker_that_does_not_tell_its_room_holds_nothing_up(silent: Operator) -> None:
    await silent.start(6, into=3)
    await silent.bench.handle(RoomSeen((), untold=(3,)))
    assert silent.in_flight() == [0, 1, 2]
    await silent.catch_up(1)
    assert silent.in_flight() == [0, 2, 3]


async def test_all_brokers_that_receive_are_asked_at_once(silent: Operator) -> None:
    moves = [RolloutMove("orders", number, (1, *new), size=100) for number, new in enumerate(((3, 4), (5,), (2,)))]
    await silent.upload(*moves, *(RolloutMove("orders", number, (6, 2)) for number in (3, 4)))
    request = StartRolloutRequest("monday", "digest", 5, RolloutSettings(into=1))
    await silent.bench.ask(request, StartRolloutResponse)
    # The last ones, of unknown size, cannot be held against any room.
    assert await asked(silent) == {3, 4, 5}
    assert silent.in_flight() == [3]


async def test_the_next_controller_asks_for_room_again(silent: Operator) -> None:
    await silent.start(6, into=2)
    await silent.bench.handle(room_of(1_000))
    await silent.fail_over()
    await silent.catch_up(0)
    assert silent.in_flight() == [1]
    assert (await silent.describe()).waits == ((ASKED, 4),)
    assert await asked(silent) == {3}


async def test_the_way_back_and_the_next_rollout_ask_for_room_again(silent: Operator) -> None:
    await silent.start(2)
    await silent.start(2, name="tuesday", first=2)
    await silent.bench.handle(RoomSeen(((1, 1_000, 1_000), (3, 1_000, 1_000))))
    await silent.catch_up(0, 1)
    assert (silent.in_flight(), await asked(silent)) == ([], {3})
    await silent.order(RolloutOrder.ABORT, name="tuesday")
    await silent.order(RolloutOrder.UNDO)
    assert (silent.in_flight(), await asked(silent)) == ([], {1})
    await silent.bench.handle(RoomSeen(((1, 1_000, 1_000),)))
    assert silent.in_flight() == [0]


async def test_nobody_is_asked_for_a_rollout_that_is_paused_or_held(silent: Operator) -> None:
    await silent.start(4, go_url="http://monitoring/go")
    assert await asked(silent) == set()
    await silent.bench.handle(RolloutSignalled("monday", ""))
    assert await asked(silent) == {3}
    await silent.order(RolloutOrder.PAUSE)
    assert await asked(silent) == set()
    assert ReassignmentProgress() not in [event for _, event in alarms(silent.bench.context, RolloutLook())]


async def test_a_broker_that_is_not_polled_any_more_is_asked_again(silent: Operator) -> None:
    await silent.start(4, into=1)
    await silent.bench.handle(room_of(1_000))
    await silent.bench.handle(RoomSeen(()))
    await silent.catch_up(0)
    assert (silent.in_flight(), await asked(silent)) == ([], {3})


async def test_a_rollout_that_ignores_room_asks_nobody(silent: Operator) -> None:
    await silent.start(4, into=2, ignore_room=True)
    assert silent.in_flight() == [0, 1]
    assert await asked(silent) == set()


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


def lacking(**bytes_: int) -> RoomSeen:
    """Tell the bytes that moves in flight lack, and no room."""
    left = tuple((TopicPartition("orders", int(name[1:])), left) for name, left in bytes_.items())
    return RoomSeen((), left, BROKERS)


async def test_what_moves_in_flight_have_copied_is_not_left(operator: Operator) -> None:
    await operator.start(4, into=2)
    assert (await operator.describe()).bytes_left == 400
    await operator.bench.handle(lacking(p0=40, p1=130))
    assert (await operator.describe()).bytes_left == 340
    await operator.catch_up(0)
    assert (await operator.describe()).bytes_left == 300
    await operator.finish()
    assert (await operator.describe()).bytes_left == 0


async def test_what_an_earlier_controller_has_copied_is_no_progress_of_this_one(operator: Operator) -> None:
    await operator.start(4, into=2)
    await operator.fail_over()
    await operator.bench.handle(lacking(p0=40))
    rollout = operator.bench.context.rollouts.by_name["monday"]
    rollout.time_left.add(rollout.ran + 10, rollout.left)
    assert (rollout.left, rollout.time_left.rate) == (340, 0)
    await operator.bench.handle(lacking(p0=20, p1=50))
    rollout.time_left.add(rollout.ran + 20, rollout.left)
    assert (rollout.left, rollout.time_left.rate) == (270, 1)


async def test_the_way_back_has_a_rate_of_its_own(operator: Operator) -> None:
    await operator.start(4)
    await operator.finish()
    rollout = operator.bench.context.rollouts.by_name["monday"]
    rollout.ran = 10
    rollout.time_left.add(rollout.ran, 0)
    assert rollout.time_left.rate == 40
    await operator.order(RolloutOrder.UNDO)
    assert rollout.time_left.rate is None


async def test_all_moves_that_wait_are_counted_not_only_those_looked_at(operator: Operator) -> None:
    await operator.start(20, into=3)
    full = "broker 3 receives 3 replicas, the most at once"
    assert (await operator.describe()).waits == ((full, 17),)
    await operator.catch_up(0)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).waits == ((full, 16),)
    await operator.bench.kill(5)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).waits == (("broker 5 died", 16),)
    await operator.order(RolloutOrder.PAUSE)
    assert (await operator.describe()).waits == ()


async def test_bytes_that_nobody_will_copy_are_no_progress(operator: Operator) -> None:
    await operator.start(4, into=2)
    rollout = operator.bench.context.rollouts.by_name["monday"]
    await operator.bench.move(TopicPartition("orders", 3), (5, 2))
    assert (await operator.states())[3].startswith("overridden")
    rollout.time_left.add(rollout.ran + 10, rollout.left)
    assert (rollout.left, rollout.time_left.rate) == (300, 0)
    await operator.finish()
    await operator.bench.kill(1)
    await operator.order(RolloutOrder.UNDO)
    rollout.time_left.add(rollout.ran + 10, rollout.left)
    assert (rollout.left, rollout.time_left.rate) == (0, 0)
