"""The bridge and Spark: it keeps Spark, stops it, survives its end, and ends it with itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import pytest
import trio

from controller.admin.planning import Bridge, PlanError, PlanRequest, Progress, compute_plan, open_bridge
from spark_bridge.inputs.sources import Sources
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.process.request import EngineName
from tests.spark.bridge.conftest import Asking
from tests.spark.bridge.processes import files_in, is_gone, until

pytestmark = pytest.mark.usefixtures("java")

COUNTED = ("4000000",)


class BackgroundPlan:
    """A plan that is being made in the background, and the processes that make it."""

    def __init__(self) -> None:
        self.told: list[Progress] = []
        self.problem: str | None = None
        self.scope = trio.CancelScope()

    async def run(self, bridge: Bridge, request: PlanRequest) -> None:
        """Have a plan made; keep what it is refused with."""
        with self.scope:
            try:
                await bridge.plan(request, self.told.append)
            except PlanError as error:
                self.problem = str(error)

    @property
    def bridge(self) -> int:
        """Return the id of the bridge."""
        return int(self.told[0].left or 0)

    @property
    def jvm(self) -> int:
        """Return the id of the JVM, once there is one."""
        return int(self.told[1].left or 0)


async def counted(bridge: Bridge, ask: Asking) -> BackgroundPlan:
    """Have Spark count, and see that it counts right."""
    planned = BackgroundPlan()
    summary = await bridge.plan(ask("count", EngineName.SPARK), planned.told.append)
    assert summary.notes == COUNTED
    return planned


class Looked(Exception):
    """The plan was made as far as it was needed."""


def waiting(folder: Path) -> list[Path]:
    """Return the marks of the tasks that wait at the gate."""
    return [path for path in files_in(folder) if path.name.startswith("waiting.")]


@pytest.mark.soak
async def test_spark_is_kept_from_plan_to_plan_also_when_one_is_cancelled_or_refused(
    ask: Asking, stub: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    async with open_bridge() as bridge:
        first = await counted(bridge, ask)
        cancelled = BackgroundPlan()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancelled.run, bridge, ask("count at the gate", EngineName.SPARK))
            await until(lambda: waiting(tmp_path))
            cancelled.scope.cancel()
        late = BackgroundPlan()
        await late.run(bridge, ask("count at the gate", EngineName.SPARK, timeout=1))
        assert late.problem == "there was no plan within 1 s: allow more time, or move fewer replicas"
        with pytest.raises(PlanError, match=r"^loads\.csv, row 7: no size$"):
            await bridge.plan(ask("refuse in a worker", EngineName.SPARK))
        last = await counted(bridge, ask)
        assert {first.jvm, cancelled.jvm, late.jvm, last.jvm} == {first.jvm}
        os.kill(first.jvm, signal.SIGKILL)
        await until(lambda: is_gone(first.bridge))
        await bridge.plan(ask("sing"))
    assert files_in(stub) == []


@pytest.mark.soak
async def test_spark_or_the_bridge_may_die_and_the_next_plan_is_made(ask: Asking, stub: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    async with open_bridge() as bridge:
        planned = BackgroundPlan()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(planned.run, bridge, ask("count at the gate", EngineName.SPARK))
            await until(lambda: waiting(tmp_path))
            os.kill(planned.jvm, signal.SIGKILL)
        assert planned.problem is not None
        assert planned.problem.startswith("Spark ended in the middle of the plan (its log ends: ")
        assert "\n" not in planned.problem
        assert is_gone(planned.bridge)
        last = await counted(bridge, ask)
        os.kill(last.bridge, signal.SIGKILL)
        await until(lambda: is_gone(last.jvm))
        assert (await bridge.plan(ask("sing"))).notes == ()
    assert files_in(stub) == []


@pytest.mark.soak
async def test_a_caller_that_is_killed_leaves_no_process_and_no_file(ask: Asking, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    request = ask("count at the gate", EngineName.SPARK).to_json().decode()
    process = await trio.lowlevel.open_process(
        [sys.executable, str(Path(__file__).with_name("caller.py")), request],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    await until(lambda: waiting(tmp_path))
    process.kill()
    told = b"".join([chunk async for chunk in process.stdout])
    await process.wait()
    workers = [int(path.suffix[1:]) for path in waiting(tmp_path)]
    pids = [*map(int, told.split()), *workers]
    assert len(pids) > 2
    await until(lambda: all(map(is_gone, pids)))
    await until(lambda: not files_in(scratch))


@pytest.mark.soak
async def test_the_ui_serves_on_loopback_where_it_is_switched_on(tmp_path: Path) -> None:
    snapshot = tmp_path / "s.json"
    snapshot.write_text('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]}')
    served: list[tuple[str, int]] = []

    def look(progress: Progress) -> None:
        # What is raised ends the plan, which nothing here depends on.
        if progress.ui is not None:
            with urlopen(f"{progress.ui}/api/v1/applications") as answer:  # noqa: S310 (a server of our own)
                served.append((progress.ui, answer.status))
            raise Looked

    conf = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
    goal = Goal(GoalKind.REPAIR_RACKS)
    request = PlanRequest(Sources(snapshot), goal, str(tmp_path / "plan"), EngineName.SPARK, conf=conf)
    with pytest.raises(Looked):
        await compute_plan(request, look)
    [(address, status)] = served
    assert address.startswith("http://127.0.0.1:")
    assert status == HTTPStatus.OK
