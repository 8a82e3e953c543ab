"""The bridge: a process that plans, one request after another, and keeps its Spark session warm in between.

It exchanges JSON lines on stdin and stdout: a channel that belongs to one caller, needs no port and no permissions, and
closes when the caller ends, however that happens. When it ends, the bridge stops what is running, including the JVM,
and removes its files.

To it: `{"plan": REQUEST}`, then perhaps `{"cancel": null}`. From it: any number of `{"progress": ...}`, and for each
plan one answer with "summary", "error" (a line) or "cancelled", and "last": whether its Spark is gone, so that the
next plan needs a new bridge.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, TypeAlias

import orjson
from attrs import Factory, asdict, frozen

from spark_bridge.failures import complaint, is_of_spark, last_line
from spark_bridge.model.summary import Summary
from spark_bridge.process.document import from_document
from spark_bridge.process.opener import Opener, SparkOpener
from spark_bridge.process.request import PlanRequest
from spark_bridge.progress import OnProgress, Progress

RunPlan: TypeAlias = Callable[[PlanRequest, OnProgress, SparkOpener], Summary]
"""A callable that carries out a request; it opens a session only if it needs one."""

_GRACE: Final = 5.0
"""The number of seconds that Spark has to stop before it is killed."""

_AGAIN: Final = 0.2
"""The number of seconds between repeated interrupts of a plan."""

LOG: Final = "bridge.log"
"""The file in the scratch folder into which the bridge and its JVM print."""


class _Cancelled(BaseException):
    """Ends a plan from inside; not caught by `except Exception`."""


@frozen
class _Plan:
    """A plan in progress, in a separate thread."""

    cancelled: threading.Event = Factory(threading.Event)
    ended: threading.Event = Factory(threading.Event)


class BridgeProcess:
    """The bridge process: its session, and the plan in progress.

    Args:
        run_plan: Carries out a request.
        scratch: A folder of its own, which is removed when it ends.
        answers: The stream for its messages.
    """

    def __init__(self, run_plan: RunPlan, scratch: Path, answers: BinaryIO) -> None:
        self._run_plan = run_plan
        self._scratch = scratch
        self._answers = answers
        self._opener = Opener(scratch, self._spark_is_gone)
        self._plan: _Plan | None = None
        self._ending = threading.Lock()

    def serve(self, requests: BinaryIO) -> NoReturn:
        """Take messages until they end."""
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        for line in requests:
            match orjson.loads(line):
                case {"plan": document}:
                    self._plan = _Plan()
                    threading.Thread(target=self._answer, args=(self._plan, document), daemon=True).start()
                case {"cancel": _}:
                    self._cancel()
        self._end()

    def _answer(self, plan: _Plan, document: object) -> None:
        try:
            answer = self._run(plan, document)
        except _Cancelled:
            answer = orjson.dumps({"cancelled": None, "last": False})
        except BaseException as error:  # noqa: BLE001 (whatever it is, the caller hears of it)
            answer = orjson.dumps(self._failure(plan, error))
        with self._ending:
            plan.ended.set()
            self._say(answer)

    def _run(self, plan: _Plan, document: object) -> bytes:
        def progress(made: Progress) -> None:
            if plan.cancelled.is_set():
                raise _Cancelled
            self._say(orjson.dumps({"progress": asdict(made)}))

        request = from_document(PlanRequest, document, "request")
        summary = self._run_plan(request, progress, lambda: self._opener.open(request))
        return orjson.dumps({"summary": summary.to_document(), "last": False})

    def _failure(self, plan: _Plan, error: BaseException) -> Mapping[str, Any]:
        if self._opener.is_lost(error):
            line = f"Spark ended in the middle of the plan (its log ends: {last_line(self._scratch / LOG)})"
            return {"error": line, "last": True}
        if plan.cancelled.is_set():
            return {"cancelled": None, "last": False}
        last = is_of_spark(error) and self._opener.is_doubtful
        return {"error": complaint(error, self._scratch / LOG), "last": last}

    def _say(self, message: bytes) -> None:
        self._answers.write(message + b"\n")
        self._answers.flush()

    def _cancel(self) -> None:
        plan = self._plan
        if plan is None or plan.ended.is_set():
            return
        plan.cancelled.set()
        if not self._opener.is_open:
            # There is no session worth keeping, and a kernel in the middle of a round cannot be interrupted.
            self._end()
        threading.Thread(target=self._interrupt, args=(plan,), daemon=True).start()

    def _interrupt(self, plan: _Plan) -> None:
        """Interrupt repeatedly until the plan ends, because it may be between two jobs and start the next one."""
        while not plan.ended.wait(_AGAIN):
            with suppress(Exception):
                self._opener.interrupt()

    def _spark_is_gone(self) -> None:
        """End a bridge that has no session to keep; a plan in progress reports this itself, and is the last."""
        with self._ending:
            idle = self._plan is None or self._plan.ended.is_set()
        if idle:
            os.kill(os.getpid(), signal.SIGTERM)

    def _end(self) -> NoReturn:
        """Stop what is running, remove the files, and end with all processes of this group."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _within_grace(self._opener.leave)
        os.killpg(0, signal.SIGTERM)
        _within_grace(_wait_for_children)
        shutil.rmtree(self._scratch, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)
        raise AssertionError  # not reached


def serve(run_plan: RunPlan, scratch: Path) -> NoReturn:
    """Serve as the bridge of the process at the other ends of stdin and stdout."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # at its end it kills its group, which must not be the caller's
    answers = os.fdopen(os.dup(1), "wb")
    # Spark and its JVM may print anything, so stdout is redirected to stderr.
    os.dup2(2, 1)
    BridgeProcess(run_plan, scratch, answers).serve(sys.stdin.buffer)


def _within_grace(action: Callable[[], object]) -> None:
    def quietly() -> None:
        with suppress(Exception):
            action()

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    thread.join(_GRACE)


def _wait_for_children() -> None:
    with suppress(ChildProcessError):
        while True:
            os.wait()
