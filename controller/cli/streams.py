"""The standard streams of the command, and how it ends when it cannot print.

What is on stdout is what was asked for: that it cannot be written is an error in one line, and a pipe that nobody reads
any more is a quiet end with exit code 0. What is on stderr goes with it: that it cannot be written stops nothing.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

import click

from controller.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_LENIENT: Final = "backslashreplace"


class NamedFile(io.FileIO):
    """An open file that is written, whose name stands in what goes wrong with that."""

    def __init__(self, fd: int, name: str, *, closefd: bool = True) -> None:
        super().__init__(fd, "w", closefd=closefd)
        self._called = name

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some of `data`, and return how much. Raises OSError."""
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._called) from None


class _Unheard(io.FileIO):
    """A stream to which nothing has to be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some of `data`, or let go of it."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def line_of(error: OSError) -> str:
    """Return what to print of an error of the system: its text and the file, without its number."""
    if not error.strerror:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def exit_code_of(command: Callable[[], int | None]) -> str | int | None:
    """Run a command, print its error in one line if it has one, and return its exit code."""
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
    """End the command with exit code 0 when nobody reads what it prints: click would end it with 1."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(0) from None


def print_if_possible() -> None:
    """Let what is on stdout count as little as stderr: a service serves, whoever hears it."""
    if isinstance(sys.stdout.buffer, io.BufferedWriter) and isinstance(sys.stdout.buffer.raw, NamedFile):
        sys.stdout = _text(_Unheard(sys.stdout.fileno(), "w", closefd=False), sys.stdout)


def _ended(command: Callable[[], int | None]) -> str | int | None:
    try:
        return command()
    except SystemExit as end:
        return end.code


def _prepare() -> None:
    """Take the streams of the process over, unless a program or a test that calls the command has its own.

    A file descriptor that is closed is opened, but not for writing: what is opened next would be taken for it.
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
    """Return a stream of text as the one before; it writes what its encoding lacks as an escape."""
    encoding, errors = ("utf-8", _LENIENT) if before is None else (before.encoding, before.errors)
    lenient = _LENIENT if errors in {None, "strict"} else errors
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, lenient, line_buffering=raw.isatty())


def _let_go() -> None:
    """Drop what could not be written, which Python would try once more, and complain, when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
