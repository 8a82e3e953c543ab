"""Brokers and controllers of a cluster are forks of a process that has imported all of `klamm`."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from tests.cli.shell import forks
from transport.child_process import spawn

KLAMM: Final = [sys.executable, "-m", "klamm"]


def start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command as `spawn` does; `klamm` in a fork, which saves the second that its imports take."""
    return forks().start(command[len(KLAMM) :], log) if command[: len(KLAMM)] == KLAMM else spawn(command, log)


@pytest.fixture(autouse=True)
def forked_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clusters start in a tenth of the time. The demos start their processes themselves, as users do."""
    # The package has a function of that name.
    monkeypatch.setattr(import_module("klamm.cli.demo.process_cluster"), "spawn", start)
