"""Moves in real clusters of Apache Kafka's alone: throttled, killed, cancelled and begun again by the command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from klamm.cli.reassignment.record_file import RecordFile
from tests.cli.shell import Shell
from tests.kafka import jars
from tests.kafka.kraft_cluster import RELEASE, Cluster, kraft_cluster
from tests.kafka.real_brokers import kill
from tests.kafka.real_cluster import until
from tests.kafka.releases import require_jars
from tests.kafka.test_kraft_commands import cluster_on, fill, nodes_in, rows, until_registered
from transport.child_process import spawn

BEFORE_DISKS: Final = "2.8.2"
"""A release whose brokers do not tell the sizes of their disks."""

KINDS: Final = (RELEASE, jars.RELEASE, BEFORE_DISKS)
ORDERS: Final = ((1, 2), (2, 1), (1, 2), (2, 1), (1, 2), (2, 1))
"""The replicas of the topic's partitions, of 3.3 MB each."""

SLOW: Final = 50_000
"""So slow that a move is still under way when the next command begins."""

FAST: Final = 50_000_000

OF_OPERATOR: Final = (
    ("topics", "orders", "leader.replication.throttled.replicas", "0:1,0:2,5:1"),
    ("brokers", "1", "leader.replication.throttled.rate", "77000000"),
    ("brokers", "3", "follower.replication.throttled.rate", "88000000"),
)
"""Settings that were there before the moves; the first replicas are those of a partition that moves."""


async def create_orders(shell: Shell) -> None:
    """Create a filled topic, and throttles that are none of the command's."""
    await until_registered(shell, 3)
    replicas = ",".join(f"{first}:{second}" for first, second in ORDERS)
    await shell("topic", "create", "orders", "--replica-assignment", replicas)
    await trio.to_thread.run_sync(fill, shell.bootstrap)
    for kind, name, setting, value in OF_OPERATOR:
        entity = ("--entity-type", kind, "--entity-name", name)
        await shell("config", "alter", *entity, "--add-config", f"{setting}=[{value}]")


async def throttles(shell: Shell) -> dict[str, dict[str, str]]:
    """Return the settings of the topic and of each broker that are their own."""
    found = {}
    for kind, name in (("topics", "orders"), ("brokers", "1"), ("brokers", "2"), ("brokers", "3")):
        told = await rows(shell, "config", "describe", "--entity-type", kind, "--entity-name", name)
        own = [row for row in told if row["source"] in {"DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG"}]
        found[name] = {row["name"]: row["value"] for row in own}
    return found


async def replicas(shell: Shell) -> dict[int, list[int]]:
    """Return the replicas of the topic's partitions."""
    return {row["partition"]: row["replicas"] for row in await rows(shell, "topic", "describe", "orders")}


def write_moves(file: Path, targets: dict[int, list[int]]) -> Path:
    """Write a file that moves partitions of the topic."""
    moves: list[dict[str, Any]] = [{"topic": "orders", "partition": p, "replicas": to} for p, to in targets.items()]
    file.write_text(json.dumps({"version": 1, "partitions": moves}))
    return file


@contextmanager
def executing(shell: Shell, file: Path, throttle: int) -> Iterator[subprocess.Popen[bytes]]:
    """Carry out moves in a process of its own, which is dead at the end of the block."""
    command = [sys.executable, "-m", "klamm", "reassignment", "execute", "--reassignment-json-file", str(file)]
    options = ["--throttle", str(throttle), "--bootstrap-server", shell.bootstrap]
    process = spawn([*command, *options], file.with_suffix(".log"))
    try:
        yield process
    finally:
        kill(process)


async def until_copying(shell: Shell, count: int) -> None:
    """Wait until so many moves are under way, and bytes are copied."""

    async def do_copy() -> bool:
        moves = await rows(shell, "reassignment", "describe")
        copied = sum(one["log_bytes"] for move in moves for one in move["progress"] if not one["in_sync"])
        return len(moves) == count and copied > 0

    await until(do_copy)


