"""A plan from start to end: read, move replicas, choose leaders, check, write, summarize."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine
from spark_bridge.errors import PlanError
from spark_bridge.inputs.sources import source_of
from spark_bridge.jobs import NamedJobs
from spark_bridge.kernel.tally import Tally
from spark_bridge.model.block import BLOCK_SIZE, Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import Goal, LeaderScope
from spark_bridge.model.summary import Summary
from spark_bridge.outputs.files import claim_folder, write_plan
from spark_bridge.outputs.reasons import Marks, reasons_of
from spark_bridge.outputs.reassignment import Ids
from spark_bridge.outputs.rows import plan_rows
from spark_bridge.process.request import EngineName, PlanRequest
from spark_bridge.progress import OnProgress, Progress
from spark_bridge.remote_folder import RemoteFolder, SharedFolder, remove_folder
from spark_bridge.rounds.bytes_out import plan_bytes_out
from spark_bridge.rounds.leaders import plan_leaders
from spark_bridge.rounds.moves import Afresh, Evening, plan_moves
from spark_bridge.rounds.stranded import Stranded, leave_out
from spark_bridge.rules import disk_tally, disk_violations, violations
from spark_bridge.summing import Planned, marks_of, needless, summarize

if TYPE_CHECKING:
    from spark_bridge.process.opener import SparkOpener

KERNEL_LIMIT = 64 * BLOCK_SIZE
"""The largest number of partitions that the kernel plans unless the request names an engine.

