"""A controller inside another program logs nothing unless the program configures structlog."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("configures", [False, True])
def test_it_logs_once_structlog_is_configured(*, configures: bool) -> None:
    setup = "import structlog; structlog.configure(); " if configures else ""
    program = f"{setup}import runpy; runpy.run_module('examples.count', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ("[info" in done.stdout, done.stderr) == (configures, "")
    assert "10 hits counted" in done.stdout


def test_a_command_that_logs_nothing_does_not_import_structlog() -> None:
    program = "import sys, klamm.cli.topics; sys.exit('structlog' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
