"""Lines of standard input as they arrive, from a file, a pipe, a terminal or /dev/null.

The wait for input happens in trio, and a read never blocks: a thread that is blocked in a read cannot be cancelled. It
cannot be abandoned either, because the interpreter waits for the lock of `sys.stdin` when it exits. The descriptor is
not made non-blocking, because that would affect every process that shares the terminal.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Final

import click
import trio

from transport.dynamic_configs import LARGEST_MESSAGE

STDIN: Final = 0
BATCH: Final = 100
_PART: Final = 64 * 1024


class Lines:
    """The lines of a file descriptor, in batches."""

    def __init__(self, fd: int = STDIN, *, max_line_bytes: int = LARGEST_MESSAGE) -> None:
        self._fd = fd
        self._max_line_bytes = max_line_bytes
        self._ready: deque[bytes] = deque()
        self._begun = bytearray()
        self._taken = 0
        self._is_over = False

    async def take(self) -> list[bytes]:
        """Wait for a line and return the available lines, up to a batch, without line feeds; none at the end.

        The last line does not need a line feed.

        Raises OSError, and click.ClickException if a line is too long for a record.
        """
        while not self._ready and not self._is_over:
            self._require_short()
            self._add(await self._read())
        batch = [self._ready.popleft() for _ in range(min(BATCH, len(self._ready)))]
        self._taken += len(batch)
        return batch

    def _add(self, part: bytes) -> None:
        *ended, rest = part.split(b"\n")
        self._is_over = not part
        if ended or (self._is_over and self._begun):
            self._begun += ended[0] if ended else b""
            self._require_short()
            self._ready += (bytes(self._begun), *ended[1:])
            self._begun.clear()
        self._begun += rest

    def _require_short(self) -> None:
        if len(self._begun) > self._max_line_bytes:
            number = self._taken + 1
            raise click.ClickException(
                f"line {number} has more than {self._max_line_bytes} bytes: it and later lines were not written"
            )

    async def _read(self) -> bytes:
        while True:
            try:
                await trio.lowlevel.wait_readable(self._fd)
            except PermissionError:  # a file or /dev/null is always ready, and epoll rejects it
                await trio.lowlevel.checkpoint()
            try:
                return os.read(self._fd, _PART)
            except BlockingIOError:  # another process made it non-blocking and read first
                continue
