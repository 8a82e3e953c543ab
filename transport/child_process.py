"""Child processes that do not outlive their parent, even if it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

# The script replaces itself by the command, so the pid stays the same. The kernel kills the child when the *thread*
# that forked it ends, so `spawn` must not run in a worker thread. Where prctl is missing (macOS), a parent that is
# killed by SIGKILL leaves the child running.
_DIE_WITH_PARENT: Final = """\
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def spawn(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start `command`, whose first word is the path of a program, and append its output to `log`.

    The process is killed when the calling thread ends, so call this from the main thread. It has a session of its own:
    Ctrl-C reaches only the parent, which then stops its children in order.
    """
    shim = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid())]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*shim, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
