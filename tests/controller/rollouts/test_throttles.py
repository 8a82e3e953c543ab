"""Throttles of rollouts: set with the moves, gone after them, and rates that are found."""

from __future__ import annotations

import pytest

from controller.events import CopyingSeen, RolloutLook
from controller.node.alarms import alarms
from controller.rollout.adapting import FIRST
from tests.controller.rollouts.operator import Operator, settings
from transport.errors import ApiError
from transport.messages import (
    UNTHROTTLED,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    StartRolloutResponse,
)
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set
from transport.store.tree import Access


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
    await operator.start(2, into=2, throttle=1_000)
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
    await operator.start(2, into=2, throttle=1_000)
    tree, path = operator.bench.seen.zookeeper.tree, paths.broker_config(3)
    tree.allow(path, Access.NONE)
    await operator.finish()
    with pytest.raises(ApiError, match="has left rates of brokers that cannot be restored now"):
        await operator.order(RolloutOrder.REMOVE)
    tree.allow(path, Access.ALL)
    await operator.order(RolloutOrder.REMOVE)
    assert operator.bench.context.rollouts.by_name == {}
    assert await settings(operator.bench, path) == {}


@pytest.mark.parametrize("access", [Access.READ, Access.NONE])
async def test_a_move_waits_for_a_live_broker_that_cannot_be_throttled_and_others_go_on(
    operator: Operator, access: Access
) -> None:
    tree, path = operator.bench.seen.zookeeper.tree, paths.broker_config(3)
    await operator.bench.store.multi([Create(path, formats.encode_config({}))])
    tree.allow(path, access)
    moves = [RolloutMove("orders", n, (3, 2), size=100) for n in range(4)]
    moves += [RolloutMove("orders", n, (4, 2), size=100) for n in range(4, 6)]
    await operator.upload(*moves)
    request = StartRolloutRequest("monday", "digest", 6, RolloutSettings(throttle=1_000, in_all=2))
    await operator.bench.ask(request, StartRolloutResponse)
    assert operator.in_flight() == [4, 5]
    await operator.finish()
    assert (await operator.describe()).counts == (("pending", 4), ("done", 2))
    [(text, count)] = (await operator.describe()).waits
    assert (text.partition(": ")[0], count) == ("broker 3 cannot be throttled", 4)
    assert "0:3" not in str(await settings(operator.bench, paths.topic_config("orders")))
    tree.allow(path, Access.ALL)
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [0, 1]
    assert (await settings(operator.bench, path))["follower.replication.throttled.rate"] == "1000"
    await operator.finish()
    assert (await operator.describe()).counts == (("done", 6),)


async def test_a_move_waits_for_a_live_broker_without_an_address_that_cannot_be_throttled(operator: Operator) -> None:
    path = paths.broker_config(2)
    await operator.bench.store.multi([Create(path, formats.encode_config({}))])
    operator.bench.seen.zookeeper.tree.allow(path, Access.READ)
    await operator.bench.store.multi([Set(paths.broker(2), b"{", -1)])
    await operator.bench.fail_over()
    moves = [RolloutMove("orders", n, (3, 4), size=100) for n in range(2)]
    await operator.upload(*moves)
    request = StartRolloutRequest("monday", "digest", 2, RolloutSettings(throttle=1_000))
    await operator.bench.ask(request, StartRolloutResponse)
    assert operator.in_flight() == []
    [(text, count)] = (await operator.describe()).waits
    assert (text.partition(": ")[0], count) == ("broker 2 cannot be throttled", 2)


REPLICAS, RATE = "leader.replication.throttled.replicas", "follower.replication.throttled.rate"


@pytest.mark.parametrize("rate", ["0:1,", "-2", ""])
@pytest.mark.parametrize("replicas", ["TRUE?", "1:1,", ":"])
async def test_invalid_throttles_that_others_wrote_hold_no_move_up(
    operator: Operator, rate: str, replicas: str
) -> None:
    topic = {REPLICAS: replicas, f"klamm.moves.{REPLICAS}": replicas}
    broker = {RATE: rate, f"klamm.before.moves.{RATE}": rate}
    written = {paths.topic_config("orders"): topic, paths.broker_config(3): broker}
    await operator.bench.store.multi([Create(path, formats.encode_config(one)) for path, one in written.items()])
    await operator.start(2, into=2, throttle=1_000)
    assert operator.in_flight() == [0, 1]
    assert (await settings(operator.bench, paths.broker_config(3)))[RATE] == "1000"
    await operator.finish()
    assert (await operator.describe()).phase == "done"
    for path in written:
        assert await settings(operator.bench, path) == {}


async def test_a_dead_broker_that_cannot_be_throttled_holds_no_move_up(operator: Operator) -> None:
    path = paths.broker_config(2)
    await operator.bench.store.multi([Create(path, formats.encode_config({}))])
    operator.bench.seen.zookeeper.tree.allow(path, Access.READ)
    await operator.bench.kill(2)
    moves = [RolloutMove("orders", n, (3, 4), size=100) for n in range(2)]
    await operator.upload(*moves)
    request = StartRolloutRequest("monday", "digest", 2, RolloutSettings(throttle=1_000))
    await operator.bench.ask(request, StartRolloutResponse)
    assert operator.in_flight() == [0, 1]


async def test_a_throttle_that_a_live_broker_does_not_take_in_flight_is_an_error(operator: Operator) -> None:
    await operator.start(2, throttle=1_000)
    operator.bench.seen.zookeeper.tree.allow(paths.broker_config(3), Access.READ)
    with pytest.raises(ApiError, match="but not for all in flight: broker 3 cannot be throttled"):
        await operator.order(RolloutOrder.SET, throttle=2_000)
    with pytest.raises(ApiError, match="but not for all in flight"):
        await operator.order(RolloutOrder.SET, throttle=UNTHROTTLED)


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


async def test_a_throttle_to_be_found_begins_with_one(operator: Operator) -> None:
    await operator.start(20, into=2, adapts=True)
    assert await rate_of(operator) == FIRST


async def test_the_way_back_has_a_rate_of_its_own(operator: Operator) -> None:
    await operator.start(4)
    await operator.finish()
    rollout = operator.bench.context.rollouts.by_name["monday"]
    rollout.ran = 10
    rollout.time_left.add(rollout.ran, 0)
    assert rollout.time_left.rate == 40
    await operator.order(RolloutOrder.UNDO)
    assert rollout.time_left.rate is None
