"""A plan does not depend on the order of sets of strings, which differs from process to process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from klamm.cli.planning.generating import generate_cluster


def plan(directory: Path, hash_seed: int) -> dict[str, bytes]:
    """Plan in a process of its own; return the files of the plan by their names."""
    output = directory / f"plan-{hash_seed}"
    cluster = directory / "cluster"
    inputs = (
        "--snapshot",
        cluster / "snapshot",
        "--loads",
        cluster / "loads",
        "--brokers-table",
        cluster / "brokers.csv",
    )
    command = [sys.executable, "-m", "klamm", "plan", "rebalance", *map(str, inputs), "--out", str(output)]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": str(hash_seed)}, capture_output=True, check=True)
    return {str(file.relative_to(output)): file.read_bytes() for file in output.rglob("*") if file.is_file()}


def test_a_plan_is_the_same_in_another_process(tmp_path: Path) -> None:
    size = ("--brokers", "12", "--topics", "40", "--partitions", "600", "--racks", "3")
    made = CliRunner().invoke(generate_cluster, [*size, "--out", str(tmp_path / "cluster")])
    assert made.exit_code == 0
    first = plan(tmp_path, 1)
    assert first == plan(tmp_path, 2)
    assert len(first) > 1
