"""The peak memory and the processor time of a process and its descendants."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from attrs import define

_INTERVAL: Final = 0.1
_KIB: Final = 1024


@define
class Peaks:
    """Peak memory in bytes: of this process, of the JVMs below it, and of the Python processes below it together."""

    driver: int = 0
    jvm: int = 0
    workers: int = 0

    def note(self) -> None:
        """Take a sample."""
        self.driver = max(self.driver, _status(os.getpid(), "VmHWM"))
        below = descendants(os.getpid())
        java = [pid for pid in below if _name(pid) == "java"]
        self.jvm = max(self.jvm, sum(_status(pid, "VmHWM") for pid in java))
        self.workers = max(self.workers, sum(_share(pid) for pid in below if pid not in java))


@contextmanager
def watched() -> Iterator[Peaks]:
    """Take ten samples a second until the block ends."""
    peaks, over = Peaks(), threading.Event()

    def look() -> None:
        while not over.wait(_INTERVAL):
            peaks.note()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()
        peaks.note()


def processor_seconds() -> float:
    """Return the processor time of this process and its descendants, including those that have ended."""
    return sum(map(_ticks, [os.getpid(), *descendants(os.getpid())])) / os.sysconf("SC_CLK_TCK")


def processor_seconds_of(pid: int) -> float:
    """Return the processor time of a process; 0 if it is gone."""
    return _ticks(pid) / os.sysconf("SC_CLK_TCK")


def resident_bytes_of(pid: int) -> int:
    """Return the resident memory of a process; 0 if it is gone."""
    return _status(pid, "VmRSS")


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process."""
    children = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # The name, in parentheses, may contain anything; the parent is the second field after it.
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            children[int(parent)].append(int(entry.name))
    found, seen = [], [pid]
    while seen:
        below = children[seen.pop()]
        found += below
        seen += below
    return found


def _ticks(pid: int) -> int:
    """Return the ticks of a process and of the children that it waited for, in user and system mode."""
    with suppress(OSError):
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return 0


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _status(pid: int, field: str) -> int:
    """Return a number in /proc/PID/status in bytes; 0 if the process is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * _KIB
    return 0


def _share(pid: int) -> int:
    """Return the memory of a process, with a proportional part of what it shares with others, as forked workers do."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * _KIB
    return 0
