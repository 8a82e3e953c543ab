"""Other processes: waiting for them, and for their end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import trio

PATIENCE = 60
"""After how many seconds a test gives up: a JVM takes its time on a machine that is busy."""


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is true that nobody tells us of: another process makes it so."""
    with trio.fail_after(PATIENCE):
        while not condition():
            await trio.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Return whether a process has ended; nobody may have asked for its exit code yet."""
    try:
        # The name, in brackets, may hold anything; the state follows it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def files_in(folder: Path) -> list[Path]:
    """Return what a folder holds, in order."""
    return sorted(folder.iterdir())
