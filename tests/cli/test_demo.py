"""The demo, as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

ROWS = [
    "before {1,2,3} {} {} 1 {1,2,3}",
    "A2 {4,5,6,1,2,3} {4,5,6} {1,2,3} 1 {1,2,3}",
    "ISR {4,5,6,1,2,3} {4,5,6} {1,2,3} 1 {1,2,3,4,5,6}",
    "B3 {4,5,6,1,2,3} {4,5,6} {1,2,3} 4 {1,2,3,4,5,6}",
    "B4 {4,5,6,1,2,3} {4,5,6} {1,2,3} 4 {4,5,6}",
    "B6 {4,5,6} {} {} 4 {4,5,6}",
]
VERDICT = re.compile(r"^(\d+) records acknowledged, (\d+) read back, 0 lost", re.MULTILINE)


def run_demo(*options: str) -> str:
    command = [sys.executable, "-m", "controller.cli", "demo", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(printed: str) -> None:
    lines = [" ".join(line.split()[:6]) for line in printed.splitlines()]
    assert [line for line in lines if line in ROWS] == ROWS
    verdict = VERDICT.search(printed)
    assert verdict is not None
    assert int(verdict[1]) == int(verdict[2]) >= 1000
    assert "4, 5, 6 hold equal logs and 1, 2, 3 none" in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.requirement("A2", "A4", "A5", "A6", "A7")
def test_the_demo_in_one_process() -> None:
    check(run_demo("--store", "memory"))


@pytest.mark.requirement("A8")
def test_the_demo_in_one_process_survives_the_death_of_a_controller() -> None:
    printed = run_demo("--store", "memory", "--kill-controller")
    assert "controller 1001 was killed" in printed or "controller 1002 was killed" in printed
    check(printed)


@pytest.mark.requirement("A7", "A8", "D1", "E2", "E3")
def test_the_demo_on_zookeeper_survives_the_death_of_a_controller(zookeeper: str) -> None:
    assert zookeeper, "the demo starts one of its own: this one tells that Java is there"
    printed = run_demo("--kill-controller")
    assert "was killed after A2" in printed
    assert "moved by the plan: invoices" in printed
    check(printed)
