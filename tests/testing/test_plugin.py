"""The pytest plugin: the source of the seed, and the report of a failure."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FAILING = """
async def test_that_fails(cluster):
    async with cluster(brokers=2) as c:
        c.crash(2)
        assert c.active_controller is None, c.trace.digest
"""

CLOCKS = """
import pytest
import trio

async def test_with_our_clock(cluster):
    assert trio.current_time() == 0

async def test_with_the_clock_of_pytest_trio(cluster, autojump_clock):
    async with cluster(brokers=1):
        assert trio.lowlevel.current_clock() is autojump_clock

class TestOther:
    @pytest.fixture
    def cluster(self):
        return "another fixture of this name"

    def test_that_is_not_ours(self, cluster):
        assert cluster == "another fixture of this name"
"""


def run_pytest(directory: Path, test: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "klamm.testing.plugin", *arguments, "test_it.py"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.requirement("E4")
def test_a_failure_tells_the_seed_that_replays_it_and_how_the_trace_ends(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, FAILING, "--klamm-seed=7").stdout
    assert "The simulated cluster had the seed 7" in output
    assert re.search(r"\d\.\d{6} fault +broker-2 +crashes", output)
    [digest] = set(re.findall(r"AssertionError: ([0-9a-f]{32})\n", output))
    assert digest in run_pytest(tmp_path, FAILING, "--klamm-seed=7").stdout
    assert digest not in run_pytest(tmp_path, FAILING).stdout


@pytest.mark.parametrize("trio_mode", ["false", pytest.param("true", marks=pytest.mark.soak)])
def test_time_is_virtual_for_who_takes_our_fixture_and_for_nobody_else(tmp_path: Path, trio_mode: str) -> None:
    done = run_pytest(tmp_path, CLOCKS, "-o", f"trio_mode={trio_mode}")
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_without_pytest_trio_it_says_what_to_install(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, FAILING, "-p", "no:trio", "-p", "no:pytest_trio")
    assert done.returncode == 1
    assert "the fixture cluster needs pytest-trio: pip install 'klamm[testing]'" in done.stdout
