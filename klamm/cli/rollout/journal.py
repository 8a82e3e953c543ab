"""The journal of a rollout: one line of JSON for each thing that happened, on the disk before anything follows from it.

Operators' commands add to it as well: that is how they reach a rollout that runs, and one that does not.
A line that a dying process has left unfinished is no line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from attrs import define, field

from controller.rollout.states import MoveState
from klamm.cli.streams import line_of
from transport.host import Host
from transport.metadata import TopicPartition

_PIECE: Final = 1 << 20

Entry = Mapping[str, Any]


@define
class Journal:
    """The journal at a path; `read` returns what is new."""

    path: Path
    _host: Host = field(factory=Host)
    _offset: int = 0

    def read(self) -> list[Entry]:
        """Return the entries since the last call, by whomever they are. Raises click.ClickException."""
        try:
            found = list(self._entries())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise click.ClickException(line_of(error)) from None
        return found

    def add(self, kind: str, **more: object) -> None:
        """Add an entry, and return when it is on the disk. Raises click.ClickException."""
        self._add(kind, more, is_safe=True)

    def add_end(self, state: MoveState, moves: Sequence[TopicPartition], why: str) -> None:
        """Add the end of moves. Earlier releases do not know DELETED: they take such a move for a failed one."""
        if state is MoveState.DELETED:
            self.add("ended", state=MoveState.FAILED.value, moves=moves, why=why, deleted=True)
        else:
            self.add("ended", state=state.value, moves=moves, why=why)

    def note(self, kind: str, **more: object) -> None:
        """Add an entry from which nothing follows: it may be lost."""
        self._add(kind, more, is_safe=False)

    def _add(self, kind: str, more: Entry, *, is_safe: bool) -> None:
        line = json.dumps({"at": self._host.now_ms(), "is": kind, **more}, separators=(",", ":")) + "\n"
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                size = os.fstat(fd).st_size
                torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                # One write is one piece of the file, whoever else adds to it.
                os.write(fd, (b"\n" if torn else b"") + line.encode())
                if is_safe:
                    os.fsync(fd)
            finally:
                os.close(fd)
            if is_safe and size == 0:
                self._sync_folder()
        except OSError as error:
            raise click.ClickException(f"what happens cannot be recorded: {line_of(error)}") from None

    def _entries(self) -> Iterator[Entry]:
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                entry = _decoded(line)
                if entry is not None:
                    yield entry

    def _sync_folder(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _decoded(line: bytes) -> Entry | None:
    """Return an entry, None for a line that was left unfinished."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("is"), str) else None


def read_all(path: Path) -> Iterable[Entry]:
    """Return all entries of a journal."""
    return Journal(path).read()
