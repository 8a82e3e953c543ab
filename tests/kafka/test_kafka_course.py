"""The course of an operator on clusters of Apache Kafka's alone: plan from the live cluster, move, cancel, verify."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from attrs import frozen

from klamm.cli.reassignment.record_file import RecordFile
from tests.cli.shell import Shell, run_klamm
from tests.kafka.kraft_cluster import RELEASE
from tests.kafka.real_cluster import until
from tests.kafka.releases import require_jars
from tests.kafka.test_kafka_moves import (
    BEFORE_DISKS,
    FAST,
    KINDS,
    SLOW,
    create_orders,
    executing,
    replicas,
    throttles,
    until_copying,
)
from tests.kafka.test_kraft_commands import RECORD, RECORDS, brokers_on, directories_of_first, nodes_in, rows

COPY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
GOALS: Final = (
    ("rebalance",),
    ("set-replication-factor", "--replication-factor", "3"),
    ("set-replication-factor", "--replication-factor", "2"),
    ("remove-brokers", "--brokers", "3"),
)


def entries_of(file: Path) -> list[dict[str, Any]]:
    """Return the moves in a file."""
    entries: list[dict[str, Any]] = json.loads(file.read_bytes())["partitions"]
    return entries


def write_entries(file: Path, entries: list[dict[str, Any]]) -> Path:
    """Write a file of moves."""
    file.write_text(json.dumps({"version": 1, "partitions": entries}))
    return file


def logs_of(folder: Path, broker: int) -> list[Path]:
    """Return the logs of the topic that a broker has, without those that it is deleting."""
    found = folder.glob(f"*{broker}/data-*/orders-*")
    return [path for path in found if not path.name.endswith("-delete")]


@frozen
class Operator:
    """Types the commands of the course, and finds the throttles of others as they were after each."""

    shell: Shell
    folder: Path
    throttles_before: dict[str, dict[str, str]]

    async def plan(self, *goal: str, at: str = "plan.json") -> Path:
        """Plan from the running cluster, and return the file."""
        file = self.folder / at
        done = await run_klamm("plan", *goal, "--bootstrap-server", self.shell.bootstrap, "--out", str(file))
        assert done.returncode == 0, done.stderr.decode()
        return file

    async def execute(self, file: Path) -> None:
        """Carry a plan out with a throttle, which is gone afterwards, and verify it."""
        count = len(entries_of(file))
        options = ("--reassignment-json-file", str(file))
        done = await self.shell("reassignment", "execute", *options, "--throttle", str(FAST))
        assert done.count(": complete") == count
        assert (await self.shell("reassignment", "verify", *options)).count(": complete") == count
        await self.check_throttles(file)

    async def check_throttles(self, file: Path) -> None:
        """Find all throttles as they were before, and no record."""
        assert await throttles(self.shell) == self.throttles_before
        assert not RecordFile(file).path.exists()

    async def cancel_half(self, file: Path) -> None:
        """Begin a plan slowly, watch it, cancel half of it, verify, and carry the same file out to its end."""
        before = await replicas(self.shell)
        # A new order of the same replicas is no move: it is there at once.
        moving = [entry for entry in entries_of(file) if set(entry["replicas"]) != set(entry["before"])]
        cancelled = moving[: len(moving) // 2]
        half = write_entries(self.folder / "half.json", cancelled)
        options = ("--reassignment-json-file", str(file))
        with executing(self.shell, file, SLOW) as process:
            await until_copying(self.shell, len(moving))
            await self.watch(len(moving))
            cancel = ("reassignment", "cancel", "--reassignment-json-file", str(half), "--plan", str(file))
            assert (await self.shell(*cancel)).count("cancelled, has replicas") == len(cancelled)
            done = await run_klamm("reassignment", "verify", *options, "--bootstrap-server", self.shell.bootstrap)
            printed = done.stdout.decode()
            assert (done.returncode, printed.count("in progress")) == (1, len(moving) - len(cancelled)), printed
            assert process.poll() is None
        now = await replicas(self.shell)
        numbers = [entry["partition"] for entry in cancelled]
        assert [now[number] for number in numbers] == [before[number] for number in numbers]
        await self.execute(file)

    async def watch(self, count: int) -> None:
        """See moves in progress, the rate that brokers tell, and what is left."""
        moves = await rows(self.shell, "reassignment", "describe")
        assert len(moves) == count
        assert {one["throttle"] for move in moves for one in move["progress"] if not one["in_sync"]} == {SLOW}
        assert len(await rows(self.shell, "reassignment", "list")) == count


async def check_disks(shell: Shell, folder: Path, tells_disks: bool) -> None:
    """Find what is unknown of disks said, and those of a table not exceeded: nothing is moved to a full one."""
    table, plan = folder / "brokers.csv", folder / "full.json"
    await trio.Path(table).write_text("id,disk\n1,1000000000\n2,1000000000\n3,1\n")
    words = ("plan", "add-brokers", "--brokers", "3", "--bootstrap-server", shell.bootstrap, "--out", str(plan))
    done = await run_klamm(*words, "--brokers-table", str(table))
    assert done.returncode == 0, done.stderr.decode()
    said = "the disk of brokers 1, 2, 3 is not known: the broker does not tell how large its disks are"
    assert (said in done.stderr.decode()) is not tells_disks, done.stderr.decode()
    assert entries_of(plan) == []


async def stop_a_copy(shell: Shell, folder: Path) -> None:
    """Let a broker copy a log to its other directory slowly, and cancel that by the file, then without one."""
    broker = ("--entity-type", "brokers", "--entity-name", "1", "--add-config")
    await shell("config", "alter", *broker, f"{COPY_RATE}={SLOW}")
    home, other = await directories_of_first(shell)
    entry = {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": [other, "any"]}
    file = ("--reassignment-json-file", str(write_entries(folder / "copy.json", [entry])))
    for cancel in (file, ("--topic", "orders"), ("--all",)):
        await shell("reassignment", "execute", *file, "--no-wait")

        async def is_copying() -> bool:
            return other in await future_directories(shell)

        await until(is_copying)
        done = await shell("reassignment", "cancel", *cancel)
        assert done == f"orders-0: cancelled, broker 1 keeps its log in {home}\n"
        assert await future_directories(shell) == []
        assert await directories_of_first(shell) == (home, other)
    await shell("config", "alter", *broker[:-1], "--delete-config", COPY_RATE)


async def future_directories(shell: Shell) -> list[str]:
    """Return the directories to which brokers copy logs of the topic."""
    brokers = await rows(shell, "log-dirs", "describe", "--topic-list", "orders")
    return [one["path"] for broker in brokers for one in broker["log_dirs"] if any(x["is_future"] for x in one["logs"])]


async def course(shell: Shell, folder: Path, *, tells_disks: bool) -> None:
    """Add a broker, cancel half of that, then the other goals; the last one empties the broker."""
    await create_orders(shell)
    dump = json.loads(await shell("state", "dump"))
    assert sum(row["bytes"] for row in dump["partitions"]) > RECORDS * len(RECORD)
    assert [one["rack"] for one in dump["brokers"]] == ["r1", "r2", "r3"]
    await check_disks(shell, folder, tells_disks)
    await stop_a_copy(shell, folder)
    operator = Operator(shell, folder, await throttles(shell))
    await operator.cancel_half(await operator.plan("add-brokers", "--brokers", "3"))
    for number, goal in enumerate(GOALS):
        file = await operator.plan(*goal, at=f"plan-{number}.json")
        moves = entries_of(file)
        sys.stdout.write(f"{' '.join(goal)}: {len(moves)} moves\n")
        if moves:
            await operator.execute(file)
    assert [broker["replicas"] for broker in await rows(shell, "broker", "list")] == [6, 6, 0]

    async def is_empty() -> bool:
        return not logs_of(folder, 3)

    assert len(logs_of(folder, 2)) == 6
    await until(is_empty)


@pytest.mark.soak
@pytest.mark.parametrize("release", KINDS)
async def test_the_course(release: str, zookeeper: str, tmp_path: Path) -> None:
    require_jars(release)
    if release == RELEASE:
        async with nodes_in(tmp_path, 3) as bootstrap:
            await course(Shell(bootstrap), tmp_path, tells_disks=release != BEFORE_DISKS)
        return
    async with brokers_on(f"{zookeeper}/{tmp_path.name}", tmp_path, release) as bootstrap:
        await course(Shell(bootstrap), tmp_path, tells_disks=release != BEFORE_DISKS)
