"""Throttled replicas respect their rate until they are in the ISR, on virtual time (KIP-73, KIP-542)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from klamm.testing import SimulatedCluster, open_cluster
from transport.errors import ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
)

pytestmark = pytest.mark.usefixtures("autojump_clock")

NAME = "orders-0"
RECORD = bytes(1000)
RECORDS = 200
RATE = 20_000
SLOWED_SECONDS = RECORDS * len(RECORD) / RATE

LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


async def alter(c: SimulatedCluster, type_: ConfigResourceType, name: str, setting: str, value: str) -> None:
    config = AlterableConfig(setting, ConfigOperation.SET, value)
    [result] = await c.admin.incremental_alter_configs([AlterConfigsResource(ConfigResource(type_, name), (config,))])
    assert result.error is ErrorCode.NONE


async def throttle(c: SimulatedCluster, who: str, brokers: Sequence[str], replicas: str, rate: int = RATE) -> None:
    for broker in brokers:
        await alter(c, ConfigResourceType.BROKER, broker, f"{who}.rate", str(rate))
    await alter(c, ConfigResourceType.TOPIC, "orders", f"{who}.replicas", replicas)


async def fill(c: SimulatedCluster) -> None:
    await c.create_topic("orders", [(1,)])
    await c.produce(NAME, [RECORD] * RECORDS)


async def seconds_of_move(c: SimulatedCluster, *replicas: int) -> float:
    began = trio.current_time()
    await c.reassign({NAME: replicas})
    await c.until_moved(NAME)
    return trio.current_time() - began


THROTTLES = {
    "nothing": ([], False),
    "the follower": ([(FOLLOWER, ["2"], "0:2")], True),
    "the leader": ([(LEADER, ["1"], "0:1")], True),
    "both": ([(LEADER, ["1"], "0:1"), (FOLLOWER, ["2"], "0:2")], True),
    "all replicas": ([(FOLLOWER, ["2"], "*")], True),
    "by default": ([(FOLLOWER, [""], "0:2")], True),
    "another partition": ([(FOLLOWER, ["2"], "1:2")], False),
    "another broker": ([(FOLLOWER, ["3"], "0:2"), (LEADER, ["1"], "0:2")], False),
    "a rate alone": ([(FOLLOWER, ["2"], "")], False),
}


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(("throttles", "is_slow"), THROTTLES.values(), ids=THROTTLES.keys())
async def test_a_move_is_slowed_by_what_throttles_it(
    throttles: list[tuple[str, list[str], str]], is_slow: bool
) -> None:
    async with open_cluster(brokers=3) as c:
        await fill(c)
        for who, brokers, replicas in throttles:
            await throttle(c, who, brokers, replicas)
        took = await seconds_of_move(c, 1, 2)
        if is_slow:
            assert 0.9 * SLOWED_SECONDS < took < 1.3 * SLOWED_SECONDS
        else:
            assert took < SLOWED_SECONDS / 4
        await c.settle()


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("who", [LEADER, FOLLOWER])
async def test_who_is_in_the_isr_is_not_throttled(who: str) -> None:
    async with open_cluster(brokers=2) as c:
        await c.create_topic("orders", [(1, 2)])
        await throttle(c, who, ["1", "2"], "*")
        began = trio.current_time()
        for _ in range(4):
            await c.produce(NAME, [RECORD] * (RECORDS // 4))
        assert trio.current_time() - began < SLOWED_SECONDS / 4
        await c.settle()


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("who", [LEADER, FOLLOWER])
async def test_a_rate_can_be_altered_and_taken_away_while_a_move_waits_for_it(who: str) -> None:
    async with open_cluster(brokers=2) as c:
        await fill(c)
        await throttle(c, who, ["1", "2"], "0:1,0:2", rate=0)
        await c.reassign({NAME: (1, 2)})
        await trio.sleep(30)
        state = c.partition(NAME)
        assert state is not None
        assert state.isr == (1,)
        began = trio.current_time()
        await throttle(c, who, ["1", "2"], "")
        await c.until_moved(NAME)
        assert trio.current_time() - began < SLOWED_SECONDS / 4
        await c.settle()


@pytest.mark.requirement("A11")
async def test_a_broker_that_starts_again_keeps_to_its_rate() -> None:
    async with open_cluster(brokers=2) as c:
        await fill(c)
        await throttle(c, FOLLOWER, ["2"], "0:2")
        began = trio.current_time()
        await c.reassign({NAME: (1, 2)})
        await trio.sleep(1)
        c.crash(2)
        c.restart(2)
        await c.until_moved(NAME)
        assert trio.current_time() - began > 0.9 * SLOWED_SECONDS
        await c.settle()
