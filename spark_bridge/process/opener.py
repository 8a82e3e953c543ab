"""The Spark session of a bridge: opened when a plan first needs it, then kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from spark_bridge.errors import PlanError
from spark_bridge.failures import is_of_lost_spark
from spark_bridge.process.request import PlanRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SparkOpener: TypeAlias = "Callable[[], SparkSession]"
"""A callable that returns the Spark session; a plan that never calls it starts no JVM."""

OLDEST_JAVA: Final = 17
"""The oldest Java that Spark 4 runs on."""

_CURE = f"install Java {OLDEST_JAVA} or later (Debian: openjdk-17-jre-headless) and have it in PATH or JAVA_HOME"

_DYING: Final = 1.0
"""The number of seconds after which a JVM that does not answer is considered to have ended."""


class Opener:
    """Opens a session that uses a folder, and checks whether it still works.

    Args:
        scratch: The folder for everything that the session writes on this machine.
        gone: Called from a separate thread when a JVM that the session started has ended.
    """

    def __init__(self, scratch: Path, gone: Callable[[], None]) -> None:
        self._scratch = scratch
        self._gone = gone
        self._stack = ExitStack()
        self._session: SparkSession | None = None
        self._jvm: subprocess.Popen[bytes] | None = None

    @property
    def is_open(self) -> bool:
        """Return whether there is a session."""
        return self._session is not None

    def is_lost(self, error: BaseException) -> bool:
        """Return whether an error means that the JVM started by the session has ended."""
        if self._jvm is None or not is_of_lost_spark(error):
            return False
        with suppress(subprocess.TimeoutExpired):
            self._jvm.wait(_DYING)
        return self._jvm.poll() is not None

    @property
    def is_doubtful(self) -> bool:
        """Return whether Spark may be unusable after a failure: it never started, or cannot be observed."""
        return self._session is None or self._jvm is None

    def open(self, request: PlanRequest) -> SparkSession:
        """Return the session, which runs where the first request asked for.

        Raises:
            PlanError: PySpark or Java is missing.
        """
        if self._session is None:
            _refuse_without_spark(request)
            from spark_bridge.process.session import jvm_of, spark_session  # noqa: PLC0415 (imports PySpark)

            place = spark_session(self._scratch, request.master, request.remote, request.conf)
            self._session = self._stack.enter_context(place)
            self._jvm = jvm_of(self._session)
            if self._jvm is not None:
                threading.Thread(target=self._watch, args=(self._jvm,), daemon=True).start()
        return self._session

    def interrupt(self) -> None:
        """Interrupt the jobs of the session."""
        if self._session is not None:
            # All jobs belong to this bridge's only plan. PySpark interrupts a tag only for the thread that set it.
            self._session.interruptAll()

    def leave(self) -> None:
        """Interrupt jobs on a Spark Connect server, which would continue; a JVM of our own ends with this process."""
        if self._session is not None and self._jvm is None:
            self.interrupt()
            self._stack.close()

    def _watch(self, jvm: subprocess.Popen[bytes]) -> None:
        jvm.wait()
        self._gone()


def _refuse_without_spark(request: PlanRequest) -> None:
    if not find_spec("pyspark"):
        raise PlanError("planning needs Spark: pip install 'klamm[spark]'")
    if request.remote is None and (problem := java_problem()):
        raise PlanError(problem)


def java_problem() -> str | None:
    """Return one line that says what is wrong with this machine's Java and what to do; None if nothing is wrong."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")  # noqa: PTH118 (which() takes text)
    if java is None:
        place = f"JAVA_HOME={home}" if home else "PATH"
        return f"planning needs Java, and there is none in {place}: {_CURE}"
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if version is None:
        return f"planning needs Java, and {java} does not run: {_CURE}"
    if int(version[1]) < OLDEST_JAVA:
        return f"planning needs Java {OLDEST_JAVA} or later, and {java} is {version[1]}: {_CURE}"
    return None
