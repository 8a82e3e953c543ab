"""The commands of docs/deployment.md, and their typing in a shell of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio

ROOT: Final = Path(__file__).parents[2]
PACKAGING: Final = ROOT / "packaging"
PAGE: Final = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
KLAMM: Final = f'klamm() {{ "{sys.executable}" -m klamm "$@"; }}; sudo() {{ "$@"; }}; chown() {{ :; }}; set -eu; '
"""Stand-ins for the commands that only root, or only an installed Klamm, has."""

TYPED_SECONDS: Final = 120


def commands(section: str) -> list[str]:
    """Return the commands of a section in their order."""
    [text] = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(r"^ *\$ (.*)$", text, re.MULTILINE)


def replaced(command: str, places: Mapping[str, str]) -> str:
    """Return a command with the places of this machine instead of those of the page."""
    for name, place in places.items():
        command = command.replace(name, place)
    return command


async def typed(command: str, places: Mapping[str, str], folder: Path) -> str:
    """Type a command in a folder and return what it prints; fail if it does."""
    line = KLAMM + replaced(command, places)
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"PYTHONPATH": str(ROOT)}
    with trio.fail_after(TYPED_SECONDS):
        done = await trio.run_process(
            ["bash", "-c", line],
            cwd=folder,
            env=environment,
            capture_stdout=True,
            stderr=subprocess.STDOUT,
            check=False,
        )
    said: str = done.stdout.decode()
    assert done.returncode == 0, f"{command}: {said}"
    return said
