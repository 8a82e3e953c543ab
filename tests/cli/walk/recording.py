"""What the commands of the session print, as the golden files keep it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import click

from klamm.cli import main
from tests.cli.shell import run_klamm
from tests.cli.walk.commands import COMMANDS, FORMATTED
from tests.cli.walk.session import MOVE, NAME, SCENARIO, SESSION

GOLDEN: Final = Path(__file__).parent / "golden"
_OFFLINE: Final = ("leaders", "repair-racks", "set-replication-factor", "add-brokers", "remove-brokers", "relieve")
_LOCAL: Final = ("controller", "simulate", *(f"plan {goal}" for goal in _OFFLINE))
"""The beginnings of commands that are not given the cluster."""

_VARYING: Final = (
    (re.compile(r"127\.0\.0\.1:\d{5}(,127\.0\.0\.1:\d{5})*"), "127.0.0.1:PORT"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "2026-01-01 00:00:00"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms)\b"), "N s"),
    (re.compile(r"trace [0-9a-f]{32}"), "trace DIGEST"),
    (re.compile(r'("topic_id": ?)"[\w-]{22}"'), r'\1"ID"'),
)


def help_of(words: str) -> str:
    """Return the help of a command at 80 columns."""
    context = click.Context(main, info_name="klamm", help_option_names=["-h", "--help"], terminal_width=80)
    *groups, last = words.split()
    for word in groups:
        context = click.Context(main, parent=context, info_name=word)
    # click remembers the option of the first context in which a command was asked, a test's perhaps.
    COMMANDS[words]._help_option = None  # noqa: SLF001
    inner = click.Context(COMMANDS[words], parent=context, info_name=last, terminal_width=80)
    return f"$ klamm {words} --help\n{COMMANDS[words].get_help(inner)}\n"


async def recorded(bootstrap: str, folder: Path) -> dict[str, str]:
    """Run the session on a cluster; return for each command its calls and what they print on stdout and stderr."""
    back = json.dumps(MOVE).replace("[3, 2, 1]", "[1, 2, 3]")
    (folder / "move.json").write_text(json.dumps(MOVE))
    (folder / "back.json").write_text(back)
    (folder / "move.yaml").write_text(SCENARIO)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in SESSION:
        words = max((words for words in FORMATTED if re.match(rf"{words}( |$)", line)), key=len)
        given = line.format(name=NAME, files=folder).split()
        at = [] if line.startswith(_LOCAL) else ["--bootstrap-server", bootstrap]
        done = await run_klamm(*given, *at, whole=True)
        out, err = (_settled(text.decode(), folder) for text in (done.stdout, done.stderr))
        stderr = "".join(f"! {text}\n" for text in err.splitlines())
        found[words].append(f"\n$ klamm {line}\n{out}{stderr}exit {done.returncode}\n")
    return {words: "".join(calls) for words, calls in found.items()}


def _settled(text: str, folder: Path) -> str:
    """Return a text without what differs from run to run."""
    text = text.replace(str(folder), "FOLDER")
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text