The kernel takes a quarter of Spark's processor time for a million partitions, and less than half for ten million
(docs/performance.md). So Spark is worth it when several cores share minutes of work.
"""


@frozen
class Cluster:
    """A cluster in an engine, and the faults of its inputs. `id` is None if it is not known."""

    engine: Engine
    brokers: Brokers
    set_aside: dict[str, int]
    unknown_loads: int
    id: str | None = None


def run_plan(request: PlanRequest, progress: OnProgress, spark: SparkOpener) -> Summary:
    """Carry out a request: write the plan's files to its folder and return the summary.

    Args:
        request: The request.
        progress: Called with the progress; may raise to end the plan.
        spark: Opens the Spark session; called only if Spark is needed.

    Raises:
        PlanError: Planning failed; nothing was written.
    """
    jobs = NamedJobs(f"klamm plan {request.goal.kind.value}", progress)
    with _claimed(request, lambda: jobs.on(spark())) as (output, scratch):
        jobs(Progress("reading"))
        hidden = _left_out(request)
        cluster = open_cluster(request, lambda: jobs.on(spark()), scratch)
        try:
            planned = plan_cluster(cluster.engine, cluster.brokers, request.goal, jobs)
            jobs(Progress("summing up"))
            summary = summarize(planned, cluster.set_aside, cluster.unknown_loads)
            if hidden is not None:
                summary = evolve(summary, notes=(f"planned for what is visible: {hidden}", *summary.notes))
            refuse_worse(summary, request.goal)
            jobs(Progress("writing"))
            write(planned, output, cluster.id)
        finally:
            cluster.engine.close()
            jobs.end()
    return summary


@contextmanager
def _claimed(request: PlanRequest, spark: SparkOpener) -> Iterator[tuple[SharedFolder, SharedFolder]]:
    """Claim the plan's folder before the work, and yield it with a scratch folder in it that workers see as well.

    After an error, a folder that was created here is removed.
    """
    output = source_of(request.output)
    if isinstance(output, Path):
        with _claimed_here(output) as scratch:
            yield output, scratch
        return
    folder = RemoteFolder(spark(), output)
    aside = folder / ".scratch"
    there = folder.claim()
    try:
        yield folder, aside
    except BaseException:
        remove_folder(aside if there else folder)
        raise
    remove_folder(aside)


@contextmanager
def _claimed_here(output: Path) -> Iterator[Path]:
    there = output.exists()
    claim_folder(output)
    try:
        with TemporaryDirectory(prefix=".scratch-", dir=output, ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)
    except BaseException:
        rmtree(output, ignore_errors=True)
        if there:
            output.mkdir(exist_ok=True)
        raise


def plan_cluster(engine: Engine, brokers: Brokers, goal: Goal, progress: OnProgress) -> Planned:
    """Plan the blocks of an engine, and check the plan against the rules.

    Partitions that cannot be changed now leave their blocks first (see `leave_out`).

    If evening out leaves a measure less even than it was and than forced moves make it, the plan is made again with
    less evening out, unless it is forced.

    Raises:
        PlanError: The goal cannot be planned, or the plan breaks a rule.
    """
    stranded = leave_out(engine, brokers)
    planned = evolve(_planned(engine, brokers, goal, progress), stranded=stranded)
    if not goal.force and (worse := _worse(planned)):
        planned = _less_evened(planned, progress, worse)
    progress(Progress("checking"))
    bounds = planned.bounds
    check(engine, brokers, goal, counts_rests=bool(bounds.terms.rests.any()), spares=bounds.unrepaired > 0)
    return evolve(planned, goal=goal, stranded=stranded)


def _less_evened(planned: Planned, progress: OnProgress, worse: tuple[str, ...]) -> Planned:
    """Plan again with less evening out, because the plan makes measures less even without need."""
    ways = [(evening, planned.goal) for evening in Evening if evening is not Evening.FREE]
    for evening, goal in [*ways, (Evening.NONE, evolve(planned.goal, leaders=LeaderScope.NONE))]:
        # Walls limit the measures that move with replicas, not leaders; so if only leaders are worse, that attempt is
        # skipped.
        if worse and (evening is not Evening.WITHIN_WALLS or worse != ("leaders",)):
            planned.engine.step(Afresh())
            planned = _planned(planned.engine, planned.brokers, goal, progress, evening)
            worse = _worse(planned)
    return planned


def _planned(
    engine: Engine, brokers: Brokers, goal: Goal, progress: OnProgress, evening: Evening = Evening.FREE
) -> Planned:
    bounds = plan_moves(engine, brokers, goal, progress, evening)
    leaders = plan_leaders(engine, brokers, bounds.terms, goal, progress)
    plan_bytes_out(engine, brokers, bounds.terms, goal, progress)
    return Planned(engine, brokers, goal, bounds, leaders, Stranded.nothing(brokers))


def _worse(planned: Planned) -> tuple[str, ...]:
    """Return the measures for which a plan would be rejected (see `refuse_worse`)."""
    bounds = planned.bounds
    loads = {"before": (bounds.before, bounds.leaders), "after": (bounds.after, planned.leaders.load)}
    tally: Tally = {name: np.insert(load, 1, leaders, axis=1) for name, (load, leaders) in loads.items()}
    tally["max_weight"] = bounds.heaviest
    return needless(planned, tally, planned.evenness(tally))


def _left_out(request: PlanRequest) -> str | None:
    """Return what the snapshot lacks. Raises PlanError if the request does not accept that."""
    from spark_bridge.inputs.partial import left_out  # noqa: PLC0415

    return left_out(request.sources)


def open_cluster(request: PlanRequest, spark: SparkOpener, scratch: SharedFolder) -> Cluster:
    """Read the inputs into an engine; on Spark, `scratch` is a folder that workers see.

    Raises:
        PlanError: The inputs cannot be read, or have bad rows that must be rejected.
    """
    from spark_bridge.engines.in_process import InProcess  # noqa: PLC0415 (see below)
    from spark_bridge.inputs.read import read_cluster  # noqa: PLC0415
    from spark_bridge.model.packing import blocks_of  # noqa: PLC0415

    if plans_on_spark(request):
        return _on_spark(request, spark, scratch)
    inputs = read_cluster(request.sources)
    if plans_on_spark(request, len(inputs.partitions)):
        return _on_spark(request, spark, scratch)
    blocks = list(blocks_of(inputs.partitions, inputs.brokers.ids))
    return Cluster(InProcess(blocks), inputs.brokers, inputs.set_aside, inputs.unknown_loads, inputs.cluster_id)


def plans_on_spark(request: PlanRequest, partitions: int = 0) -> bool:
    """Return whether Spark plans a request: if it is required, or if the number of partitions makes it worthwhile."""
    asked = request.engine is EngineName.SPARK or bool(request.master or request.remote or request.urls)
    return asked or (request.engine is EngineName.AUTO and partitions > KERNEL_LIMIT)


def _on_spark(request: PlanRequest, spark: SparkOpener, scratch: SharedFolder) -> Cluster:
    # PySpark is an extra, and importing it takes a second.
    from spark_bridge.engines.spark import OnSpark  # noqa: PLC0415
    from spark_bridge.inputs.on_spark import read_cluster_on_spark  # noqa: PLC0415

    session = spark()
    with TemporaryDirectory(prefix="klamm-plan-") as own:
        inputs = read_cluster_on_spark(session, request.sources, scratch / "inputs", Path(own))
    engine = OnSpark.of(session, scratch, inputs.dealt, inputs.blocks, inputs.brokers.ids)
    remove_folder(scratch / "inputs")
    return Cluster(engine, inputs.brokers, inputs.set_aside, inputs.unknown_loads, inputs.cluster_id)


@frozen(eq=False)
class _Broken:
    """The query for the rules that a block's plan breaks."""

    brokers: Brokers
    goal: Goal
    counts_rests: bool
    spares: bool

    def __call__(self, number: int, block: Block) -> list[str]:
        del number
        return violations(block, self.brokers, self.goal, counts_rests=self.counts_rests, spares=self.spares)


