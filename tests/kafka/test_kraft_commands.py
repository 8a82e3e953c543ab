"""The commands on real clusters of Apache Kafka's alone, under KRaft and under a controller of its own on ZooKeeper."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from confluent_kafka import Producer

from tests.cli.shell import Shell
from tests.kafka import jars
from tests.kafka.cluster_security import MODULES
from tests.kafka.kraft_cluster import RELEASE, Cluster, kraft_cluster
from tests.kafka.real_brokers import RealBroker, kill
from tests.kafka.real_cluster import until
from tests.kafka.traffic import FLUSH_SECONDS
from transport.messages import UNKNOWN

OLD: Final = "2.4.1"
"""A release whose brokers do not tell their rates."""

KINDS: Final = (RELEASE, jars.RELEASE, OLD)
"""KRaft, and brokers in ZooKeeper mode; all of these tests but the first are for `make soak`."""

PARTITIONS: Final = 6
RECORDS: Final = 2_000
RECORD: Final = b"x" * 10_000
USER, PASSWORD = "alice", "alice-secret"
RATE: Final = 100_000
"""So slow that a move is still under way when the next command begins."""


@asynccontextmanager
async def cluster_on(zookeeper: str, directory: Path, release: str) -> AsyncIterator[Cluster]:
    """Run three brokers in ZooKeeper mode, one of which is the controller."""
    brokers = {n: RealBroker(n, jars.folder(release), zookeeper, directory / f"{n}") for n in (1, 2, 3)}
    try:
        async with trio.open_nursery() as nursery:
            for broker in brokers.values():
                broker.directory.mkdir()
                broker.settings = {"broker.rack": f"r{broker.id}", "log.segment.delete.delay.ms": "500"}
                nursery.start_soon(broker.start)
        yield Cluster(brokers)
    finally:
        for process in (process for broker in brokers.values() for process in broker.processes):
            kill(process)


@asynccontextmanager
async def brokers_on(zookeeper: str, directory: Path, release: str) -> AsyncIterator[str]:
    """Run three brokers in ZooKeeper mode, and return their addresses."""
    async with cluster_on(zookeeper, directory, release) as cluster:
        yield cluster.bootstrap


@asynccontextmanager
async def nodes_in(directory: Path, count: int) -> AsyncIterator[str]:
    """Run nodes under KRaft, and return their addresses."""
    async with kraft_cluster(directory, count) as cluster:
        yield cluster.bootstrap


def require(release: str) -> None:
    """Skip the test unless the jars of a release are there."""
    if jars.fetched(release) is None:
        pytest.skip(f"no jars of Kafka to test on: python -m tests.kafka.jars {release}")


async def rows(shell: Shell, *words: str) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(await shell(*words, "-o", "json"))


async def until_registered(shell: Shell, count: int) -> None:
    """Wait until the brokers know each other."""

    async def are_there() -> bool:
        return len(await rows(shell, "broker", "list")) == count

    await until(are_there)


@pytest.mark.usefixtures("needs_kraft")
async def test_one_node_under_kraft(tmp_path: Path) -> None:
    async with kraft_cluster(tmp_path, 1) as cluster:
        _, _, controller = cluster.nodes[1].settings["listeners"].partition("CONTROLLER://")
        refusal = await Shell(controller)("topic", "list", fails=True)
        cure = "it is a controller of KRaft, name brokers with --bootstrap-server"
        assert refusal == f"Error: {controller} does not offer Metadata: {cure}\n"
        await live_on_one(Shell(cluster.bootstrap), tmp_path)


async def live_on_one(shell: Shell, folder: Path) -> None:
    """Create, read, change, move a log and delete on a cluster of one broker."""
    await shell("topic", "create", "orders", "--partitions", "3", "--config", "min.insync.replicas=2")
    await shell("topic", "add-partitions", "orders", "--partitions", "4")
    assert [(row["topic"], row["partitions"]) for row in await rows(shell, "topic", "list")] == [("orders", 4)]
    topic = ("--entity-type", "topics", "--entity-name", "orders")
    await shell("config", "alter", *topic, "--add-config", "max.message.bytes=2000000")
    settings = {row["name"]: (row["value"], row["source"]) for row in await rows(shell, "config", "describe", *topic)}
    assert settings["max.message.bytes"] == ("2000000", "DYNAMIC_TOPIC_CONFIG")
    found = await rows(shell, "cluster", "describe")
    assert (found["controller"], found["partitions"], found["under_min_isr"]) == (1, 4, 4)
    assert await shell("reassignment", "list") == "no reassignment is in progress\n"
    await use_filters(shell)
    [broker] = await rows(shell, "log-dirs", "describe", "--topic-list", "orders")
    logs = [log for one in broker["log_dirs"] for log in one["logs"]]
    assert sorted((log["partition"], log["bytes"], log["is_future"]) for log in logs) == [
        (number, 0, False) for number in range(4)
    ]
    await move_log(shell, folder)
    dump = json.loads(await shell("state", "dump"))
    assert [row["bytes"] for row in dump["partitions"]] == [0] * 4
    assert sum(one["total_bytes"] > one["usable_bytes"] > 0 for one in dump["brokers"][0]["log_dirs"]) == 2
    assert await shell("topic", "delete", "orders") == "deleted topic orders\n"
    refusal = await shell("topic", "describe", "orders", fails=True)
    assert refusal == "Error: there is no topic orders: see `klamm topic list`\n"


async def move_log(shell: Shell, folder: Path) -> None:
    """Move the log of a partition to the other directory of its broker, and back by the rollback."""
    file, back = folder / "move.json", folder / "back.json"
    before, there = await directories_of_first(shell)
    entry = {"topic": "orders", "partition": 0, "replicas": [1], "log_dirs": [there]}
    await trio.Path(file).write_text(json.dumps({"version": 1, "partitions": [entry]}))
    moved, returned = ("--reassignment-json-file", str(file)), ("--reassignment-json-file", str(back))
    await shell("reassignment", "verify", *moved, fails=True)
    done = await shell("reassignment", "execute", *moved, "--rollback-json-file", str(back))
    assert "orders-0: complete" in done
    assert await directories_of_first(shell) == (there, before)
    assert await shell("reassignment", "verify", *moved) == "orders-0: complete\n"
    await shell("reassignment", "execute", *returned)
    assert await directories_of_first(shell) == (before, there)


async def directories_of_first(shell: Shell) -> tuple[str, str]:
    """Return the directory of the topic's first partition at broker 1, and the other one of the broker."""
    [broker] = await rows(shell, "log-dirs", "describe", "--topic-list", "orders", "--broker-list", "1")
    has_first = {one["path"]: any(log["partition"] == 0 for log in one["logs"]) for one in broker["log_dirs"]}
    first, other = sorted(has_first, key=lambda path: not has_first[path])
    return first, other


