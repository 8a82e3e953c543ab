"""The standard streams of the command, and its exit when it cannot print.

stdout carries the result: if it cannot be written, the command fails with one line. If it is a pipe whose reader is
gone, the command ends quietly with exit code 0. stderr carries messages: if it cannot be written, nothing stops.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

import click

from klamm.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_LENIENT: Final = "backslashreplace"


class NamedFile(io.FileIO):
    """A file open for writing, whose name appears in the errors of writing it."""

    def __init__(self, fd: int, name: str, *, closefd: bool = True) -> None:
        super().__init__(fd, "w", closefd=closefd)
        self._called = name

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some of `data`, and return the number of bytes. Raises OSError."""
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._called) from None


class _Unheard(io.FileIO):
    """A stream whose output may be lost without an error."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some of `data`, or drop it."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def line_of(error: OSError) -> str:
    """Return the line that describes a system error: its text and the file, without its number."""
    if not error.strerror:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def exit_code_of(command: Callable[[], int | None]) -> str | int | None:
    """Run a command, print its error, if any, in one line, and return its exit code."""
    _prepare()
    try:
        code = _ended(command)
        sys.stdout.flush()
    except BrokenPipeError:
        code = 0
    except click.Abort:
        code = INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except OSError as error:
        click.ClickException(line_of(error)).show()
        code = 1
    finally:
        _let_go()
    return code


@contextmanager
def quiet_end() -> Iterator[None]:
    """End the command with exit code 0 when the reader of its output is gone; click would use 1."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(0) from None


def print_if_possible() -> None:
    """Treat stdout like stderr: a service runs even if its output cannot be written."""
    if isinstance(sys.stdout.buffer, io.BufferedWriter) and isinstance(sys.stdout.buffer.raw, NamedFile):
        sys.stdout = _text(_Unheard(sys.stdout.fileno(), "w", closefd=False), sys.stdout)


def _ended(command: Callable[[], int | None]) -> str | int | None:
    try:
        return command()
    except SystemExit as end:
        return end.code


def _prepare() -> None:
    """Take over the streams of the process, unless a program or a test that calls the command has replaced them.

    A closed file descriptor is opened, but not for writing: otherwise the next file opened would get its number.
    """
    if sys.stdin is None:
        _nowhere()
    if sys.stdout is sys.__stdout__:
        fd = _nowhere() if sys.stdout is None else sys.stdout.fileno()
        sys.stdout = _text(NamedFile(fd, "stdout", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__:
        fd = _nowhere() if sys.stderr is None else sys.stderr.fileno()
        sys.stderr = _text(_Unheard(fd, "w", closefd=False), sys.stderr)


def _nowhere() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def _text(raw: io.FileIO, before: TextIO | None) -> TextIO:
    """Return a text stream like the previous one; characters that its encoding lacks are written as escapes."""
    encoding, errors = ("utf-8", _LENIENT) if before is None else (before.encoding, before.errors)
    lenient = _LENIENT if errors in {None, "strict"} else errors
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, lenient, line_buffering=raw.isatty())


def _let_go() -> None:
    """Drop unwritten output: Python would try to write it again on exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_dumb_terminal() -> bool:
    """Return whether the terminal, if any, can only print lines: it shows colour codes as garbage."""
    return os.environ.get("TERM") in {"dumb", "unknown"}
