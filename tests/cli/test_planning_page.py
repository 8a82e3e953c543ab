"""docs/planning.md: its plan step by step, typed as printed, gives the printed output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.requirement("E3")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
STEPS = PAGE.partition("### A plan, step by step\n")[2].partition("\n### ")[0]
LEFT_OUT = "…\n"


def sessions() -> list[tuple[str, str]]:
    """Return the commands of the plan step by step, each with what it is shown to print."""
    blocks = [dedent(block) for block in re.findall(r"^ *```\n( *\$ .*?)^ *```", STEPS, re.DOTALL | re.MULTILINE)]
    return re.findall(r"^\$ (.*?)\n(.*?)(?=^\$ |\Z)", "".join(blocks), re.DOTALL | re.MULTILINE)


def typed(command: str, folder: Path) -> str:
    klamm = f'klamm() {{ "{sys.executable}" -m klamm "$@"; }}; '
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        ["bash", "-c", klamm + command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
    )
    # Lines of a report are wrapped behind a space.
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def test_the_page_shows_what_the_commands_print(tmp_path: Path) -> None:
    shown = sessions()
    assert [command.split()[:3] for command, _ in shown][:3:2] == [
        ["klamm", "plan", "generate-cluster"],
        ["klamm", "plan", "remove-brokers"],
    ]
    for command, text in shown:
        printed = typed(command, tmp_path)
        wanted = ".*".join(map(re.escape, text.split(LEFT_OUT)))
        assert re.fullmatch(wanted, printed, re.DOTALL), f"$ {command}\n{printed}"
    assert (tmp_path / "monday.html").read_text().startswith("<!DOCTYPE html>")
