"""Files that commands write: completely or not at all. Only regular files are replaced.

A regular or new file is written under a temporary name in the same folder and renamed when it is complete. Links are
followed: their target is written. Anything else (a device, a pipe, or a stream of this process such as /dev/stdout)
is opened and written to.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

import click

from klamm.cli.streams import NamedFile

_MOST_LINKS: Final = 40


def is_stream(path: Path) -> bool:
    """Return whether a path is a device, a pipe or a stream of this process, where every write takes effect at once.

    Raises:
        OSError: The path cannot be examined.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) or _is_open_file(path)


def check_file(path: Path) -> None:
    """Check that a file can be written.

    Raises:
        click.ClickException: It cannot.
        OSError: The path cannot be examined.
    """
    if path.is_dir():
        raise click.ClickException(f"{path} is a folder: name a file")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if not is_stream(path):
        # A link is followed; its target is not the path that was typed.
        check_parent(_target(path) if path.is_symlink() else path)


def check_parent(path: Path) -> None:
    """Check that files can be created in the folder of a path.

    Raises:
        click.ClickException: It cannot.
    """
    if not path.parent.is_dir():
        raise click.ClickException(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise click.ClickException(f"{path}: only the owner of {path.parent} may write to it")


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears when the block ends without error; a replaced file's owner and permissions are kept.

    Raises:
        click.ClickException: It cannot be written there.
        OSError: It cannot be written; the error names it.
    """
    check_file(path)
    if is_stream(path):
        with _named(os.open(path, os.O_WRONLY | os.O_APPEND), path) as stream:
            yield stream
        return
    target = _target(path)
    with TemporaryDirectory(prefix=".klamm-", dir=target.parent) as folder:
        part = Path(folder) / "part"
        with _named(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), path) as file:
            yield file
        if target.exists():
            _make_alike(part, target.stat())
        part.replace(target)


def write_output(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a whole file. Raises as `open_output` does."""
    with open_output(path) as file:
        file.writelines(pieces)


def _named(fd: int, path: Path) -> BufferedWriter:
    return BufferedWriter(NamedFile(fd, str(path)))


def _make_alike(part: Path, found: os.stat_result) -> None:
    # Only root can change the owner of a file; otherwise the new file belongs to the current user.
    with suppress(PermissionError):
        os.chown(part, found.st_uid, found.st_gid)
    part.chmod(stat.S_IMODE(found.st_mode))


def _target(path: Path) -> Path:
    """Return the target of links, which may not exist."""
    return Path(os.path.realpath(path))


def _is_open_file(path: Path) -> bool:
    """Return whether links lead through a file descriptor of a process: such a file is appended to, as in a shell."""
    for _ in range(_MOST_LINKS):
        if not path.is_symlink():
            break
        folder = path.parent.resolve()
        if folder.is_relative_to("/proc") and folder.name == "fd":
            return True
        path = folder / path.readlink()
    return False
