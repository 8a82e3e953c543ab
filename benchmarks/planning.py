"""Plans of growing size: seconds, memory, bytes moved relative to the lower bound, and the load of the fullest broker.

Each plan is made in a process of its own, from the Parquet files of a generated cluster, as `klamm plan` makes it.
Spark has two cores of this machine. The floor is the same engine reading the same files and summing the loads of each
broker. Neither time includes the start of Spark. `--large` adds the sizes that take minutes; arguments such as `spark
1000000` select from all sizes.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from attrs import asdict, frozen

from benchmarks.kit import figures
from benchmarks.kit.load_sums import by_arrow, by_spark
from benchmarks.kit.memory import processor_seconds, watched
from spark_bridge.generator.files import BROKERS, LOADS, SNAPSHOT, write_cluster
from spark_bridge.generator.shapes import ClusterShape, Placement
from spark_bridge.inputs.sources import Sources
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.model.summary import Summary
from spark_bridge.planning import run_plan
from spark_bridge.process.request import EngineName, PlanRequest
from spark_bridge.process.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER: Final = "local[2]"
PARTITIONS_PER_TOPIC: Final = 100
ADD, DRAIN, REBALANCE = "add 10 %", "drain 2 %", "rebalance"


@frozen
class Case:
    """A plan to make."""

    engine: EngineName
    partitions: int
    brokers: int
    scenario: str

    @property
    def shape(self) -> ClusterShape:
        """Return the cluster. For a rebalance it has grown over time; otherwise replicas are spread at random."""
        placement = Placement.HISTORY if self.scenario == REBALANCE else Placement.UNIFORM
        new_brokers = self.brokers // 10 if self.scenario == ADD else 0
        topics = self.partitions // PARTITIONS_PER_TOPIC
        return ClusterShape(
            self.brokers, topics=topics, partitions=self.partitions, placement=placement, new_brokers=new_brokers
        )

    @property
    def goal(self) -> Goal:
        """Return the goal of the plan."""
        if self.scenario == ADD:
            added = range(self.brokers + 1, self.brokers + self.shape.new_brokers + 1)
            return Goal(GoalKind.ADD_BROKERS, frozenset(added))
        if self.scenario == DRAIN:
            return Goal(GoalKind.REMOVE_BROKERS, frozenset(range(1, self.brokers + 1, 50)))
        return Goal(GoalKind.REBALANCE)


SIZES: Final = ((EngineName.KERNEL, 10_000, 100), (EngineName.KERNEL, 100_000, 100), (EngineName.SPARK, 100_000, 100))
LARGE: Final = (
    (EngineName.KERNEL, 1_000_000, 1_000),
    (EngineName.SPARK, 1_000_000, 1_000),
    (EngineName.SPARK, 10_000_000, 5_000),
)


@frozen
class Measured:
    """The costs of a plan, in seconds and bytes, and the resulting cluster."""

    seconds: float
    processor: float
    floor: float
    driver: int
    jvm: int
    workers: int
    moved: int
    lower_bound: int
    fullest: dict[str, float]

    def row(self, case: Case) -> str:
        """Return a row of the table."""
        ratio = f"{self.moved / self.lower_bound:.3f}" if self.lower_bound else "-"
        cells = [
            f"{case.partitions:,} x {case.brokers:,}",
            case.engine,
            case.scenario,
            f"{self.seconds:.1f}",
            f"{self.processor:.1f}",
            f"{self.floor:.1f}",
            *(f"{size / 2**20:,.0f}" if size else "-" for size in (self.driver, self.jvm, self.workers)),
            f"{self.moved / 2**30:,.0f}",
            ratio,
            *(f"{self.fullest.get(measure, 0):.2f}" for measure in MEASURES),
        ]
        return f"| {' | '.join(cells)} |"


MEASURES: Final = ("replicas", "leaders", "bytes", "bytes_in")
COLUMNS: Final = (
    *("partitions x brokers", "engine", "plan"),
    *("s", "processor, s", "floor, s", "driver, MiB", "JVM, MiB", "workers, MiB"),
    *("moved, GiB", "of lower bound", "max/mean: replicas", "leaders", "bytes", "bytes in"),
)
TEXTS: Final = 3
"""The number of columns with text, which come first."""


def measure(case: Case, folder: Path) -> Measured:
    """Make one plan in this process."""
    cluster = folder / "cluster"
    sources = Sources(cluster / SNAPSHOT, (cluster / LOADS,), cluster / BROKERS)
    request = PlanRequest(sources, case.goal, str(folder / "plan"), case.engine)
    with ExitStack() as stack:
        (folder / "spark").mkdir()
        sessions: list[SparkSession] = []
        if case.engine is EngineName.SPARK:
            sessions.append(stack.enter_context(spark_session(folder / "spark", MASTER)))
            sessions[0].range(1).collect()
        with watched() as peaks:
            begun, used = time.perf_counter(), processor_seconds()
            summary = run_plan(request, lambda _: None, lambda: sessions[0])
            seconds, processor = time.perf_counter() - begun, processor_seconds() - used
        begun = time.perf_counter()
        by_spark(sessions[0], cluster) if sessions else by_arrow(cluster)
        floor = time.perf_counter() - begun
    return Measured(
        seconds=seconds,
        processor=processor,
        floor=floor,
        driver=peaks.driver,
        jvm=peaks.jvm,
        workers=peaks.workers,
        moved=summary.moved_bytes,
        lower_bound=summary.lower_bound,
        fullest=fullest(summary),
    )


def fullest(summary: Summary) -> dict[str, float]:
    """Return for each measure the load of the fullest live broker as a multiple of the mean."""
    live = [broker.after for broker in summary.brokers if broker.state == "live"]
    loads = {measure: [getattr(load, measure) for load in live] for measure in MEASURES}
    return {measure: max(values) * len(values) / sum(values) for measure, values in loads.items() if sum(values)}


def measured_apart(case: Case) -> Measured:
    """Generate a cluster, and make its plan in a process of its own."""
    with TemporaryDirectory(prefix="klamm-bench-") as folder:
        write_cluster(case.shape, Path(folder) / "cluster", lambda _: None)
        command = [sys.executable, __file__, "--one", json.dumps(asdict(case)), folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(done.stdout))


def cases(arguments: list[str]) -> list[Case]:
    """Return the requested plans."""
    wanted = set(arguments) - {"--large"}
    sizes = SIZES + LARGE if wanted or "--large" in arguments else SIZES
    chosen = [size for size in sizes if wanted <= {str(size[0]), str(size[1])}]
    return [Case(*size, scenario) for size in chosen for scenario in (ADD, DRAIN, REBALANCE)]


def main(arguments: list[str]) -> None:
    """Print a row for each plan."""
    if arguments[:1] == ["--one"]:
        case = json.loads(arguments[1])
        measured = measure(Case(**{**case, "engine": EngineName(case["engine"])}), Path(arguments[2]))
        print(json.dumps(asdict(measured)))
        return
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"| {' | '.join(['---'] * TEXTS + ['---:'] * (len(COLUMNS) - TEXTS))} |", flush=True)
    seconds: dict[Case, float] = {}
    for case in cases(arguments):
        measured = measured_apart(case)
        seconds[case] = measured.processor
        print(measured.row(case), flush=True)
        row = f"{case.scenario}, {case.partitions:,} x {case.brokers:,}, {case.engine}"
        figures.note(row, "s", measured.seconds)
        figures.note(row, "processor, s", measured.processor)
    print("", *growth(seconds), sep="\n")


def growth(seconds: dict[Case, float]) -> Iterator[str]:
    """Yield a sentence for each plan: how its processor time grows from the smallest cluster to the largest."""
    plans = defaultdict(list)
    for case, taken in seconds.items():
        plans[case.engine, case.scenario].append((case.partitions, taken))
    for (engine, scenario), taken_by_size in plans.items():
        (least, low), (most, high) = min(taken_by_size), max(taken_by_size)
        if most > least:
            power = math.log(high / low) / math.log(most / least)
            yield f"{scenario} ({engine}): the time grows with partitions to the power of {power:.2f} (1 is linear)"


if __name__ == "__main__":
    main(sys.argv[1:])
