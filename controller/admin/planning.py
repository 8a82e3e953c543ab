"""The interface to planning: a bridge, a process of its own, computes plans for this one and keeps Spark warm.

Spark's JVM and the memory of planning stay out of this process. A plan that nobody waits for any more is stopped. A
bridge whose Spark died is replaced for the next plan, and if this process dies, its bridge terminates itself.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import orjson
import trio

import spark_bridge
from spark_bridge.errors import PlanError
from spark_bridge.failures import last_line
from spark_bridge.model.summary import Summary
from spark_bridge.process.document import from_document
from spark_bridge.process.request import EngineName, PlanRequest
from spark_bridge.progress import OnProgress, Progress

__all__ = ["Bridge", "PlanError", "PlanRequest", "Progress", "Summary", "compute_plan", "open_bridge"]

_PACKAGES: Final = str(Path(spark_bridge.__file__).parent.parent)
_COMMAND: Final = ("-m", "spark_bridge")
_LOG: Final = "bridge.log"

_GRACE: Final = 5.0
"""The seconds that a plan has to stop, or a bridge to end, before it is killed. If the plan stops, Spark stays warm."""


@asynccontextmanager
async def open_bridge() -> AsyncIterator[Bridge]:
    """Open a bridge that computes plans, one after another, and ends with the block."""
    bridge = Bridge()
    try:
        yield bridge
    finally:
        await bridge.aclose()


async def compute_plan(request: PlanRequest, progress: OnProgress | None = None) -> Summary:
    """Compute one plan; if cancelled, stop all work on it.

    Raises:
        PlanError: There is no plan; its text is one line with the remedy.
    """
    async with open_bridge() as bridge:
        return await bridge.plan(request, progress)


class Bridge:
    """Computes plans, one at a time. Open one with `open_bridge`."""

    def __init__(self) -> None:
        self._turn = trio.Lock()
        self._process: _Process | None = None
        self._place: object = None

    async def plan(self, request: PlanRequest, progress: OnProgress | None = None) -> Summary:
        """Compute a plan, after those requested earlier.

        Args:
            request: The plan to compute.
            progress: Called with the progress. An exception that it raises ends the plan.

        Raises:
            PlanError: There is no plan, or not within its timeout; its text is one line with the remedy.
        """
        async with self._turn:
            with trio.move_on_after(math.inf if request.timeout is None else request.timeout):
                return await self._plan(request, progress or _tell_nobody)
        raise PlanError(f"there was no plan within {request.timeout:g} s: allow more time, or move fewer replicas")

    async def aclose(self) -> None:
        """Stop the process and all processes that it started."""
        if self._process is not None:
            await self._process.aclose()
            self._process = None

    async def _plan(self, request: PlanRequest, progress: OnProgress) -> Summary:
        try:
            answer = await self._ask(request, progress)
        except _EndedWhileIdle:
            answer = await self._ask(request, progress)
        if answer.get("last"):
            await self.aclose()
        if "error" in answer:
            raise PlanError(answer["error"])
        return from_document(Summary, answer["summary"], "summary")

    async def _ask(self, request: PlanRequest, progress: OnProgress) -> dict[str, Any]:
        process = await self._process_for(request)
        try:
            await process.send({"plan": orjson.Fragment(request.to_json())})
            return await process.answer(progress)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._cancel(process)
            raise

    async def _process_for(self, request: PlanRequest) -> _Process:
        """Return a running bridge whose Spark session, if it has one, is in the requested place."""
        moves = request.engine is not EngineName.KERNEL and self._place not in (None, request.place)
        if self._process is not None and (moves or self._process.has_ended):
            await self.aclose()
        if self._process is None:
            self._process, self._place = await _Process.start(), None
        if request.engine is not EngineName.KERNEL:
            self._place = request.place
        return self._process

    async def _cancel(self, process: _Process) -> None:
        """Stop the plan and keep Spark, or stop both if the plan does not stop in time."""
        with trio.move_on_after(_GRACE), suppress(PlanError):
            await process.send({"cancel": None})
            if not (await process.answer(_tell_nobody)).get("last"):
                return
        await process.aclose(0)
        self._process = None


class _EndedWhileIdle(PlanError):
    """A bridge that had computed plans ended before it took the next one, which can be sent to a new bridge."""


class _Process:
    """A bridge process, and the directory that it and its JVM may write to."""

    def __init__(self, process: trio.Process, scratch: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = process.stdout
        self._scratch = scratch
        self._read = bytearray()
        self._answered = 0

    @classmethod
    async def start(cls) -> _Process:
        """Start Python in a session of its own, so that it can be killed together with all that it started.

        It imports the same packages as this process (-P: nothing from the working directory).
        """
        path = os.pathsep.join(filter(None, [_PACKAGES, os.environ.get("PYTHONPATH")]))
        scratch = Path(mkdtemp(prefix="klamm-plan-"))
        with trio.CancelScope(shield=True), (scratch / _LOG).open("wb") as log:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-P", *_COMMAND, str(scratch)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log.fileno(),
                env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch)},
                start_new_session=True,
            )
        return cls(process, scratch)

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended by itself."""
        return self._process.poll() is not None

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message. If the process has ended, only `answer` reports it."""
        with suppress(trio.BrokenResourceError):
            await self._requests.send_all(orjson.dumps(message) + b"\n")

    async def answer(self, progress: OnProgress) -> dict[str, Any]:
        """Return the answer to a plan, reporting its progress until then.

        Raises:
            PlanError: The process ended without an answer.
        """
        heard = 0
        while (line := await self._line()) is not None:
            heard += 1
            message: dict[str, Any] = orjson.loads(line)
            if "progress" not in message:
                self._answered += 1
                return message
            progress(Progress(**message["progress"]))
        obituary = await self._obituary()
        raise _EndedWhileIdle(obituary) if self._answered and not heard else PlanError(obituary)

    async def _line(self) -> bytes | None:
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            received = await self._answers.receive_some()
            if not received:
                return None
            self._read += received
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line

    async def _obituary(self) -> str:
        self._kill()
        code = await self._process.wait()
        return f"planning ended with code {code}; its last words: {last_line(self._scratch / _LOG)}"

    async def aclose(self, grace: float = _GRACE) -> None:
        """Let the process end by itself within `grace` seconds, then kill what remains, and remove its directory."""
        with trio.CancelScope(shield=True):
            await self._requests.aclose()
            with trio.move_on_after(grace):
                # The pipe closes when the process ends. Its id is not reused before `wait`, so killing it is safe.
                while await self._answers.receive_some():
                    pass
            self._kill()
            await self._process.wait()
            await self._answers.aclose()
            await trio.to_thread.run_sync(lambda: shutil.rmtree(self._scratch, ignore_errors=True))

    def _kill(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _tell_nobody(_: Progress) -> None:
    pass
