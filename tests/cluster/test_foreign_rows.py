"""Rows in a real ZooKeeper that others write, or protect with their own ACL: processes continue without them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from attrs import define

from controller.monitoring import state_dump
from klamm.cli.demo.clusters import log_dir
from tests.cluster.running import CONTROLLER, FIRST, SECOND, RealCluster
from tests.cluster.waiting import until
from tests.kit.acls import give_away, give_back
from transport.errors import ErrorCode
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import ANY_VERSION, Create, Set

BROKERS = (1, 2, 3)
OURS, THEIRS = TopicPartition("ours", 0), TopicPartition("theirs", 0)
STANDARD_BASE64 = "ab/d+fgAAAAAAAAAAAAAAA=="
HUGE = 10**30


@define
class Shared(RealCluster):
    """Two topics, one of which comes into other hands."""

    async def epoch(self) -> int:
        return formats.decode_controller_epoch((await self.znode(paths.CONTROLLER_EPOCH)).data)

    async def create(self, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
        await self.create_topic(tp.topic, replicas)
        await self.until_on(tp, replicas)

    async def move(self, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
        assert (await self.reassign(replicas, tp)).error is ErrorCode.NONE
        await self.until_on(tp, replicas)

    async def until_on(self, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
        """Wait until a partition is on these brokers, all in sync, and led by one of them."""

        async def is_on() -> bool:
            states = await self.states(tp.topic)
            return any(p.replicas == replicas and {*p.isr} == {*replicas} and p.leader in replicas for p in states)

        await until(is_on)

    async def work_under_the_next_controller(self, epoch: int) -> None:
        """Replace the first controller by the second, whatever stands in its way, and move and create topics."""
        self.start(SECOND, *CONTROLLER)
        await self.fail_over()
        await self.until_live(BROKERS)
        await self.move(OURS, (1, 3))
        await self.create(TopicPartition("later", 0), (3, 1))
        assert await self.epoch() == epoch + 1


@asynccontextmanager
async def shared(address: str, data_dir: Path) -> AsyncIterator[Shared]:
    async with Shared.running(address, data_dir) as cluster:
        for broker_id in BROKERS:
            cluster.start(broker_id, "klamm", "broker", "run", "--log-dir", str(log_dir(data_dir, broker_id)))
        await cluster.until_live(BROKERS)
        for tp in (OURS, THEIRS):
            await cluster.create(tp, (1, 2))
        yield cluster


@pytest.mark.requirement("D1", "D7")
async def test_topics_of_somebody_else_keep_nobody_from_office(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/foreign-acls"
    async with shared(address, tmp_path) as cluster:
        # While it is in office: what concerns the topic is refused, all else is done.
        epoch = await cluster.epoch()
        await give_away(address, paths.topic(THEIRS.topic))
        refused = await cluster.reassign((2, 3), THEIRS)
        assert refused.error is not ErrorCode.NONE
        assert "see the controller's log" in refused.message
        await cluster.move(OURS, (2, 3))
        assert await cluster.epoch() == epoch

        # And for who takes office after it.
        await cluster.work_under_the_next_controller(epoch)
        shown = (await state_dump.dump(cluster.store))["undecodable"]
        assert shown == [f"{paths.topic(THEIRS.topic)}: may not be read: its ACL forbids it to this identity"]

        # Given back it counts again, as soon as it is written: no watch sees an ACL change.
        await give_back(address, paths.topic(THEIRS.topic))
        znode = await cluster.znode(paths.topic(THEIRS.topic))
        await cluster.store.multi([Set(paths.topic(THEIRS.topic), znode.data, znode.stat.version)])
        await cluster.until_on(THEIRS, (1, 2))
        await cluster.move(THEIRS, (2, 3))
        assert await cluster.epoch() == epoch + 1
        logs = [cluster.log(id_) for id_ in (FIRST, SECOND)]
    assert "may not be touched: its ACL forbids it" in logs[0]
    assert not any("resigning after a fault" in log or "loading again" in log for log in logs)


@pytest.mark.soak
@pytest.mark.requirement("D7")
async def test_numbers_beyond_all_bounds_cost_neither_office_nor_channels(zookeeper: str, tmp_path: Path) -> None:
    async with shared(f"{zookeeper}/foreign-rows", tmp_path) as cluster:
        epoch = await cluster.epoch()
        state = {"controller_epoch": epoch, "leader": 1, "version": 1, "leader_epoch": 2**64 - 1, "isr": [1, 1]}
        broker = {"version": 5, "endpoints": [f"KLAMM://127.0.0.1:{HUGE}"]}
        slashed = {"version": 3, "topic_id": STANDARD_BASE64, "partitions": {"0": [1, 2]}}
        empty = {"version": 1, "partitions": {"0": [], str(HUGE): [1]}}
        await cluster.store.multi(
            [
                Set(paths.partition_state(THEIRS), orjson.dumps(state), ANY_VERSION),
                Create(paths.broker(9), orjson.dumps(broker)),
                Create(f"{paths.BROKER_IDS}/99999999999999999999", orjson.dumps(broker)),
                Create(paths.topic("slashed"), orjson.dumps(slashed)),
                Create(paths.topic("empty"), orjson.dumps(empty)),
                Create(f"{paths.STRAYS}/{STANDARD_BASE64.replace('/', '_')}:empty:{HUGE}:1"),
            ]
        )
        assert (await cluster.reassign((2, 3), TopicPartition("slashed", 0))).error is not ErrorCode.NONE
        await cluster.move(OURS, (2, 3))
        assert await cluster.epoch() == epoch

        await cluster.work_under_the_next_controller(epoch)
        shown = " ".join((await state_dump.dump(cluster.store))["undecodable"])
        logs = [cluster.log(id_) for id_ in (FIRST, SECOND)]
    for path in (paths.partition_state(THEIRS), paths.broker(9), paths.topic("slashed"), paths.topic("empty")):
        assert f"{path}: " in shown
    for name in ("99999999999999999999", f"empty:{HUGE}:1"):
        assert f"{name}: its name is" in shown
    assert not any("resigning after a fault" in log or "restarting after a fault" in log for log in logs)
