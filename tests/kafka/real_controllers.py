"""Controllers of ours as processes, which govern a cluster of real brokers."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import define, field

from tests.kafka.real_brokers import kill
from transport.child_process import spawn
from transport.zookeeper_server import HOST, free_port

RUN: Final = ("klamm", "controller", "run")
"""The program that runs a controller."""

SESSION_MS: Final = 4_000
LISTENERS: Final = ("INTERNAL", "EXTERNAL")


@define(eq=False)
class RealControllers:
    """The controllers of a cluster, by id; `options` are given to each.

    If they are shown to clients, each has a listener for them as the brokers have.
    """

    zookeeper: str
    directory: Path
    session_timeout_ms: int = SESSION_MS
    options: Sequence[str] = ()
    are_shown: bool = False
    processes: dict[int, subprocess.Popen[bytes]] = field(factory=dict, init=False)

    def start(self, controller_id: int, program: Sequence[str] = RUN) -> None:
        """Start a controller, with a program of its own perhaps."""
        kafka = ("--kafka", "--inter-broker-listener-name", "INTERNAL", *self.options)
        if self.are_shown:
            kafka += ("--listeners", ",".join(f"{name}://{HOST}:{free_port()}" for name in LISTENERS))
        session = ("--zookeeper", self.zookeeper, "--session-timeout", str(self.session_timeout_ms))
        command = [sys.executable, "-m", *program, "--id", str(controller_id), *kafka, *session]
        self.processes[controller_id] = spawn(command, self.log(controller_id))

    def log(self, controller_id: int) -> Path:
        """Return the file of what a controller has logged."""
        return self.directory / f"controller-{controller_id}.log"

    def listens(self, controller_id: int) -> bool:
        """Return whether a controller has begun to listen."""
        return "listens on" in self.log(controller_id).read_text()

    def kill(self, controller_id: int) -> None:
        """Kill a controller with SIGKILL."""
        kill(self.processes[controller_id])

    @contextmanager
    def paused(self, controller_id: int) -> Iterator[None]:
        """Stop a controller within the block, which has to be shorter than its session."""
        process = self.processes[controller_id]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)
