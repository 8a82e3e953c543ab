"""Files that are read whole, pipes as well: up to a limit for each kind, and each fault is one line."""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

_PIECE: Final = 1 << 20
_LOOKS: Final = 200
_SECONDS_BETWEEN_LOOKS: Final = 0.05


@frozen
class Limit:
    """The largest size of a kind of file, and the advice for a larger one."""

    megabytes: int
    cure: str

    @property
    def bytes(self) -> int:
        """The limit in bytes."""
        return self.megabytes * 1024 * 1024


class UnreadableFile(Exception):
    """A file cannot be read, or is not of the expected kind; the message is one line with its path.

    Attributes:
        os_error: The error of the system, if that is the reason.
    """

    def __init__(self, path: Path, fault: str, os_error: OSError | None = None) -> None:
        super().__init__(f"{path}: {fault}")
        self.os_error = os_error


def read_bytes(path: Path, limit: Limit) -> bytes:
    """Return what a file holds, or what comes out of a pipe or device until its end. Raises UnreadableFile.

    It waits for a pipe that nobody has opened for writing yet, but not for ever.
    """
    return b"".join(read_pieces(path, limit))


def read_pieces(path: Path, limit: Limit) -> Iterator[bytes]:
    """Yield what `read_bytes` returns, a piece at a time. Raises UnreadableFile."""
    try:
        # A blocking open of a pipe without a writer would delay even Ctrl-C.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield from _pieces(path, fd, limit)
        finally:
            os.close(fd)
    except OSError as error:
        raise UnreadableFile(path, error.strerror or str(error), error) from None


def read_text(path: Path, limit: Limit) -> str:
    """Return the text that a file holds in UTF-8, without a byte order mark. Raises UnreadableFile."""
    data = read_bytes(path, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(path, f"not UTF-8: byte {error.start}") from None


def _pieces(path: Path, fd: int, limit: Limit) -> Iterator[bytes]:
    size = looks = 0
    while size <= limit.bytes:
        try:
            piece = os.read(fd, min(_PIECE, limit.bytes + 1 - size))
        except BlockingIOError:
            select.select([fd], [], [])
            continue
        if piece:
            size += len(piece)
            yield piece
        elif size or not _may_get_writer(fd):
            return
        elif looks < _LOOKS:
            looks += 1
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        else:
            raise UnreadableFile(path, "nobody writes to this pipe")
    raise UnreadableFile(path, f"larger than {limit.megabytes:,} MB: {limit.cure}")


def _may_get_writer(fd: int) -> bool:
    """Return whether this is a pipe that nobody has opened for writing yet, or one with data to read by now."""
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return False
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return not any(events & select.POLLHUP and not events & select.POLLIN for _, events in poll.poll(0))
