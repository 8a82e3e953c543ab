"""Runs the demo as a user does, and contains its expected output."""

from __future__ import annotations

import re
import subprocess
import sys

ROWS = [
    "before {1,2,3} {} {} 1 {1,2,3}",
    "U1 {4,5,6,1,2,3} {4,5,6} {1,2,3} 1 {1,2,3}",
    "ISR {4,5,6,1,2,3} {4,5,6} {1,2,3} 1 {1,2,3,4,5,6}",
    "B3 {4,5,6,1,2,3} {4,5,6} {1,2,3} 4 {1,2,3,4,5,6}",
    "B4 {4,5,6,1,2,3} {4,5,6} {1,2,3} 4 {4,5,6}",
    "B6 {4,5,6} {} {} 4 {4,5,6}",
]
VERDICT = re.compile(r"^(\d+) records acknowledged, (\d+) read back, 0 lost", re.MULTILINE)


def run_demo(*options: str) -> str:
    command = [sys.executable, "-m", "klamm", "demo", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(printed: str) -> None:
    lines = [" ".join(line.split()[:6]) for line in printed.splitlines()]
    assert [line for line in lines if line in ROWS] == ROWS
    verdict = VERDICT.search(printed)
    assert verdict is not None
    assert int(verdict[1]) == int(verdict[2]) >= 1000
    assert "4, 5, 6 have equal logs and 1, 2, 3 have none" in printed
    assert max(map(len, printed.splitlines())) <= 80
