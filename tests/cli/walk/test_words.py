"""The words of each command, kept in one file: its help, what it prints at 80 columns, and its exit code.

Words are tested here and nowhere else; other tests name the reason of an error. `python -m tests.cli.walk.write` writes
the files anew, and the difference shows in the review.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from rich.cells import cell_len

from tests.cli.shell import Shell
from tests.cli.walk.commands import COMMANDS, FORMATTED
from tests.cli.walk.recording import GOLDEN, help_of, recorded
from tests.cli.walk.session import SESSION


@pytest.mark.parametrize("words", COMMANDS)
def test_help_is_what_is_kept(words: str) -> None:
    kept = (GOLDEN / f"{words.replace(' ', '-')}.txt").read_text(encoding="utf-8")
    assert kept.startswith(help_of(words))
    assert max(map(len, help_of(words).splitlines())) <= 80


def test_each_command_is_called() -> None:
    called = {words for line in SESSION for words in FORMATTED if re.match(rf"{words}( |$)", line)}
    assert called == set(FORMATTED)


async def test_what_commands_print_is_what_is_kept_and_fits_80_columns(
    klamm: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = await recorded(klamm.bootstrap, tmp_path)
    kept = {words: (GOLDEN / f"{words.replace(' ', '-')}.txt").read_text(encoding="utf-8") for words in FORMATTED}
    assert {words: help_of(words) + text for words, text in found.items()} == kept
    tables = [line for text in found.values() for line in text.splitlines() if "Error: " not in line]
    assert [line for line in tables if cell_len(line) > 80 and not line.startswith(("$ ", "! "))] == []
    assert click is not None
