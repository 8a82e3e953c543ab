"""The two source trees of an upgrade, and how their commands are run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from attrs import frozen

ROOT: Final = Path(__file__).parents[3]
LAUNCHER: Final = Path(__file__).with_name("launcher.py")
LAST_RELEASE: Final = "dd6482268728270242cf4aa79015efbe0b07de23"
"""The revision of the last release. Set it to the new one when a release is made."""


class NoSuchTree(Exception):
    """The previous tree cannot be had."""


@frozen
class Tree:
    """A source tree. Its commands run with the packages that are installed for this one."""

    name: str
    folder: Path

    def command(self, flag: Path, *arguments: str) -> list[str]:
        """Return the command line of `klamm` of this tree; see the launcher for `flag`."""
        # -P: the directory of the launcher is not where modules are looked for first.
        return [sys.executable, "-P", str(LAUNCHER), str(self.folder), str(flag), *arguments]


def current() -> Tree:
    """Return the tree that this file belongs to."""
    return Tree("new", ROOT)


def previous(revision: str, folder: Path) -> Tree:
    """Write the files of a revision of this repository to a folder, which must not exist. Raises NoSuchTree."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        said = archive.stderr.decode(errors="replace").strip()
        raise NoSuchTree(f"revision {revision} is not in the repository of {ROOT}: name one with --base ({said})")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return Tree("old", folder)
