"""Where Spark runs other than inside the bridge's own JVM: on a standalone cluster, and over Spark Connect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from controller.admin.planning import Summary, open_bridge
from spark_bridge.request import Engine
from tests.spark.bridge.conftest import Asking
from tests.spark.bridge.processes import files_in, until
from tests.spark.clusters import SMALL, bare_python, connect_server, standalone_cluster

pytestmark = [pytest.mark.requirement("E3"), pytest.mark.usefixtures("java")]


def waiting(folder: Path) -> list[Path]:
    """Return the marks of the tasks that wait at the gate."""
    return [path for path in files_in(folder) if path.name.startswith("waiting.")]


def open_gate(gate: Path) -> None:
    """Let those pass who wait, and whoever comes later."""
    opened = gate.with_name("opened")
    opened.touch()
    held = os.open(gate, os.O_WRONLY)
    opened.replace(gate)
    os.close(held)


async def test_a_standalone_cluster_that_loses_a_worker_in_the_middle_gives_the_same_result(
    ask: Asking, stub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare_python(tmp_path / "bare")))
    os.mkfifo(tmp_path / "gate")
    made: list[Summary] = []
    async with standalone_cluster(tmp_path / "cluster") as cluster, open_bridge() as bridge:

        async def plan() -> None:
            made.append(await bridge.plan(ask("count at the gate", Engine.SPARK, master=cluster.master, conf=SMALL)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(plan)
            await until(lambda: len(waiting(tmp_path)) == 2)
            cluster.workers[0].kill()
            open_gate(tmp_path / "gate")
        assert made[0].notes == ("4000000",)
        where = await bridge.plan(ask("import in a worker", Engine.SPARK, master=cluster.master, conf=SMALL))
        assert where.notes == ("klamm_workers.zip",)
    assert files_in(stub) == []


async def test_spark_connect(ask: Asking, stub: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    async with connect_server(tmp_path / "server") as remote, open_bridge() as bridge:
        assert (await bridge.plan(ask("count", Engine.SPARK, remote=remote))).notes == ("4000000",)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bridge.plan, ask("count at the gate", Engine.SPARK, remote=remote))
            await until(lambda: waiting(tmp_path))
            nursery.cancel_scope.cancel()
        where = await bridge.plan(ask("import in a worker", Engine.SPARK, remote=remote))
        assert where.notes == ("klamm_workers.zip",)
    assert files_in(stub) == []
