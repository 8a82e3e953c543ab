"""The bridge: `python -m spark_bridge FOLDER`, with a folder of its own. See `serving` for its messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from spark_bridge.model.summary import Summary
from spark_bridge.process.opener import SparkOpener
from spark_bridge.process.request import PlanRequest
from spark_bridge.process.serving import serve
from spark_bridge.progress import OnProgress


def main(arguments: Sequence[str]) -> int:
    """Serve the process that started this one; return the exit code if the arguments are wrong."""
    if len(arguments) == 1 and Path(arguments[0]).is_dir():
        serve(run_plan, Path(arguments[0]))
    print("usage: python -m spark_bridge FOLDER", file=sys.stderr)  # noqa: T201 (it is a command)
    return 2


def run_plan(request: PlanRequest, progress: OnProgress, spark: SparkOpener) -> Summary:
    """Plan. Imports happen here, so that the bridge listens to its caller before they are done."""
    from spark_bridge.planning import run_plan as run  # noqa: PLC0415

    return run(request, progress, spark)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