async def kill_cancel_and_resume(shell: Shell, folder: Path) -> None:
    """Kill the command in the middle of moves, cancel one of them, and carry the same file out again."""
    before = await throttles(shell)
    targets = {0: [3, 2], 1: [3, 1], 3: [2, 3]}
    file = write_moves(folder / "moves.json", targets)
    with executing(shell, file, SLOW):
        await until_copying(shell, len(targets))
    during = await throttles(shell)
    assert during["orders"]["leader.replication.throttled.replicas"] == "0:1,0:2,5:1,1:1,1:2,3:1,3:2"
    assert during["orders"]["follower.replication.throttled.replicas"] == "0:3,1:3,3:3"
    assert [during[id_]["leader.replication.throttled.rate"] for id_ in ("1", "2")] == [str(SLOW)] * 2
    assert RecordFile(file).path.exists()

    part = ("--topic", "orders", "--partition", "1", "--plan", str(file))
    assert await shell("reassignment", "cancel", *part) == "orders-1: cancelled, has replicas [2, 1] again\n"
    during = await throttles(shell)
    assert during["orders"]["leader.replication.throttled.replicas"] == "0:1,0:2,5:1,3:1,3:2"
    assert during["orders"]["follower.replication.throttled.replicas"] == "0:3,3:3"
    assert (await replicas(shell))[1] == [2, 1]

    done = await shell("reassignment", "execute", "--reassignment-json-file", str(file), "--throttle", str(FAST))
    assert done.count(": complete") == len(targets)
    assert await throttles(shell) == before
    assert not RecordFile(file).path.exists()
    assert await replicas(shell) == {number: list(of) for number, of in enumerate(ORDERS)} | targets
    assert await shell("reassignment", "list") == "no reassignment is in progress\n"


@pytest.mark.soak
@pytest.mark.usefixtures("needs_kraft")
async def test_a_killed_execution_is_picked_up(tmp_path: Path) -> None:
    async with nodes_in(tmp_path, 3) as bootstrap:
        shell = Shell(bootstrap)
        await create_orders(shell)
        await kill_cancel_and_resume(shell, tmp_path)


@pytest.fixture(params=KINDS)
def three(request: pytest.FixtureRequest, zookeeper: str, tmp_path: Path) -> AbstractAsyncContextManager[Cluster]:
    """Give the test three brokers of a kind, which start with the block."""
    require_jars(request.param)
    if request.param == RELEASE:
        return kraft_cluster(tmp_path, 3)
    return cluster_on(f"{zookeeper}/{tmp_path.name}", tmp_path, request.param)


@asynccontextmanager
async def restoring_throttles(
    three: AbstractAsyncContextManager[Cluster],
) -> AsyncIterator[tuple[Cluster, Shell, dict[str, dict[str, str]]]]:
    """Run the brokers and their topic for the block, at whose end the throttles have to be as they were before it."""
    async with three as cluster:
        shell = Shell(cluster.bootstrap)
        await create_orders(shell)
        before = await throttles(shell)
        yield cluster, shell, before
        assert await throttles(shell) == before


@pytest.mark.soak
async def test_a_dead_broker_is_named_and_loses_its_throttle_when_it_is_back(
    three: AbstractAsyncContextManager[Cluster], tmp_path: Path
) -> None:
    async with restoring_throttles(three) as (cluster, shell, _):
        file = write_moves(tmp_path / "moves.json", {1: [3, 1]})
        with executing(shell, file, 4 * SLOW) as process:
            await until_copying(shell, 1)
            cluster.nodes[2].kill()
            assert await trio.to_thread.run_sync(process.wait) == 0
        said = file.with_suffix(".log").read_text()
        assert "orders-1: complete\n" in said
        verify = ("reassignment", "verify", "--reassignment-json-file", str(file))
        named = (
            f"broker 2 does not answer, and keeps the throttle: `klamm {' '.join(verify)}` removes it once it is back\n"
        )
        assert named in said
        await cluster.nodes[2].start()
        await until_registered(shell, 3)
        assert (await throttles(shell))["2"]["leader.replication.throttled.rate"] == str(4 * SLOW)
        assert await shell(*verify) == "orders-1: complete\n"
        assert not RecordFile(file).path.exists()


@pytest.mark.soak
async def test_a_broker_that_comes_back_during_moves_is_throttled_until_their_end(
    three: AbstractAsyncContextManager[Cluster], tmp_path: Path
) -> None:
    async with restoring_throttles(three) as (cluster, shell, before):
        cluster.nodes[2].kill()
        await until_registered(shell, 2)
        file = write_moves(tmp_path / "moves.json", {1: [3, 1], 3: [3, 1]})
        rate = 3 * SLOW
        with executing(shell, file, rate) as process:
            await until_copying(shell, 2)
            await cluster.nodes[2].start()
            await until_registered(shell, 3)

            async def is_throttled() -> bool:
                return (await throttles(shell))["2"] != before["2"]

            await until(is_throttled)
            assert (await throttles(shell))["2"]["leader.replication.throttled.rate"] == str(rate)
            assert process.poll() is None
            assert await trio.to_thread.run_sync(process.wait) == 0
        said = file.with_suffix(".log").read_text()
        assert (
            "broker 2 does not answer, and is not throttled: it will be if it is back while this command waits\n"
            in said
        )
        assert "broker 2 is back, and is throttled from now on\n" in said
        assert not RecordFile(file).path.exists()
