"""The one door to Spark: a plan is computed by a process of its own, which this one waits for.

Spark's JVM and its memory stay out of the controller, and what nobody waits for any more is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

import spark_bridge
from spark_bridge.plan import Plan, PlanError, PlanRequest

__all__ = ["Plan", "PlanError", "PlanRequest", "compute_plan"]

_PACKAGES = str(Path(spark_bridge.__file__).parent.parent)


async def compute_plan(request: PlanRequest) -> Plan:
    """Compute a plan in a planning process; kill that and its JVM when cancelled.

    Raises:
        PlanError: There is no plan; its text is one line with the cure.
    """
    # A killed JVM does not tidy up: whatever planning leaves goes with this folder.
    with TemporaryDirectory(prefix="klamm-plan-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        asked, answer, complaint = folder / "request.json", folder / "plan.json", folder / "stderr"
        await trio.Path(asked).write_bytes(request.to_json())
        code = await _run(["-m", "spark_bridge", str(answer), str(asked)], folder, complaint)
        if code != 0:
            lines = (await trio.Path(complaint).read_text(errors="replace")).split("\n")
            raise PlanError(next(filter(None, reversed(lines)), f"planning ended with code {code} and said nothing"))
        return Plan.from_json(await trio.Path(answer).read_bytes())


async def _run(arguments: list[str], scratch: Path, stderr: Path) -> int:
    """Run Python in a session of its own, so that it can be killed with all that it started.

    It imports the packages that this process imports (-P: nothing from the working directory).
    """
    path = os.pathsep.join(filter(None, [_PACKAGES, os.environ.get("PYTHONPATH")]))
    with stderr.open("wb") as log:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-P", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log.fileno(),
            env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch)},
            start_new_session=True,
        )
    try:
        return await process.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await process.wait()
        raise