async def use_filters(shell: Shell) -> None:
    """List the partitions of a topic whose replica is fewer than it should have in sync."""
    short = await rows(shell, "topic", "describe", "--under-min-isr-partitions", "--exclude-internal")
    assert [(row["topic"], row["partition"]) for row in short] == [("orders", number) for number in range(4)]
    for flag in ("--under-replicated-partitions", "--unavailable-partitions", "--at-min-isr-partitions"):
        assert await rows(shell, "topic", "describe", flag) == []
    assert await shell("topic", "create", "orders", "--if-not-exists") == "topic orders exists already\n"
    assert await shell("topic", "delete", "nowhere", "--if-exists") == "there is no topic nowhere\n"
    assert await shell("topic", "add-partitions", "nowhere", "--partitions", "2", "--if-exists") == (
        "there is no topic nowhere\n"
    )


@pytest.mark.soak
@pytest.mark.usefixtures("needs_kraft")
async def test_a_login_under_kraft(tmp_path: Path) -> None:
    module = f'{MODULES}.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}"'
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": f'{module} user_{USER}="{PASSWORD}";',
    }
    file = tmp_path / "client.properties"
    properties = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.jaas.config={module};")
    path = trio.Path(file)
    await path.write_text("\n".join(properties))
    async with kraft_cluster(tmp_path, 1, settings=settings) as cluster:
        shell = Shell(cluster.bootstrap)
        assert [row["id"] for row in await rows(shell, "broker", "list", "--command-config", str(file))] == [1]
        refusal = await shell("broker", "list", fails=True)
        assert "wants a login by SASL (PLAIN): set security.protocol to SASL_PLAINTEXT, and sasl.mechanism" in refusal
        await path.write_text("\n".join(properties).replace(PASSWORD, "wrong"))
        refusal = await shell("broker", "list", "--command-config", str(file), fails=True)
        assert f"the login of {USER}" in refusal


