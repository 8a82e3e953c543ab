"""What went wrong, in the one line that a caller is told."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from spark_bridge.errors import PlanError

_SPARKS = ("pyspark", "py4j", "grpc")

_LACKS_A_CLASS = re.compile(r"ClassNotFoundException: Class (\S+) not found")
_REFUSED_BY_A_WORKER = re.compile(r"^[ \t]*(?:[\w.]+\.)?PlanError: (.+)$", re.MULTILINE)
_RAISED_BY_A_WORKER = re.compile(r"^[ \t]*([A-Za-z_][\w.]*(?:Error|Exception): .+)$", re.MULTILINE)


def complaint(error: BaseException, log: Path) -> str:
    """Return one line for an error; what nobody foresaw is also printed, as a traceback into the log."""
    match error:
        case PlanError() | OSError():
            return _first_line(error)
        case ModuleNotFoundError():
            extra = "plan" if error.name in ("numpy", "pyarrow") else "spark"
            return f"planning needs {error.name}: pip install 'klamm[{extra}]'"
        case MemoryError():
            return "planning ran out of memory: plan on a machine with more, or with --engine spark"
    if is_of_spark(error):
        return _of_spark(error, log)
    traceback.print_exception(error)
    return f"planning failed, please report: {type(error).__name__}: {_first_line(error)}"


def is_of_spark(error: BaseException) -> bool:
    """Return whether Spark raised it, or what this process talks to Spark with."""
    return type(error).__module__.startswith(_SPARKS)


def is_of_lost_spark(error: BaseException) -> bool:
    """Return whether it may be that a JVM does not answer: it also shows as a broken connection."""
    return isinstance(error, ConnectionError | EOFError) or type(error).__module__.startswith("py4j")


def of_java(said: str) -> str:
    """Return the first line of what Java says of a path, with the cure where it lacks the file system's code."""
    line = said.partition("\n")[0]
    if lacks := _LACKS_A_CLASS.search(line):
        return f"Spark has no class {lacks[1]}: name the package that has it, with --conf spark.jars.packages=..."
    return line


def last_line(log: Path) -> str:
    """Return the last line of a log that is not empty."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return next(filter(str.strip, reversed(lines)), "nothing")


def _of_spark(error: BaseException, log: Path) -> str:
    """Tell what a worker said, where one said something; else the first line of what Spark says."""
    if refused := _REFUSED_BY_A_WORKER.search(str(error)):
        return refused[1]
    if raised := _RAISED_BY_A_WORKER.findall(str(error)):
        return f"Spark failed: {raised[0]}"
    return f"Spark failed: {_first_line(error)} (its log ends: {last_line(log)})"


def _first_line(error: BaseException) -> str:
    return next(filter(None, str(error).splitlines()), type(error).__name__)
