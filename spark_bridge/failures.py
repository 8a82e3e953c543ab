"""Errors as the one line that a caller gets."""

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
    """Return one line for an error; the traceback of an unexpected one is also printed into the log."""
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
    """Return whether an error was raised by Spark, or by the library that connects this process to it."""
    return type(error).__module__.startswith(_SPARKS)


def is_of_lost_spark(error: BaseException) -> bool:
    """Return whether an error may mean that a JVM does not answer, which also shows as a broken connection."""
    return isinstance(error, ConnectionError | EOFError) or type(error).__module__.startswith("py4j")


def of_java(said: str) -> str:
    """Return the first line of Java's error about a path, with a remedy if the file system's code is missing."""
    line = said.partition("\n")[0]
    if lacks := _LACKS_A_CLASS.search(line):
        return f"Spark has no class {lacks[1]}: name the package that has it, with --conf spark.jars.packages=..."
    return line


def last_line(log: Path) -> str:
    """Return the last non-empty line of a log."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return next(filter(str.strip, reversed(lines)), "nothing")


def _of_spark(error: BaseException, log: Path) -> str:
    """Return what a worker reported, if anything; else the first line of Spark's error."""
    if refused := _REFUSED_BY_A_WORKER.search(str(error)):
        return refused[1]
    if raised := _RAISED_BY_A_WORKER.findall(str(error)):
        return f"Spark failed: {raised[0]}"
    return f"Spark failed: {_first_line(error)} (its log ends: {last_line(log)})"


def _first_line(error: BaseException) -> str:
    return next(filter(None, str(error).splitlines()), type(error).__name__)
