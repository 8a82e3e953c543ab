"""The TCP connections of this machine, as its kernel lists them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_LOCAL, _REMOTE, _STATE, _INODE = 1, 2, 3, 9
"""The columns of /proc/net/tcp."""

_TIME_WAIT, _LISTENING = "06", "0A"
_OVER: Final = {_TIME_WAIT, _LISTENING}


def connections(port: int, pid: int) -> int:
    """Return the number of connections that others have with the port of a process, half-open ones included."""
    end = f":{port:04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    open_ = [row for row in rows if row[_STATE] not in _OVER]
    sockets = set(_targets(Path(f"/proc/{pid}/fd")))
    its_own = {row[_LOCAL] for row in open_ if f"socket:[{row[_INODE]}]" in sockets and row[_REMOTE].endswith(end)}
    return sum(row[_LOCAL].endswith(end) and row[_REMOTE] not in its_own for row in open_)


def _targets(directory: Path) -> Iterator[str]:
    with suppress(FileNotFoundError):  # the process has ended
        for link in directory.iterdir():
            with suppress(FileNotFoundError):  # closed since then
                yield str(link.readlink())
