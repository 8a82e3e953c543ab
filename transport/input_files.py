"""Files and pipes that are read whole, up to a limit for each kind. Each error is one line."""

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
    """The largest size of a kind of file, and advice for a larger file."""

    megabytes: int
    cure: str

    @property
    def bytes(self) -> int:
        """The limit in bytes."""
        return self.megabytes * 1024 * 1024


class UnreadableFile(Exception):
    """A file cannot be read, or is not of the expected kind; the message is one line with its path.

    Attributes:
        os_error: The operating system's error, if that is the reason.
    """

    def __init__(self, path: Path, fault: str, os_error: OSError | None = None) -> None:
        super().__init__(f"{path}: {fault}")
        self.os_error = os_error


def read_bytes(path: Path, limit: Limit) -> bytes:
    """Return the content of a file, or of a pipe or device up to its end. Raises UnreadableFile.

    Waits a limited time for a writer of a pipe that nobody has opened for writing yet.
    """
    return b"".join(read_pieces(path, limit))


def read_pieces(path: Path, limit: Limit) -> Iterator[bytes]:
    """Yield the content that `read_bytes` returns in pieces. Raises UnreadableFile."""
    try:
        # A blocking open of a pipe without a writer would hold up even Ctrl-C.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield from _pieces(path, fd, limit)
        finally:
            os.close(fd)
    except OSError as error:
        raise UnreadableFile(path, error.strerror or str(error), error) from None


def read_text(path: Path, limit: Limit) -> str:
    """Return the content of a UTF-8 file without its byte order mark. Raises UnreadableFile."""
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
            # The pipe is empty, but has a writer.
            select.select([fd], [], [])
            continue
        if piece:
            size += len(piece)
            yield piece
        # Nothing to read means the end, except for a pipe that has not had a writer yet.
        elif size or not _may_get_writer(fd):
            return
        elif looks < _LOOKS:
            looks += 1
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        else:
            raise UnreadableFile(path, "nobody writes to this pipe")
    raise UnreadableFile(path, f"larger than {limit.megabytes:,} MB: {limit.cure}")


def _may_get_writer(fd: int) -> bool:
    """Return whether this is a pipe that nobody has opened for writing yet, or one that has data by now."""
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return False
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return not any(events & select.POLLHUP and not events & select.POLLIN for _, events in poll.poll(0))
