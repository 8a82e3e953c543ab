"""A process of a campaign: reads a seed and an engine from each line of stdin, and writes a line with the result.

It is a process of its own so that a plan that hangs, or eats the memory, ends it and not the campaign.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from attrs import asdict, evolve, frozen

from spark_bridge.process.session import spark_session
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.clusters import shaped
from tests.spark.shapes.faults import InstanceOutcome, PlanFault, judged
from tests.spark.shapes.plans import EngineOf, blocks_for, in_process, on_spark, planned

_GRACE = 60
"""Processor seconds that judging may take on top of planning."""


_SMALL = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
"""Spark's settings for clusters of a few blocks: each part of the data is a task in every job."""


@frozen
class ReportLine:
    """A worker's report on a plan.

    Attributes:
        seed: Of the instance.
        engine: What planned it.
        goal: The kind of its goal.
        partitions: How many it has.
        brokers: How many it has.
        cpu: Seconds of processor time that the plan took; None where it did not end.
        refusal: See `Outcome`.
        said: What the planner said where it refused.
        faults: Pairs of words and details.
        cut: "stays" or "moves again" where the bound on work ended the search; else empty.
    """

    seed: int
    engine: str
    goal: str
    partitions: int
    brokers: int
    cpu: float | None
    refusal: str
    said: str
    faults: tuple[tuple[str, str], ...]
    cut: str = ""


def line_of(given: Instance, engine: str, outcome: InstanceOutcome) -> ReportLine:
    """Put an outcome into a line."""
    plan = outcome.plan
    return ReportLine(
        seed=given.seed,
        engine=engine,
        goal=given.kind,
        partitions=len(given.names),
        brokers=len(given.brokers),
        cpu=None if plan is None else plan.cpu,
        refusal=outcome.refusal,
        said=(plan and plan.refusal) or "",
        faults=tuple((fault.what, fault.details) for fault in outcome.faults),
        cut="" if plan is None or not plan.is_cut else "moves again" if outcome.moves_again else "stays",
    )


def look_at(seed: int, engine: str, longest: float, spark: Callable[[], EngineOf]) -> ReportLine:
    """Plan a seed's instance on an engine and judge it."""
    given = shaped(seed)
    if engine != "spark":
        _limit(3 * longest + _GRACE)
        return line_of(given, engine, judged(given, engine, longest=longest))
    # Spark's processes last for all clusters, and would inherit a limit that is for one.
    _unlimited()
    engine_of = spark()
    _limit(3 * longest + _GRACE)
    return line_of(given, engine, compared(given, judged(given, engine, engine_of, longest=longest)))


def compared(given: Instance, outcome: InstanceOutcome) -> InstanceOutcome:
    """Hold a plan of Spark's against that of the same blocks in this process."""
    there = outcome.plan
    if there is None:
        return outcome
    here = planned(given, blocks_for(given, "spark"), in_process)
    same = here.lists == there.lists and here.refusal == there.refusal
    if here.summary is not None and there.summary is not None:
        same &= evolve(here.summary, engine="") == evolve(there.summary, engine="")
    fault = PlanFault("engines differ", f"{here.refusal or here.lists} and {there.refusal or there.lists}")
    return outcome if same else evolve(outcome, faults=(*outcome.faults, fault))


def _limit(seconds: float) -> None:
    """Have the kernel end this process after so many more seconds of processor time."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(process_time() + seconds), hard))


def _unlimited() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))


def main() -> None:
    """Look at what is asked for until stdin ends."""
    with ExitStack() as stack:

        @cache
        def spark() -> EngineOf:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            session = stack.enter_context(spark_session(folder, "local[2]", conf=_SMALL))
            return on_spark(session, folder / "blocks")

        for asked in sys.stdin:
            seed, engine, longest = json.loads(asked)
            line = look_at(seed, engine, longest, spark)
            sys.stdout.write(json.dumps(asdict(line)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