@frozen(eq=False)
class _Checked:
    """The query for the number of violations, and for the bytes that each broker has and gains."""

    broken: _Broken

    def __call__(self, number: int, block: Block) -> Tally:
        return {
            "broken": np.array([len(self.broken(number, block))]),
            "disks": disk_tally(block, self.broken.brokers),
        }


def check(engine: Engine, brokers: Brokers, goal: Goal, *, counts_rests: bool = True, spares: bool = False) -> None:
    """Check a plan against the hard rules (see `violations`).

    Raises:
        PlanError: It breaks a rule for a partition, which is a bug of this program, or does not fit on the disks.
    """
    broken = _Broken(brokers, goal, counts_rests, spares)
    tally = engine.ask(_Checked(broken))
    if tally["broken"].any():
        (first,) = engine.texts(broken, 1)
        raise PlanError(f"the plan breaks a rule and was thrown away, please report: {first}")
    if over := disk_violations(brokers, tally["disks"]):
        raise PlanError(f"the plan does not fit the disks: {over[0]}: add disks or brokers, or name fewer brokers")


def refuse_worse(summary: Summary, goal: Goal) -> None:
    """Reject a plan that makes a measure less even without need, unless it is forced.

    Raises:
        PlanError: There is such a measure.
    """
    if summary.needless and not goal.force:
        far = {e.measure: e for e in summary.evenness}
        told = ", ".join(
            f"{name} (a broker {100 * far[name].after:.1f} % from its share, before {100 * far[name].before:.1f} %)"
            for name in summary.needless
        )
        raise PlanError(f"the plan would leave the cluster less even than it is in {told}: --force takes it as it is")


@frozen(eq=False)
class _Write:
    """Writes a block's part of the plan, and reports the number of files."""

    folder: str
    ids: NDArray[np.int32]
    marks: Marks
    blocks: int
    cluster_id: str | None

    def __call__(self, number: int, block: Block) -> Tally:
        return self.into(Path(self.folder), number, block)

    def into(self, folder: Path, number: int, block: Block) -> Tally:
        """Write into a folder of the machine where this runs."""
        rows = plan_rows(block, self.ids, reasons_of(block, self.marks))
        if not len(rows) and self.blocks > 1:
            return {"files": np.array([0])}
        part = f"{number:05}" if self.blocks > 1 else ""
        # Without any known id, a block has no list of them.
        ids = Ids(self.cluster_id, dict(zip(block.topics, block.topic_ids, strict=False)))
        return {"files": np.array([len(write_plan([rows], folder, part=part, ids=ids))])}


def write(planned: Planned, folder: SharedFolder, cluster_id: str | None = None) -> None:
    """Write each block's part of the plan on the worker that holds the block, with the id of the cluster if known.

    Raises:
        PlanError: A file cannot be written.
    """
    marks = marks_of(planned.brokers, planned.bounds)
    engine = planned.engine
    if isinstance(folder, Path):
        engine.ask(_Write(str(folder.absolute()), planned.brokers.ids, marks, engine.blocks, cluster_id))
        return
    from spark_bridge.engines.spark import OnSpark  # noqa: PLC0415
    from spark_bridge.outputs.remote_files import write_remote_plan  # noqa: PLC0415

    assert isinstance(engine, OnSpark)
    writing = _Write("", planned.brokers.ids, marks, engine.blocks, cluster_id)
    write_remote_plan(engine, writing.into, folder)
