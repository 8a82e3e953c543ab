"""The words of each command, kept in one file: its help, what it prints at 80 columns, and its exit code.

Words are tested here and nowhere else; other tests name the reason of an error. `python -m tests.cli.walk.write` writes
the files anew, and the difference shows in the review.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.shell import Shell
from tests.cli.walk.commands import COMMANDS, FORMATTED
from tests.cli.walk.recording import GOLDEN, help_of, recorded
from tests.cli.walk.session import NAME, SESSION


@pytest.mark.parametrize("words", COMMANDS)
def test_help_is_what_is_kept(words: str) -> None:
    kept = (GOLDEN / f"{words.replace(' ', '-')}.txt").read_text(encoding="utf-8")
    assert kept[: len(help_of(words))] == help_of(words)
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
    assert [line for text in found.values() for line in _table_lines(text) if cell_len(line) > 80] == []


def _table_lines(text: str) -> Iterator[str]:
    """Yield the rules of tables and their rows; a sentence may have a long name that is not broken."""
    is_table = False
    for line in text.splitlines():
        is_table = line.startswith("───") or (is_table and bool(line) and not line.startswith("exit "))
        if is_table and NAME not in line:
            yield line
