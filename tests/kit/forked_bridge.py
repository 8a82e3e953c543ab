"""Bridges that are forks of a process which has imported the planner: it takes most of a small plan's time."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import trio
from attrs import define, field

from controller.admin import planning
from tests.kit.fork_server import Fork, ForkServer, fork_server


@define
class ForkedProcess:
    """A fork, used as if trio had started it."""

    fork: Fork
    stdin: trio.lowlevel.FdStream
    stdout: trio.lowlevel.FdStream
    pid: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.pid = self.fork.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, once it has ended."""
        return self.fork.poll()

    def poll(self) -> int | None:
        """Return the exit code, once it has ended."""
        return self.fork.poll()

    async def wait(self) -> int:
        """Wait for its end, and return the exit code."""
        return await trio.to_thread.run_sync(self.fork.wait)


@cache
def _forks() -> ForkServer:
    """Start the server, for all tests of this process; it ends with it."""
    stack = ExitStack()
    atexit.register(stack.close)
    server = fork_server(os.environ, as_root=True, imports=("spark_bridge.planning",))
    return stack.enter_context(server)


async def _start(cls: Any) -> Any:  # noqa: ANN401 - a private class of the door
    await trio.lowlevel.checkpoint()
    scratch = Path(mkdtemp(prefix="klamm-plan-"))
    given, requests = os.pipe()
    answers, out = os.pipe()
    with (scratch / planning._LOG).open("wb") as log:  # noqa: SLF001
        environment = {**os.environ, "TMPDIR": str(scratch)}
        fork = _forks().start_module("spark_bridge", [str(scratch)], (given, out, log.fileno()), environment)
    for end in (given, out):
        os.close(end)
    return cls(ForkedProcess(fork, trio.lowlevel.FdStream(requests), trio.lowlevel.FdStream(answers)), scratch)


def plan_in_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bridges of this process start as forks."""
    monkeypatch.setattr(planning._Process, "start", classmethod(_start))  # noqa: SLF001
