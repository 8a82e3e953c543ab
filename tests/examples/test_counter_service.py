"""The counter service of the tutorial, and the tutorial itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVICE = (ROOT / "examples" / "counter_service.py").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


def test_the_counters_move_while_they_count_and_lose_nothing() -> None:
    command = [sys.executable, "-W", "error", "-m", "examples.count"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 hits counted: leader 1, replicas [1, 2], ISR [1, 2]\n" in done.stdout
    assert "moved while it counted: leader 3, replicas [3, 2], ISR [2, 3]\n" in done.stdout
    totals = re.search(r"^(\d+) hits counted, the counter stands at (\d+)$", done.stdout, re.MULTILINE)
    assert totals is not None
    # Exact unless an add met the change of leaders: then it was repeated, and may count twice.
    repeated = done.stdout.count("trying again: ")
    assert 10 < int(totals[1]) <= int(totals[2]) <= int(totals[1]) + repeated


def test_the_service_has_a_hundred_lines_or_fewer() -> None:
    assert len(SERVICE.splitlines()) <= 100


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL))
def test_what_the_tutorial_shows_is_in_the_service(block: str) -> None:
    assert block in SERVICE
