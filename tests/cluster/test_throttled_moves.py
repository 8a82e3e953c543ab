"""`klamm reassignment execute --throttle` with processes on ZooKeeper: slower, and nothing is left of it in the end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import CONTROLLERS
from klamm.cli.demo.load import Load
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from tests.cluster.waiting import PATIENCE_SECONDS, until, until_controller
from transport.errors import ErrorCode
from transport.messages import UNTHROTTLED, NewTopic
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper

BROKERS = (1, 2, 3)
ORDERS, PAYMENTS = "orders", "payments"
SLOW, FAST = 1_000, 100_000_000
"""Bytes per second: at the one the partition takes minutes, at the other no time."""

RECORDS, BATCH = 2_000, 100


class Office:
    """A cluster with two topics of one partition each on brokers 1 and 2, of the same size."""

    def __init__(self, address: str, store: MetadataStore, place: Path) -> None:
        self.address = address
        self.store = store
        self.place = place
        self.admin = AdminClient(TcpNetwork(), (), store, PATIENCE_SECONDS)

    async def begin(self) -> None:
        async def are_live() -> bool:
            return len((await self.admin.read_metadata([])).brokers) == len(BROKERS)

        await until(are_live)
        created = await self.admin.create_topics([NewTopic(name, 1, 2, ((1, 2),)) for name in (ORDERS, PAYMENTS)])
        assert {item.error for item in created.topics} == {ErrorCode.NONE}
        addresses = [(broker.host, broker.port) for broker in (await self.admin.read_metadata([])).brokers]
        for name in (ORDERS, PAYMENTS):
            await Load(TcpNetwork(), addresses, name).fill(RECORDS, BATCH)

    async def klamm(
        self, verb: str, topic: str, *arguments: str, replicas: tuple[int, ...] = (3, 2)
    ) -> tuple[int, str]:
        """Run a verb about the move of a topic; return its exit code and what it said."""
        file = self.place / f"{topic}.json"
        file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]}))
        command = [sys.executable, "-m", "klamm", "reassignment", verb, "--reassignment-json-file", str(file)]
        command += [*arguments, "--zookeeper", self.address]
        run = partial(subprocess.run, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        done = await trio.to_thread.run_sync(run)
        return done.returncode, done.stdout

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
async def office(zookeeper: str, tmp_path: Path) -> AsyncIterator[Office]:
    address = f"{zookeeper}/throttled-moves"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        cluster.start(CONTROLLERS[0], "klamm", "controller", "run")
        await until_controller(store, CONTROLLERS[0])
        cluster.start_brokers(BROKERS)
        office = Office(address, store, tmp_path)
        await office.begin()
        yield office


@pytest.mark.requirement("A11")
async def test_a_throttled_move_is_slower_and_leaves_no_settings(office: Office) -> None:
    assert (await office.klamm("execute", ORDERS, "--throttle", str(SLOW), "--no-wait"))[0] == 0
    set_ = await office.settings()
    assert set_["orders"]["leader.replication.throttled.replicas"] == "0:1,0:2"
    assert set_["orders"]["follower.replication.throttled.replicas"] == "0:3"
    assert set_["1"]["leader.replication.throttled.rate"] == set_["3"]["follower.replication.throttled.rate"] == "1000"

    [move] = (await office.admin.describe_reassignments()).values()
    assert (move.leader_throttle, [item.throttle for item in move.progress]) == (SLOW, [SLOW, UNTHROTTLED])

    # One of the same size that is begun later overtakes it, and verify lifts nothing yet.
    code, said = await office.klamm("execute", PAYMENTS)
    assert code == 0, said
    code, said = await office.klamm("verify", ORDERS)
    assert (code, "in progress" in said) == (1, True), said
    assert await office.settings() == set_

    # Asked for again, it goes on at another rate, and ends with its throttle.
    code, said = await office.klamm("execute", ORDERS, "--throttle", str(FAST))
    assert (code, "the throttle of moves that are over was lifted" in said) == (0, True), said
    assert await office.settings() == {}

    # Who does not wait leaves it to verify.
    assert (await office.klamm("execute", ORDERS, "--throttle", str(FAST), "--no-wait", replicas=(1, 2)))[0] == 0

    async def is_over() -> bool:
        return not await office.admin.list_partition_reassignments()

    await until(is_over)
    assert (await office.klamm("verify", ORDERS, "--preserve-throttles", replicas=(1, 2)))[0] == 0
    assert "orders" in await office.settings()
    assert (await office.klamm("verify", ORDERS, replicas=(1, 2)))[0] == 0
    assert await office.settings() == {}
