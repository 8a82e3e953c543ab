"""The examples run as the docs print them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name: str) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("E4")
def test_a_controller_embeds_in_a_trio_program() -> None:
    assert "TopicChange create: orders-0 is led by" in run_example("embed_in_trio.py")


@pytest.mark.requirement("D1", "D12", "E4")
def test_two_controllers_embed_in_an_asyncio_program() -> None:
    lines = [line for line in run_example("embed_in_asyncio.py").splitlines() if line.startswith("controller")]
    assert lines == [
        "controller 1001 leads",
        "controller 1001 resigned, 1002 is next",
        "controller 1002 leads",
        "controller 1002 resigned",
    ]
