"""Forks that stand for services look like processes that were started here."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.shell import forks

NOWHERE = ("controller", "run", "--id", "1", "--port", "0", "--zookeeper", "127.0.0.1:1")


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_a_service_runs_until_it_is_sent_a_signal(tmp_path: Path, sent: signal.Signals) -> None:
    log = tmp_path / "log"
    service = forks().start(NOWHERE, log)
    while not log.read_text():
        with pytest.raises(subprocess.TimeoutExpired):
            service.wait(0.01)
    assert service.poll() is None
    service.send_signal(sent)
    assert service.wait(60) == service.poll() == service.returncode
    assert (service.returncode == -signal.SIGKILL) is (sent is signal.SIGKILL)
    # The number may be another process's by now.
    service.kill()


def test_a_service_that_ends_tells_why(tmp_path: Path) -> None:
    service = forks().start(("controler",), tmp_path / "log")
    assert service.wait(60) == 2
    assert "No such command 'controler'" in (tmp_path / "log").read_text()
