"""A command on a terminal of its own, at which keys are pressed."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Final

from attrs import define, field

CTRL_C: Final = b"\x03"
CTRL_D: Final = b"\x04"
PATIENCE_SECONDS: Final = 60
_PART: Final = 4096


@define
class Terminal:
    """The keyboard and the screen of a process."""

    process: subprocess.Popen[bytes]
    screen: bytes = field(default=b"", init=False)
    """The output so far, echoed keys included."""

    _side: int

    def press(self, keys: bytes) -> None:
        os.write(self._side, keys)

    def read_until(self, text: bytes) -> None:
        """Read the screen until a text shows; the end of the process is a fault."""
        while text not in self.screen:
            part = self._read()
            assert part, self.screen.decode()
            self.screen += part

    def end(self) -> int:
        """Read what else is printed and return the exit code."""
        while part := self._read():
            self.screen += part
        return self.process.wait(PATIENCE_SECONDS)

    def _read(self) -> bytes:
        with suppress(OSError):  # Linux's way to say that nobody has the terminal any more
            return os.read(self._side, _PART)
        return b""


@contextmanager
def on_terminal(*arguments: str, python: Sequence[str] = (), stderr: IO[bytes] | None = None) -> Iterator[Terminal]:
    """Run the command on a new terminal; `python` is options for the interpreter, `stderr` another place for it."""
    ours, theirs = pty.openpty()
    # A session of its own on the terminal of stdin, so that Ctrl-C there is its SIGINT, also if that is ignored here.
    command = [
        "setsid",
        "--ctty",
        "env",
        "--default-signal=INT",
        sys.executable,
        *python,
        "-m",
        "klamm",
        *arguments,
    ]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=stderr or theirs)
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
