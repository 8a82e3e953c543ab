"""Rollouts that are carried out from outside: a run in a process of its own, and what is left beside its plan."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from klamm.cli.rollout.plan_files import PlanFiles
from tests.cli.shell import run_klamm


@asynccontextmanager
async def running(plan: Path, bootstrap: str, *options: str) -> AsyncIterator[trio.Process]:
    """Carry out a plan in a process of its own, which is killed at the end of the block."""
    command = [sys.executable, "-m", "klamm", "rollout", "run", str(plan), *options, "--bootstrap-server", bootstrap]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.returncode is None:
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()


async def status_of(plan: Path) -> Any:  # noqa: ANN401  a document of JSON
    """Return what is known of a rollout without a cluster."""
    done = await run_klamm("rollout", "status", str(plan), "-o", "json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def journal(plan: Path, kind: str) -> list[dict[str, Any]]:
    """Return the entries of a kind that a rollout has written whole so far."""
    file = PlanFiles(plan).journal
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [entry for entry in entries if entry["is"] == kind]