@pytest.fixture(params=KINDS)
def three(request: pytest.FixtureRequest, zookeeper: str, tmp_path: Path) -> AbstractAsyncContextManager[str]:
    """Give the test three brokers of a kind, which start with the block."""
    require(request.param)
    if request.param == RELEASE:
        return nodes_in(tmp_path, 3)
    return brokers_on(f"{zookeeper}/{tmp_path.name}", tmp_path, request.param)


@pytest.mark.soak
async def test_three_brokers(
    three: AbstractAsyncContextManager[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rate = UNKNOWN if request.node.callspec.params["three"] == OLD else RATE
    async with three as bootstrap:
        shell = Shell(bootstrap)
        await until_registered(shell, 3)
        await shell("topic", "create", "orders", "--replica-assignment", ",".join(["1:2", "2:1"] * (PARTITIONS // 2)))
        await trio.to_thread.run_sync(fill, bootstrap)
        await plan_and_move(shell, tmp_path)
        await throttle_and_cancel(shell, tmp_path, rate)
        await choose_a_leader(shell)
        assert await shell("topic", "delete", "orders") == "deleted topic orders\n"


def fill(bootstrap: str) -> None:
    """Write records to all partitions of the topic, several fetches of a follower for each."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce("orders", RECORD, partition=number % PARTITIONS)
    assert producer.flush(FLUSH_SECONDS) == 0


async def plan_and_move(shell: Shell, folder: Path) -> None:
    """Plan from the running cluster, carry the plan out, and verify it."""
    plan, rollback = str(folder / "plan.json"), str(folder / "rollback.json")
    await shell("plan", "add-brokers", "--brokers", "3", "--out", plan)
    file = ("--reassignment-json-file", plan)
    done = await shell("reassignment", "execute", *file, "--rollback-json-file", rollback)
    assert done.count(": complete") == 4
    assert (await shell("reassignment", "verify", *file)).count(": complete") == 4
    await shell("leader", "elect", "--election-type", "preferred", "--path-to-json-file", plan)
    brokers = await rows(shell, "broker", "list")
    assert [(one["id"], one["leaders"]) for one in brokers] == [(1, 2), (2, 2), (3, 2)]
    assert brokers[2]["replicas"] == 4


async def throttle_and_cancel(shell: Shell, folder: Path, rate: int) -> None:
    """Begin a slow move, see it with the rate that brokers tell, cancel it, and find no throttle afterwards."""
    plan = folder / "move.json"
    [first, *_] = [row for row in await rows(shell, "topic", "describe", "orders") if 3 not in row["replicas"]]
    number, target = first["partition"], [3, first["replicas"][1]]
    one = {"topic": "orders", "partition": number, "replicas": target}
    await trio.Path(plan).write_text(json.dumps({"version": 1, "partitions": [one]}))
    file = ("--reassignment-json-file", str(plan))
    await shell("reassignment", "execute", *file, "--throttle", str(RATE), "--no-wait")
    [move] = await rows(shell, "reassignment", "describe")
    added = move["progress"][0]
    assert (added["broker"], added["in_sync"], added["throttle"], move["leader_throttle"]) == (3, False, rate, rate)
    assert added["log_bytes"] < added["leader_bytes"]
    sys.stdout.write(f"{added['log_bytes']:,} of {added['leader_bytes']:,} bytes at {RATE:,} bytes/s\n")
    cancelled = await shell("reassignment", "cancel", *file)
    assert cancelled.startswith(f"orders-{number}: cancelled, has replicas")
    topic = await rows(shell, "config", "describe", "--entity-type", "topics", "--entity-name", "orders")
    assert {row["value"] for row in topic if row["name"].endswith("throttled.replicas")} <= {""}
    for broker in ("1", "2", "3"):
        own = await rows(shell, "config", "describe", "--entity-type", "brokers", "--entity-name", broker)
        assert [row for row in own if row["name"].endswith("throttled.rate") and "DYNAMIC" in row["source"]] == []


async def choose_a_leader(shell: Shell) -> None:
    """Give a partition another order, whose first replica then leads."""
    [state, *_] = await rows(shell, "topic", "describe", "orders")
    second = state["replicas"][-1]
    order = [second, *(one for one in state["replicas"] if one != second)]
    partition = ("--topic", "orders", "--partition", str(state["partition"]))
    elect = partial(shell, "leader", "elect", "--election-type", "preferred")
    await elect(*partition, "--replicas", ",".join(map(str, order)))
    [state, *_] = await rows(shell, "topic", "describe", "orders")
    assert (state["leader"], state["replicas"]) == (second, order)
