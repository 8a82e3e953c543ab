"""A bridge whose plans do what a word says; as for the real one, the argument is its scratch folder."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from spark_bridge.errors import PlanError
from spark_bridge.model.summary import Summary
from spark_bridge.process.opener import SparkOpener
from spark_bridge.process.request import PlanRequest
from spark_bridge.process.serving import serve
from spark_bridge.progress import OnProgress, Progress

if TYPE_CHECKING:
    import pyarrow as pa

plans: list[PlanRequest] = []


def run_plan(request: PlanRequest, progress: OnProgress, spark: SparkOpener) -> Summary:
    """Do what the first topic says, with the output folder for what is shared with the test."""
    plans.append(request)
    if request.goal.topics[0] == "die unless first" and len(plans) > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    progress(Progress("bridge", left=str(os.getpid())))
    match request.goal.topics[0]:
        case "sing":
            progress(Progress("moving", 1, 2, "7 replicas"))
            progress(Progress("moving", 2, 2))
        case "refuse":
            raise PlanError("there is no way: make one")
        case "fail":
            raise ValueError("odd\nvery odd")
        case "be deaf":
            threading.Event().wait()
        case "die":
            os.write(2, b"a last gasp\n")
            os.kill(os.getpid(), signal.SIGKILL)
        case "count" | "count at the gate" as what:
            return summary(str(count(spark, progress, Path(request.output), gate=what != "count")))
        case "refuse in a worker":
            refuse_in_a_worker(spark)
    return summary(*(name for name in ("pyspark", "numpy") if name in sys.modules))


def count(spark: SparkOpener, progress: OnProgress, folder: Path, *, gate: bool) -> int:
    """Count bytes in workers; with a gate, each task leaves a file and waits until the gate is opened."""
    from spark_bridge.process.session import jvm_of  # noqa: PLC0415 (a bridge may do without PySpark)

    session = spark()
    jvm = jvm_of(session)
    progress(Progress("spark", left=None if jvm is None else str(jvm.pid)))

    def measure(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 (runs in a worker)

        for batch in batches:
            if gate:
                (folder / f"waiting.{os.getpid()}").touch()
                (folder / "gate").read_bytes()
            sizes = [len(value) for value in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pydict({"size": pa.array(sizes, pa.int64())})

    rows = session.range(0, 4, 1, 2).selectExpr("cast(repeat('x', 1000000) as binary) as state")
    return sum(row["size"] for row in rows.mapInArrow(measure, "size bigint").collect())


def refuse_in_a_worker(spark: SparkOpener) -> None:
    """Raise what our code raises for bad input, where Spark runs it."""

    def refuse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise PlanError("loads.csv, row 7: no size")

    spark().range(1).mapInArrow(refuse, "id bigint").collect()


def summary(*notes: str) -> Summary:
    """Return a summary that says nothing but this."""
    return Summary(
        goal="none",
        options={},
        engine="none",
        partitions=0,
        changed=0,
        reordered=0,
        moved_replicas=0,
        moved_bytes=0,
        lower_bound=0,
        brokers=(),
        evenness=(),
        flows=(),
        flows_left=0,
        reasons={},
        set_aside={},
        unknown_loads=0,
        worse=(),
        needless=(),
        notes=notes,
        rack_flows=(),
    )


if __name__ == "__main__":
    serve(run_plan, Path(sys.argv[1]))
