"""The words and documents of each command: its help, what it prints at 80 columns, its exit code, and its JSON.

The words are kept in one file for each command. They are tested here and nowhere else; other tests name the reason of
an error. `python -m tests.cli.walk.write` writes the files anew, and the difference shows in the review.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.walk.commands import COMMANDS, FORMATTED, SERVICES
from tests.cli.walk.documents import faults
from tests.cli.walk.recording import (
    GOLDEN,
    Recording,
    help_of,
    kept_calls,
    record_handover,
    record_plans,
    record_session,
    words_of,
)
from tests.cli.walk.session import CALLS, HANDOVER, PLANS, SESSION
from tests.cli.walk.stage import NAME, Stage, open_stage, surroundings


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path) as stage:
        yield stage


@pytest.mark.parametrize("words", COMMANDS)
def test_help_is_what_is_kept(words: str) -> None:
    kept = (GOLDEN / f"{words.replace(' ', '-')}.txt").read_text(encoding="utf-8")
    assert kept[: len(help_of(words))] == help_of(words)
    assert max(map(len, help_of(words).splitlines())) <= 80


def test_each_command_is_called() -> None:
    assert {words_of(line) for line in CALLS} == COMMANDS.keys() - {*SERVICES, "completion"}


async def test_what_commands_print_on_a_cluster_is_what_is_kept(stage: Stage) -> None:
    require_as_kept(await record_session(stage, with_documents=True), SESSION)


def test_what_plans_print_is_what_is_kept(tmp_path: Path) -> None:
    with surroundings(tmp_path):
        require_as_kept(record_plans(with_documents=True), PLANS)


async def test_what_a_handover_prints_is_what_is_kept(zookeeper: str, tmp_path: Path) -> None:
    with surroundings(tmp_path):
        require_as_kept(await record_handover(f"{zookeeper}/walk-{tmp_path.name}", with_documents=True), HANDOVER)


def require_as_kept(found: Recording, lines: tuple[object, ...]) -> None:
    """Require the words that are kept, tables that fit 80 columns, and a whole document of each command."""
    called = {words_of(line) for line in lines if isinstance(line, str)}
    assert found.texts == {words: "".join(call.text for call in kept_calls(words)) for words in called}
    assert [line for text in found.texts.values() for line in _table_lines(text) if cell_len(line) > 80] == []
    assert {document.line: fault for document in found.documents if (fault := faults(document))} == {}
    assert {document.words for document in found.documents if document.stdout} == called & FORMATTED.keys()


def _table_lines(text: str) -> Iterator[str]:
    """Yield the rules of tables and their rows; a sentence may have a long name that is not broken."""
    is_table = False
    for line in text.splitlines():
        is_table = line.startswith("───") or (is_table and bool(line) and not line.startswith("exit "))
        if is_table and NAME not in line:
            yield line
