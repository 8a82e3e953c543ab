"""Devices and pipes for tests, which a command run by root may damage without harm."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_MINORS = {"null": 3, "zero": 5, "full": 7}


def device(folder: Path, name: str) -> Path:
    """Make a device like /dev/full; a user who is not root, and can neither make nor replace one, gets the system's."""
    if os.geteuid() != 0:
        return Path("/dev") / name
    path = folder / name
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, _MINORS[name]))
    return path


def is_device(path: Path) -> bool:
    return stat.S_ISCHR(path.lstat().st_mode)
