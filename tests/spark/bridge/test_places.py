"""Spark outside the bridge's own JVM: on a standalone cluster, and over Spark Connect.

The plans are those of the kernel, to the byte; workers have NumPy and PyArrow, and of this program what they are sent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from attrs import evolve, frozen

from controller.admin.planning import PlanRequest, Progress, Summary, compute_plan, open_bridge
from spark_bridge.generator.files import write_cluster
from spark_bridge.generator.shapes import ClusterShape
from spark_bridge.inputs.sources import Sources, Url
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.process.request import EngineName
from tests.spark.bridge.conftest import Asking, start_instead
from tests.spark.bridge.processes import files_in, until
from tests.spark.clusters import SMALL, bare_python, connect_server, standalone_cluster

pytestmark = pytest.mark.usefixtures("java")


@frozen
class KernelPlan:
    """A request to plan for a generated cluster of several blocks, and the plan that the kernel makes of it."""

    request: PlanRequest
    summary: Summary

    @property
    def output(self) -> Path:
        """Return the folder of the kernel's plan."""
        return Path(self.request.output)

    def on_spark(self, name: str) -> PlanRequest:
        """Ask Spark for the same, in another folder."""
        return evolve(self.request, engine=EngineName.SPARK, output=str(self.output.with_name(name)))

    def is_met_by(self, request: PlanRequest, summary: Summary) -> None:
        """See that another plan is the same but for who made it, in its numbers and in each of its files."""
        assert evolve(summary, engine="kernel") == self.summary
        assert contents(Path(request.output)) == contents(self.output)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what is in each file of a folder."""
    return {path.name: path.read_bytes() for path in files_in(folder)}


@pytest.fixture
async def case(stub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelPlan:
    del stub  # which also keeps what a bridge writes below a folder of its own
    start_instead("small_blocks_bridge.py", monkeypatch)
    folder = tmp_path / "generated"
    write_cluster(ClusterShape(brokers=12, racks=3, topics=40, partitions=4_000), folder, lambda _: None)
    sources = Sources(folder / "snapshot", (folder / "loads",), folder / "brokers.csv")
    goal = Goal(GoalKind.REMOVE_BROKERS, frozenset({3}))
    request = PlanRequest(sources, goal, str(tmp_path / "kernel"), EngineName.KERNEL)
    made = await compute_plan(request)
    assert {f"plan-0000{block}.parquet" for block in range(4)} <= contents(Path(request.output)).keys()
    return KernelPlan(request, made)


@pytest.mark.soak
async def test_a_standalone_cluster_that_loses_a_worker_gives_the_kernels_plan(
    case: KernelPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare_python(tmp_path / "bare")))
    async with standalone_cluster(tmp_path / "cluster") as cluster:

        def lose_a_worker(made: Progress) -> None:
            # By now blocks are kept by both workers, and moves are made.
            if made.phase == "choosing leaders" and made.round == 1:
                cluster.workers[0].kill()

        request = evolve(case.on_spark("standalone"), master=cluster.master, conf=SMALL)
        case.is_met_by(request, await compute_plan(request, lose_a_worker))
        assert cluster.workers[0].process.poll() is not None


MOUNTED = Sources(
    Url("viewfs://lab/data/generated/snapshot"),
    (Url("viewfs://lab/data/generated/loads"),),
    Url("viewfs://lab/data/generated/brokers.csv"),
)
"""The same inputs in a file system that only Spark reaches."""


@pytest.mark.soak
async def test_spark_connect_gives_the_kernels_plan_and_can_be_cancelled(
    case: KernelPlan, ask: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "gate")
    mount = {"spark.hadoop.fs.viewfs.mounttable.lab.link./data": f"file://{tmp_path}"}
    async with connect_server(tmp_path / "server", mount) as remote:
        request = evolve(case.on_spark("connect"), remote=remote, conf={"spark.sql.shuffle.partitions": "4"})
        case.is_met_by(request, await compute_plan(request))
        far = evolve(request, sources=MOUNTED, output=str(tmp_path / "far"))
        case.is_met_by(far, await compute_plan(far))
        start_instead("stub_bridge.py", monkeypatch)
        async with open_bridge() as bridge:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(bridge.plan, ask("count at the gate", EngineName.SPARK, remote=remote))
                await until(lambda: any(path.name.startswith("waiting.") for path in files_in(tmp_path)))
                nursery.cancel_scope.cancel()
            assert (await bridge.plan(ask("count", EngineName.SPARK, remote=remote))).notes == ("4000000",)
