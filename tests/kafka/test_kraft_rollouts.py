"""`klamm rollout` on a real cluster of Apache Kafka's under KRaft: real bytes, kills, throttles, and the way back."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import frozen
from confluent_kafka import Producer

from tests.cli.rollout_place import moves_in_a_plan, write_plan
from tests.cli.rollout_runs import journal, running, status_of
from tests.cli.shell import Shell
from tests.kafka.kraft_cluster import kraft_cluster
from tests.kafka.traffic import FLUSH_SECONDS

PARTITIONS: Final = 200
RECORDS_EACH: Final = 20
RECORD: Final = b"x" * 10_000
"""200 kB a partition, 40 MB in all."""

THROTTLE: Final = 1_500_000
BEFORE, AFTER = [1, 2], [3, 2]
OPERATORS_RATE: Final = "7654321"
OPERATORS_LIST: Final = "3:1,5:2"
LIMITS: Final = ("--in-per-broker", "8", "--out-per-broker", "8", "--leaders-per-broker", "8")


@frozen
class Rollout:
    """A plan for the cluster, and a shell."""

    shell: Shell
    plan: Path

    def write(self, partitions: int) -> None:
        self.plan.mkdir()
        write_plan(self.plan / "plan.json", moves_in_a_plan([AFTER] * partitions, before=BEFORE))

    def running(self) -> AbstractAsyncContextManager[trio.Process]:
        """Run it in a process of its own, which is killed at the end of the block."""
        return running(self.plan, self.shell.bootstrap, *LIMITS, "--throttle", str(THROTTLE))

    async def until_done(self, count: int) -> None:
        """Wait until so many moves have ended, and others are in flight."""
        with trio.fail_after(120):
            while self.ended() < count or self.begun() <= self.ended():
                await trio.sleep(0.1)

    def begun(self) -> int:
        return sum(len(entry["moves"]) for entry in journal(self.plan, "begun"))

    def ended(self) -> int:
        return sum(len(entry["moves"]) for entry in journal(self.plan, "ended"))

    def tell_time(self) -> None:
        """Print the time left as it was told when half of the moves were done, and as it was."""
        half = next(note for note in journal(self.plan, "progress") if note["done"] >= PARTITIONS // 2)
        took = (journal(self.plan, "ended")[-1]["at"] - half["at"]) / 1000
        told = f"{half['seconds_left']} s left told at {half['done']} of {PARTITIONS}, {took:.0f} s in truth"
        sys.stdout.write(f"{len(journal(self.plan, 'begun'))} windows; {told}; error told {half['error']}\n")

    async def replicas(self) -> list[list[int]]:
        return [row["replicas"] for row in json.loads(await self.shell("topic", "describe", "orders", "-o", "json"))]

    async def throttles(self) -> dict[tuple[str, str], str]:
        """Return the settings that throttle, by owner and name."""
        found: dict[tuple[str, str], str] = {}
        for kind, name in (("topics", "orders"), *(("brokers", str(b)) for b in (1, 2, 3))):
            words = ("config", "describe", "--entity-type", kind, "--entity-name", name, "-o", "json")
            own = [row for row in json.loads(await self.shell(*words)) if "throttled" in row["name"]]
            found |= {(name, row["name"]): row["value"] for row in own if row["value"] and "DYNAMIC" in row["source"]}
        return found


def fill(bootstrap: str) -> None:
    """Write the same to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(PARTITIONS * RECORDS_EACH):
        producer.produce("orders", RECORD, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(FLUSH_SECONDS) == 0


@asynccontextmanager
async def cluster_with_records(folder: Path) -> AsyncIterator[Shell]:
    async with kraft_cluster(folder / "cluster", 3, settings={"num.replica.fetchers": "2"}) as cluster:
        shell = Shell(cluster.bootstrap)
        with trio.fail_after(60):
            while len(json.loads(await shell("broker", "list", "-o", "json"))) < 3:
                await trio.sleep(0.2)
        await shell("topic", "create", "orders", "--replica-assignment", ",".join(["1:2"] * PARTITIONS))
        await trio.to_thread.run_sync(fill, cluster.bootstrap)
        for kind, name, setting in (
            ("brokers", "2", f"leader.replication.throttled.rate={OPERATORS_RATE}"),
            ("topics", "orders", f"leader.replication.throttled.replicas=[{OPERATORS_LIST}]"),
        ):
            await shell("config", "alter", "--entity-type", kind, "--entity-name", name, "--add-config", setting)
        yield shell


@pytest.mark.soak
@pytest.mark.usefixtures("needs_kraft")
async def test_it_is_killed_twice_finishes_and_is_undone(tmp_path: Path) -> None:
    async with cluster_with_records(tmp_path) as shell:
        rollout = Rollout(shell, tmp_path / "plan")
        rollout.write(PARTITIONS)
        throttles = await rollout.throttles()
        assert set(throttles.values()) == {OPERATORS_RATE, OPERATORS_LIST}
        for done in (30, 80):
            async with rollout.running():
                await rollout.until_done(done)
                refused = await shell("rollout", "run", str(rollout.plan), fails=True)
                assert "this plan is being carried out by process" in refused
            assert (await status_of(rollout.plan))["carried_out_by"] is None
            assert await rollout.throttles() != throttles
        async with rollout.running() as process:
            assert await process.wait() == 0
        assert await rollout.replicas() == [AFTER] * PARTITIONS
        assert await rollout.throttles() == throttles
        assert max(len(entry["moves"]) for entry in journal(rollout.plan, "begun")) <= 8
        rollout.tell_time()

        said = await shell("rollout", "undo", str(rollout.plan))
        assert said == f"rollout: undone: {PARTITIONS} back\n"
        assert await rollout.replicas() == [BEFORE] * PARTITIONS
        assert await rollout.throttles() == throttles


@pytest.mark.soak
@pytest.mark.usefixtures("needs_kraft")
async def test_it_is_aborted_with_the_order_restored(tmp_path: Path) -> None:
    async with cluster_with_records(tmp_path) as shell:
        rollout = Rollout(shell, tmp_path / "plan")
        rollout.write(PARTITIONS)
        throttles = await rollout.throttles()
        async with rollout.running() as process:
            await rollout.until_done(40)
            said = await shell("rollout", "abort", str(rollout.plan))
            assert said.startswith("rollout: aborted: ")
            assert await process.wait() == 1
        found = await status_of(rollout.plan)
        replicas = await rollout.replicas()
        assert (found["moves"]["in flight"], replicas.count(AFTER)) == (0, found["moves"]["done"])
        assert replicas.count(BEFORE) == found["moves"]["pending"] == PARTITIONS - found["moves"]["done"]
        assert await rollout.throttles() == throttles
        assert await shell("reassignment", "list") == "no reassignment is in progress\n"


@pytest.mark.soak
@pytest.mark.usefixtures("needs_kraft")
async def test_a_plan_of_the_running_cluster_is_carried_out_with_its_leaders(tmp_path: Path) -> None:
    async with cluster_with_records(tmp_path) as shell:
        plan = tmp_path / "plan"
        await shell("plan", "add-brokers", "--brokers", "3", "--out", str(plan))
        said = await shell("rollout", "run", str(plan), "--dry-run")
        assert " moves, " in said
        assert (await shell("rollout", "run", str(plan), "--in-flight", "40")).startswith("rollout: done: ")
        brokers = json.loads(await shell("broker", "list", "-o", "json"))
        leaders = [one["leaders"] for one in brokers]
        assert max(leaders) - min(leaders) <= 10
        assert brokers[2]["replicas"] > PARTITIONS // 2
        sys.stdout.write(f"{said.splitlines()[0]}; leaders {leaders}\n")
