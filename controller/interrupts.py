"""Ctrl-C at any time of the command: exit code 130, and no traceback.

While modules are loaded, and once a command is over, nothing is there to be cleaned up and the process ends at once: an
exception out of the middle of an import may come out as another one, or not at all. In between Ctrl-C raises
KeyboardInterrupt, as ever. Loads nothing but `signal`, because it stands before everything else.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""The exit code, as shells have it of a process that SIGINT ended."""

_is_whole_process = False


def take_over() -> None:
    """Let Ctrl-C end the process at once; only for a process that runs the command and nothing else.

    One that was started to ignore it, as shells start what a script puts into the background, still does.
    """
    global _is_whole_process  # noqa: PLW0603  there is one process
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _is_whole_process = True
        signal.signal(signal.SIGINT, _quit)


def begin_command() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from here on; does nothing in other processes than those of `take_over`."""
    if _is_whole_process:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_command() -> None:
    """Let Ctrl-C end the process at once again; does nothing in other processes than those of `take_over`."""
    if _is_whole_process:
        signal.signal(signal.SIGINT, _quit)


def _quit(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
