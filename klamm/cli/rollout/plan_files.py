"""The plan of a rollout on the disk, and beside it the rollout's own files: its journal, its lock and its record."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import click
from attrs import field, frozen

from controller.admin.log_mover import Replica
from controller.admin.plan_ids import PlanIds
from controller.rollout.moves import Replicas
from klamm.cli.planning.made_from import emptied_by
from klamm.cli.reassignment.files import MoveFile, Targets, read_document
from klamm.cli.streams import line_of
from transport.metadata import TopicPartition

JOURNAL: Final = "rollout.jsonl"
_LOCK: Final = "rollout.lock"
_PLAN: Final = re.compile(r"plan(-\d+)*\.json")
_ROLLBACK: Final = re.compile(r"rollback(-\d+)*\.json")
"""The names that `klamm plan` gives; the records of `klamm reassignment execute` are beside these files."""

_LONGEST_HOLDER: Final = 200
_LOOKS: Final = 4
_SECONDS_BETWEEN_LOOKS: Final = 0.05

plan_argument = click.argument("plan", type=click.Path(exists=True, path_type=Path))


class Taken(Exception):
    """Another process carries out the plan; the message says which."""


@frozen
class PlanFiles:
    """A plan: the folder that `klamm plan` writes, or one file of Kafka's JSON."""

    path: Path

    @property
    def journal(self) -> Path:
        """The history of the rollout."""
        return self._beside(JOURNAL)

    @property
    def recorded(self) -> Path:
        """The file beside which is recorded what to restore after moves, for `klamm reassignment execute` as well."""
        return self.path / "rollout" if self.path.is_dir() else self.path

    def _beside(self, name: str) -> Path:
        return self.path / name if self.path.is_dir() else self.path.with_name(f"{self.path.name}.{name}")

    def read(self) -> Plan:
        """Return the plan. Raises click.ClickException."""
        files = _files_in(self.path) if self.path.is_dir() else [self.path]
        targets: dict[TopicPartition, Replicas] = {}
        starts: dict[TopicPartition, Replicas] = {}
        log_dirs: dict[Replica, str] = {}
        ids = PlanIds()
        for file in files:
            part = read_document(file, may_be_empty=True)
            twice = next((tp for tp in part.targets if tp in targets), None)
            if twice is not None:
                raise click.ClickException(f"{file}: {twice} is in another file of the plan, too")
            targets.update(part.targets)
            starts.update(part.starts)
            log_dirs.update(part.log_dirs)
            try:
                ids = ids.together(part.ids)
            except ValueError as fault:
                raise click.ClickException(f"{file}: {fault}") from None
        whole = MoveFile(_ordered(targets, starts, emptied_by(self.path)), starts, log_dirs, ids)
        return Plan(whole, _digest(whole))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only process that carries out the plan. Raises Taken; click.ClickException without a place.

        The death of a process lets its lock go, whatever it leaves.
        """
        path = self._beside(_LOCK)
        try:
            fd = _lock(path)
        except OSError as error:
            raise click.ClickException(f"a rollout keeps its state beside the plan: {line_of(error)}") from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(fd)

    @property
    def holder(self) -> str | None:
        """The process that carries the plan out now, None if there is none."""
        try:
            fd = os.open(self._beside(_LOCK), os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _named_in(fd)
        finally:
            os.close(fd)
        return None


def _files_in(folder: Path) -> list[Path]:
    names = sorted(path.name for path in folder.iterdir())
    # `klamm plan` writes each file of a plan together with its rollback.
    planned = {name.replace("rollback", "plan", 1) for name in names if _ROLLBACK.fullmatch(name)}
    missing = sorted(planned.difference(names))
    if missing:
        raise click.ClickException(f"{folder}: {', '.join(missing)} of the plan is missing: copy the whole folder")
    files = [folder / name for name in names if _PLAN.fullmatch(name)]
    if not files:
        raise click.ClickException(f"{folder}: there is no plan.json in this folder: name one that `klamm plan` wrote")
    return files


def _lock(path: Path) -> int:
    """Open and lock a file. Raises Taken, OSError."""
    looks = _LOOKS
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _named_in(fd)
            os.close(fd)
            looks -= 1
            if not looks:
                raise Taken(holder) from None
            # It may be one that only looks who has the lock.
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            continue
        # Who had it before may have removed it between the two calls.
        if path.exists() and path.stat().st_ino == os.fstat(fd).st_ino:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return fd
        os.close(fd)


def _named_in(fd: int) -> str:
    return os.pread(fd, _LONGEST_HOLDER, 0).decode(errors="replace").strip() or "another process"


@frozen
class Plan:
    """The content of a plan, and what tells it from others."""

    file: MoveFile = field(repr=False)
    digest: str


def _ordered(targets: Targets, starts: Targets, emptied: frozenset[int]) -> Targets:
    """Return moves in the order in which they are carried out: those first that take replicas from emptied brokers."""
    if not emptied:
        return targets

    def is_other(tp: TopicPartition) -> bool:
        return emptied.isdisjoint({*starts.get(tp, ())} - {*targets[tp]})

    return {tp: targets[tp] for tp in sorted(targets, key=is_other)}


def _digest(file: MoveFile) -> str:
    """Return a digest of the moves, however they are spread over files."""
    found = sha256()
    for tp, target in sorted(file.targets.items()):
        found.update(f"{tp.topic} {tp.partition} {target} {file.starts.get(tp)}\n".encode())
    return found.hexdigest()[:16]
