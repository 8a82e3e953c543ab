"""Mistakes with all commands: the exit code, the line with the fault, no traceback, and nothing half done."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import pytest

from klamm.cli import main
from tests.cli.mistakes import playbook
from tests.cli.mistakes.conftest import ENVIRONMENT
from tests.cli.mistakes.folder import FORBIDDEN, Contents, contents
from tests.cli.mistakes.playbook import PlaybookRow, agrees
from tests.cli.mistakes.scene import Scene, Znodes
from tests.cli.shell import without_cluster
from tests.kit.fork_server import LONGEST_SECONDS, Done, ForkServer, may_refuse_root

ROWS: Final = [row for page in sorted(playbook.FOLDER.glob("*.txt")) for row in playbook.rows(page)]
WRONG_USAGE: Final = 2
_OF_FILES: Final = (["plan"], ["state"])
"""The commands that read files or ZooKeeper unless they are told to ask a cluster."""

_USAGE: Final = re.compile(
    r"^Usage: (?:klamm|python -m klamm) .*\n(?:  +.*\n)*(?:Try '.*' for help\.\n)?\n", re.MULTILINE
)
_KLAMM: Final = f'klamm() {{ "{sys.executable}" -m klamm "$@"; }}; set -o pipefail; '

Untouched = tuple[Znodes, dict[Path, int], Contents]


@pytest.fixture
def names(cluster: Scene, request: pytest.FixtureRequest) -> Mapping[str, str]:
    """Return the addresses that a row may name; ZooKeeper's only if it does, because not every machine has one."""
    row = request.node.callspec.params["row"]
    if "$ZOOKEEPER" not in row.typed:
        return cluster.names
    return {**cluster.names, **request.getfixturevalue("registered")}


@pytest.fixture(scope="module")
def scenes(cluster: Scene, folder: Path) -> list[Untouched]:
    """Give the tests the scene as the last of them has left it, as the only entry."""
    return [_looked_at(cluster, folder)]


@pytest.fixture(autouse=True)
def nothing_half_done(cluster: Scene, folder: Path, scenes: list[Untouched]) -> Iterator[None]:
    """See that the cluster's metadata, its records, and all files are afterwards as before."""
    yield
    before, scenes[0] = scenes[0], _looked_at(cluster, folder)
    for earlier, later in zip(before, scenes[0], strict=True):
        assert later == earlier


def _looked_at(cluster: Scene, folder: Path) -> Untouched:
    return cluster.znodes(), cluster.logs(), contents(folder)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.place) for row in ROWS])
def test_a_mistake(row: PlaybookRow, names: Mapping[str, str], folder: Path, forks: ForkServer) -> None:
    if not may_refuse_root() and any(name in row.typed for name in FORBIDDEN):
        pytest.skip("root may read and write everything")
    done = _in_shell(row, names, folder) if row.needs_shell else _in_fork(row, names, folder, forks)
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert done.code == row.code, said
    stderr = without_cluster(done.stderr)
    stderr = _USAGE.sub("", stderr, count=1) if row.code == WRONG_USAGE else stderr
    _compare(stderr, row.stderr, names)
    _compare(done.stdout, row.stdout, names)


def test_every_command_has_its_mistakes() -> None:
    typed = [row.typed for row in ROWS]
    assert len(typed) >= 300
    assert len(set(typed)) == len(typed)
    for command in _commands(main, "klamm"):
        assert any(line.startswith(f"{command} ") for line in typed), command


def _commands(group: click.Group, name: str) -> Iterator[str]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if isinstance(command, click.Group):
            yield from _commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}"


def _compare(said: str, wanted: Sequence[str], names: Mapping[str, str]) -> None:
    lines = said.splitlines()
    alike = [agrees(*both, names) for both in zip(lines, wanted, strict=False)]
    assert all(alike), f"{said!r} instead of {wanted}"
    assert len(lines) == len(wanted), f"{said!r} instead of {wanted}"


def _in_fork(row: PlaybookRow, names: Mapping[str, str], folder: Path, forks: ForkServer) -> Done:
    words, file, text = row.words(names)
    at = _end_of_command(words)
    variables = row.variables(folder)
    if at and not variables and not {"--bootstrap-server", "--zookeeper"} & set(words):
        words[at:at] = ["--bootstrap-server", names["BOOTSTRAP"]]
    environment = {**ENVIRONMENT, **variables}
    return forks.run(words, cwd=folder, stdin=file, text=text, environment=environment, **row.files)


def _end_of_command(words: Sequence[str]) -> int:
    """Return how many of the words name a command that asks a cluster, 0 if it does so only when told to."""
    if words[:1] in _OF_FILES:
        return 0
    command: click.Command | None = main
    count = 0
    while isinstance(command, click.Group) and count < len(words):
        command = command.get_command(click.Context(command), words[count])
        count += 1
    asks = command is not None and any("--bootstrap-server" in option.opts for option in command.params)
    return count if asks else 0


def _in_shell(row: PlaybookRow, names: Mapping[str, str], folder: Path) -> Done:
    done = subprocess.run(
        ["bash", "-c", _KLAMM + row.typed],
        cwd=folder, env={**ENVIRONMENT, **names},
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=LONGEST_SECONDS,
    )  # fmt: skip
    return Done(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))
