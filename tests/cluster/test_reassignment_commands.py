"""An administrator moves, watches, interrupts, verifies, rolls back and cancels; real ZooKeeper, processes, signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from attrs import define

from klamm.cli.demo.clusters import log_dir
from klamm.cli.demo.process_cluster import ProcessCluster
from tests.cli.shell import without_cluster
from tests.cluster.running import RealCluster
from tests.cluster.waiting import PATIENCE_SECONDS
from transport.child_process import spawn
from transport.store import paths
from transport.store.protocol import Create

BROKERS = (1, 2, 3, 4)
SLOW = 4
SLOW_SESSION_MS = 20_000
INTERRUPTED = 130

Said = tuple[int, list[str]]


@define
class SlowCluster(RealCluster):
    """A topic of two partitions on brokers 1 and 2, and an administrator's files."""

    def file(self, name: str, targets: dict[int, list[int]], topic: str = "orders") -> str:
        """Write a reassignment file."""
        entries = [{"topic": topic, "partition": p, "replicas": replicas} for p, replicas in targets.items()]
        (self.data_dir / name).write_text(json.dumps({"version": 1, "partitions": entries}))
        return str(self.data_dir / name)

    async def run(self, verb: str, *arguments: str, interrupt_at: str | None = None) -> Said:
        """Run a verb of `klamm reassignment`; return its exit code and lines. Ctrl-C comes once it printed that."""
        command = [sys.executable, "-m", "klamm", "reassignment", verb, *arguments]
        command += ["--zookeeper", self.zookeeper]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        printed, interrupted = "", False
        with trio.fail_after(PATIENCE_SECONDS):
            async for part in process.stdout:
                printed += part.decode()
                if interrupt_at is not None and interrupt_at in printed and not interrupted:
                    process.send_signal(signal.SIGINT)
                    interrupted = True
            code = await process.wait()
        assert "Traceback" not in printed
        return code, without_cluster(printed).splitlines()

    async def request_in_znode(self, file: str) -> None:
        """Write a file to `/admin/reassign_partitions`."""
        await self.store.multi([Create(paths.REASSIGN_PARTITIONS, await trio.Path(file).read_bytes())])

    def pause(self) -> None:
        """Let the slow broker stand still: it keeps its session for a while, and joins no ISR."""
        self.processes[SLOW].send_signal(signal.SIGSTOP)

    async def resume(self) -> None:
        """Let the slow broker go on, and wait until it is alive again."""
        self.processes[SLOW].send_signal(signal.SIGCONT)
        await self.until_live(BROKERS)

    async def replicas(self) -> list[tuple[int, ...]]:
        """Return the replicas of the partitions."""
        return [state.replicas for state in await self.states()]


def start_slow_broker(cluster: ProcessCluster) -> None:
    """Start the broker that is going to stand still, with a session that outlasts the start of a command."""
    where = ("--log-dir", str(log_dir(cluster.data_dir, SLOW)), "--zookeeper", cluster.zookeeper)
    command = [sys.executable, "-m", "klamm", "broker", "run", "--id", str(SLOW), "--port", "0", *where]
    session = ("--session-timeout", str(SLOW_SESSION_MS), "--controlled-shutdown-max-retries", "1")
    cluster.processes[SLOW] = spawn([*command, *session], cluster.data_dir / f"{SLOW}.log")


@pytest.fixture
async def cluster(zookeeper: str, tmp_path: Path) -> AsyncIterator[SlowCluster]:
    async with SlowCluster.running(f"{zookeeper}/reassignment-commands", tmp_path, brokers=BROKERS[:-1]) as cluster:
        start_slow_broker(cluster)
        await cluster.until_live(BROKERS)
        await cluster.create_topic("orders", (1, 2), (2, 1))
        yield cluster


@pytest.mark.soak
@pytest.mark.requirement("A1", "A2", "A3", "A9", "A11")
async def test_an_administrators_day(cluster: SlowCluster) -> None:
    json_file, back = "--reassignment-json-file", str(cluster.data_dir / "back.json")
    bad = cluster.file("bad.json", {0: [3, 2], 1: [1, 99]})
    refused = "orders-1: refused: replicas cannot be added on brokers [99], which are not alive"
    assert await cluster.run("execute", json_file, bad) == (
        1, [refused, "none of the 2 moves was begun: correct the file first"],
    )  # fmt: skip

    file = cluster.file("move.json", {0: [3, 2], 1: [1, SLOW]})
    cluster.pause()
    code, said = await cluster.run(
        "execute", json_file, file, "--rollback-json-file", back, interrupt_at="orders-1 waits for"
    )
    assert code == INTERRUPTED
    assert any(line.startswith("orders-1: not complete, continues by itself: in progress, waits for") for line in said)
    code, said = await cluster.run("verify", json_file, file)
    assert code == 1
    assert said[0] == "orders-0: complete"
    assert said[1].startswith("orders-1: in progress, waits for ")
    code, said = await cluster.run("list")
    assert said[2].split()[:4] == ["orders-1", "1,4,2", "4", "2"]
    code, said = await cluster.run("describe", "--topic", "orders")
    assert code == 0
    assert any(line.startswith("waits for") and str(SLOW) in line for line in said)
    await cluster.resume()
    await cluster.until_nothing_moves()
    assert await cluster.run("verify", json_file, file) == (0, ["orders-0: complete", "orders-1: complete"])

    code, said = await cluster.run("execute", json_file, back)
    assert (code, said[-3:-1]) == (0, ["orders-0: complete", "orders-1: complete"])
    # Broker 1 led orders-1 and still does.
    assert said[-1].startswith("1 of 2 partitions keep a leader that is not the first of their new replicas: ")
    assert await cluster.replicas() == [(1, 2), (2, 1)]

    cluster.pause()
    assert (await cluster.run("execute", json_file, file, "--no-wait"))[0] == 0
    code, said = await cluster.run("cancel", "--topic", "orders", "--partition", "1")
    assert (code, said) == (0, ["orders-1: cancelled, has replicas [2, 1] again"])
    await cluster.until_nothing_moves()
    assert await cluster.replicas() == [(3, 2), (2, 1)]
    nothing = "no reassignment is in progress: there is nothing to cancel"
    assert await cluster.run("cancel", "--all") == (0, [nothing])
    await cluster.resume()

    requested = cluster.file("znode.json", {0: [2, 3], 1: [1, SLOW], 7: [1]})
    await cluster.request_in_znode(requested)
    await cluster.until_gone(paths.REASSIGN_PARTITIONS)
    code, said = await cluster.run("verify", json_file, requested)
    assert (code, said) == (1, ["orders-0: complete", "orders-1: complete", "orders-7: there is no such partition"])
