"""Ctrl-C at any moment of any command: exit code 130, and no unwanted output."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.interrupts import INTERRUPTED
from tests.cli.terminal import CTRL_C, on_terminal


@pytest.fixture
def silent() -> Iterator[str]:
    """Give the address of a listener that accepts connections and never answers, so that clients wait."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


EARLY_AND_LATE = ("click", "trio._core", "controller.node.service", "klamm.cli.settings")
OTHERS = ("click.types", "klamm.cli", "attr", "structlog", "trio", "kazoo.client", "klamm.cli.running")


@pytest.mark.parametrize("loaded", [*EARLY_AND_LATE, *(pytest.param(name, marks=pytest.mark.soak) for name in OTHERS)])
def test_while_a_service_is_loaded(loaded: str, silent: str) -> None:
    # The interpreter reports a module after loading it; a module that is still being loaded appears later.
    with on_terminal("controller", "run", "--id", "1001", "--zookeeper", silent, python=["-X", "importtime"]) as screen:
        screen.read_until(f" {loaded}\r\n".encode())
        screen.press(CTRL_C)
        code = screen.end()
    said = _but_imports(screen.screen)
    assert code == INTERRUPTED, said
    assert _but_logs(said) in ([], ["^C"]), said


@pytest.mark.parametrize("command", ["topic list --zookeeper", "cluster describe --bootstrap-server"])
def test_while_a_command_waits(command: str, silent: str) -> None:
    with on_terminal(*command.split(), silent, python=["-X", "importtime"]) as screen:
        screen.read_until(b" klamm.cli.connect\r\n")
        screen.press(CTRL_C)
        code = screen.end()
    said = _but_imports(screen.screen)
    assert (code, said in ([], ["^C"])) == (INTERRUPTED, True), said


def _but_imports(screen: bytes) -> list[str]:
    """Leave out what the interpreter says of imports, to which the terminal may put the echo of the keys."""
    return [line for line in screen.decode().splitlines() if not re.match(r"(\^C)?import time:", line)]


def _but_logs(lines: list[str]) -> list[str]:
    """Leave out what a service logged."""
    return [line for line in lines if not re.match(r"(\^C)?\d\d:\d\d:\d\d", line)]


def test_while_it_watches_a_rollout(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}')
    begun = {"at": 0, "is": "started", "plan": "0", "cluster_id": None, "topics": {}, "brokers": []}
    (tmp_path / "plan.json.rollout.jsonl").write_text(json.dumps({**begun, "before": [], "skipped": []}) + "\n")
    with on_terminal("rollout", "status", str(plan), "--watch") as screen:
        screen.read_until(b"1 pending")
        screen.press(CTRL_C)
        code = screen.end()
    assert code == INTERRUPTED
    assert b"Traceback" not in screen.screen
    assert screen.screen.endswith(b"\x1b[?25h"), screen.screen  # the cursor is back
