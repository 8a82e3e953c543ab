"""A state-change log on a full device: reported once, and again when there is room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import resource, sys
from pathlib import Path
from klamm.cli.running import configure_logs
from controller.monitoring.state_change_log import open_state_change_log

def room(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

configure_logs()
with open_state_change_log(Path(sys.argv[1]), lambda: 0) as log:
    log.write("before")
    room(10)
    for _ in range(1000):
        log.write("lost " * 100)
    room(resource.RLIM_INFINITY)
    log.write("after")
    log.write("and more")
    room(10)
    for _ in range(1000):
        log.write("lost " * 100)
"""


def test_it_is_said_once_that_it_cannot_be_written_and_once_that_it_can(tmp_path: Path) -> None:
    file = tmp_path / "state-change.log"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    lines = [line.partition("] ")[2] for line in done.stderr.splitlines()]
    fault, mended = "the state-change log cannot be written", "the state-change log is written again"
    assert done.returncode == 0
    assert len(lines) == 3, done.stderr
    assert all(line.startswith(start) for line, start in zip(lines, (fault, mended, fault), strict=True)), lines
    assert "File too large" in lines[0]
    assert str(file) in lines[0]
    written = file.read_text()
    assert written.startswith("before\n")
    assert "after\nand more\n" in written
