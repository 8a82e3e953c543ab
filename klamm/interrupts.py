"""Ctrl-C at any time of the command: exit code 130, and no traceback.

While modules load, and after a command has ended, there is nothing to clean up, and Ctrl-C ends the process at once: an
exception raised inside an import may turn into another one, or vanish. In between, Ctrl-C raises KeyboardInterrupt as
usual. This module imports only `signal`, because it is loaded before everything else.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""The exit code that shells report for a process ended by SIGINT."""

_is_whole_process = False


def take_over() -> None:
    """Let Ctrl-C end the process at once; only for a process that runs nothing except the command.

    A process that was started to ignore SIGINT still ignores it, as a shell script's background jobs do.
    """
    global _is_whole_process  # noqa: PLW0603  there is one process
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _is_whole_process = True
        signal.signal(signal.SIGINT, _quit)


def begin_command() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on; without `take_over`, does nothing."""
    if _is_whole_process:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_command() -> None:
    """Let Ctrl-C end the process at once again; without `take_over`, does nothing."""
    if _is_whole_process:
        signal.signal(signal.SIGINT, _quit)


def _quit(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
