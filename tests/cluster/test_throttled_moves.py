"""`klamm reassignment execute --throttle` with processes on ZooKeeper: slower, and no throttle remains."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cluster.running import RealCluster
from transport.messages import UNTHROTTLED
from transport.store import formats, paths

BROKERS = (1, 2, 3)
ORDERS, PAYMENTS = "orders", "payments"
SLOW, FAST = 1_000, 100_000_000
"""Bytes per second: at the one the partition takes minutes, at the other no time."""

RECORDS, BATCH = 2_000, 100


class ThrottledCluster(RealCluster):
    """Two topics of one partition each on brokers 1 and 2, of the same size."""

    async def run(self, verb: str, topic: str, *arguments: str, replicas: tuple[int, ...] = (3, 2)) -> tuple[int, str]:
        """Run a verb about the move of a topic; return its exit code and what it said."""
        file = self.data_dir / f"{topic}.json"
        file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]}))
        return await self.klamm("reassignment", verb, "--reassignment-json-file", str(file), *arguments)

    async def settings(self) -> dict[str, dict[str, str]]:
        """Return what Kafka's tools would see of throttles, by topic and broker."""
        wanted = [paths.topic_config(ORDERS), *(paths.broker_config(id_) for id_ in BROKERS)]
        found = await self.store.read(wanted)
        decoded = {
            path: {} if z is None else formats.decode_config(path, z.data)
            for path, z in zip(wanted, found, strict=True)
        }
        return {path.rpartition("/")[2]: own for path, own in decoded.items() if own}


@pytest.fixture
async def cluster(zookeeper: str, tmp_path: Path) -> AsyncIterator[ThrottledCluster]:
    async with ThrottledCluster.running(f"{zookeeper}/throttled-moves", tmp_path, brokers=BROKERS) as cluster:
        for name in (ORDERS, PAYMENTS):
            await cluster.create_topic(name, (1, 2))
            await (await cluster.load(name)).fill(RECORDS, BATCH)
        yield cluster


@pytest.mark.requirement("A11")
async def test_a_throttled_move_is_slower_and_leaves_no_settings(cluster: ThrottledCluster) -> None:
    assert (await cluster.run("execute", ORDERS, "--throttle", str(SLOW), "--no-wait"))[0] == 0
    set_ = await cluster.settings()
    assert set_["orders"]["leader.replication.throttled.replicas"] == "0:1,0:2"
    assert set_["orders"]["follower.replication.throttled.replicas"] == "0:3"
    assert set_["1"]["leader.replication.throttled.rate"] == set_["3"]["follower.replication.throttled.rate"] == "1000"

    [move] = (await cluster.admin.describe_reassignments()).values()
    assert (move.leader_throttle, [item.throttle for item in move.progress]) == (SLOW, [SLOW, UNTHROTTLED])

    # One of the same size that is begun later overtakes it, and verify lifts nothing yet.
    code, said = await cluster.run("execute", PAYMENTS)
    assert code == 0, said
    code, said = await cluster.run("verify", ORDERS)
    assert (code, "in progress" in said) == (1, True), said
    assert await cluster.settings() == set_

    # Asked for again, it goes on at another rate, and ends with its throttle.
    code, said = await cluster.run("execute", ORDERS, "--throttle", str(FAST))
    assert (code, "the throttle of moves that are over was lifted" in said) == (0, True), said
    assert await cluster.settings() == {}

    # Who does not wait leaves it to verify.
    assert (await cluster.run("execute", ORDERS, "--throttle", str(FAST), "--no-wait", replicas=(1, 2)))[0] == 0
    await cluster.until_nothing_moves()
    assert (await cluster.run("verify", ORDERS, "--preserve-throttles", replicas=(1, 2)))[0] == 0
    assert "orders" in await cluster.settings()
    assert (await cluster.run("verify", ORDERS, replicas=(1, 2)))[0] == 0
    assert await cluster.settings() == {}
