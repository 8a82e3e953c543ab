"""The slowest tests are found where tests run in workers and leave the work to processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

TESTS: Final = """
import subprocess, sys, time

BUSY = "import sys, time\\nwhile time.process_time() < 0.5: pass\\n"
GOES_ON = BUSY + "print(flush=True)\\nsys.stdin.read()"


def test_idle():
    time.sleep(0.5)


def test_with_a_process_that_ends():
    subprocess.run([sys.executable, "-c", BUSY], check=True)


def test_with_a_process_that_goes_on():
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    subprocess.Popen([sys.executable, "-c", GOES_ON], **pipes).stdout.readline()
"""


def test_processes_below_the_workers_count(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_of_processes.py").write_text(TESTS)
    options = ["-q", "-n", "1", "-p", "tests.house.processor_time", "--slowest", "2", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    listed = [line.split() for line in lines if line.startswith("   ") and " s " in line]
    [file], tests = listed[:1], listed[1:]
    assert file[-1] == "test_of_processes.py"
    assert {test[-1].partition("::")[2] for test in tests} == {
        "test_with_a_process_that_ends",
        "test_with_a_process_that_goes_on",
    }
    # Linux counts in hundredths of a second.
    assert all(float(test[0]) > 0.4 for test in tests)
