"""The planning process: `python -m spark_bridge PLAN [REQUEST]`.

Reads a request (JSON, from a file or, without one, from stdin), writes the plan (JSON) into the file PLAN, exits 0.
Whatever goes wrong is one line on stderr, exit code 1, and no file. Nothing else is printed.

What can be refused is refused before Spark starts, which takes seconds and needs Java.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from spark_bridge.java import java_problem
from spark_bridge.model.summary import Summary
from spark_bridge.opener import SparkOpener
from spark_bridge.plan import Plan, PlanError, PlanRequest
from spark_bridge.progress import OnProgress
from spark_bridge.request import PlanRequest as Request
from spark_bridge.rules import Cluster, refuse, violations
from spark_bridge.serving import RunPlan, serve
from spark_bridge.snapshot import read_snapshot


def main(arguments: Sequence[str]) -> int:
    """Answer one request; return the exit code."""
    if len(arguments) == 2 and arguments[0] == "serve":  # noqa: PLR2004 (a word and a folder)
        serve(run_plan, Path(arguments[1]))
    if len(arguments) not in (1, 2):
        print("usage: python -m spark_bridge PLAN [REQUEST]", file=sys.stderr)  # noqa: T201 (it is a command)
        return 2
    try:
        request = PlanRequest.from_json(_read(arguments[1:]))
        cluster = Cluster(read_snapshot(Path(request.snapshot)), frozenset(request.remove_brokers))
        refuse(cluster)
        _write(Path(arguments[0]), plan_on_spark(cluster))
    except (PlanError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201 (it is a command)
        return 1
    return 0


def run_plan(request: Request, progress: OnProgress, spark: SparkOpener) -> Summary:
    """Plan, once what that needs is imported: the bridge hears its caller before."""
    run: RunPlan = import_module("spark_bridge.planning").run_plan
    return run(request, progress, spark)


def plan_on_spark(cluster: Cluster) -> Plan:
    """Start Spark, compute the plan, check it.

    Raises:
        PlanError: Spark or Java is missing or fails.
    """
    if not find_spec("pyspark"):
        raise PlanError("planning needs Spark: pip install 'klamm[spark]'")
    if problem := java_problem():
        raise PlanError(problem)
    # Only here: PySpark is an extra, and importing it takes a second.
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from spark_bridge.removal import plan_removal  # noqa: PLC0415
    from spark_bridge.session import output_to, spark_session  # noqa: PLC0415

    with TemporaryDirectory(prefix="klamm-plan-", ignore_cleanup_errors=True) as scratch:
        log = Path(scratch, "spark.log")
        try:
            with output_to(log), spark_session(Path(scratch)) as spark:
                plan = plan_removal(spark, cluster, Path(scratch))
        except (PySparkException, Py4JError) as error:
            raise PlanError(f"Spark failed: {_first_line(error)} (its log ends: {_last_line(log)})") from error
    if broken := violations(cluster, plan):
        raise PlanError(f"the plan breaks {len(broken)} rules and was thrown away, please report: {broken[0]}")
    return plan


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _last_line(log: Path) -> str:
    return next(reversed(log.read_text(errors="replace").splitlines()), "empty")


def _read(paths: Sequence[str]) -> bytes:
    return Path(paths[0]).read_bytes() if paths else sys.stdin.buffer.read()


def _write(path: Path, plan: Plan) -> None:
    """Write the file whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(plan.to_json())
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
