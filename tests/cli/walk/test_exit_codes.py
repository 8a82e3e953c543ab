"""The exit codes of each command are those of the table in docs/commands.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from klamm.interrupts import INTERRUPTED
from tests.cli.walk.commands import COMMANDS, JUDGES, SERVICES, option
from tests.cli.walk.recording import invoked, kept_calls, words_of
from tests.cli.walk.session import CALLS
from tests.cli.walk.stage import surroundings

PAGE: Final = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")
CODES: Final = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.*?) \|$", PAGE, re.MULTILINE)}
ROWS: Final = {
    name: text
    for names, text in re.findall(r"^\| (`.*?) \| (.*?) \|$", PAGE.partition("### What 0 means")[2], re.MULTILINE)
    for name in re.findall(r"`(.*?)`", names)
}
"""The text about the code 0 of each command, or of all commands of a group."""

JUDGEMENTS: Final = {code for code, text in CODES.items() if text.startswith("only commands that judge")}
CALLED: Final = tuple(words for words in COMMANDS if words not in {*SERVICES, "completion"})
NOWHERE: Final = "127.0.0.1:1"

every = pytest.mark.parametrize("words", COMMANDS)
every_called = pytest.mark.parametrize("words", CALLED)


def test_the_page_has_every_code() -> None:
    assert set(CODES) == {0, 1, 2, 3, 4, INTERRUPTED}
    assert {3, 4} == JUDGEMENTS


@every
def test_the_page_says_when_the_code_of_each_command_is_zero(words: str) -> None:
    assert [name for name in ROWS if words == name or words.startswith(f"{name} ")] != []


def test_the_page_names_commands_only() -> None:
    assert [name for name in ROWS if not any(f"{words} ".startswith(f"{name} ") for words in COMMANDS)] == []


def test_the_page_names_the_commands_that_judge() -> None:
    assert tuple(name for name, text in ROWS.items() if text.startswith("judges: ")) == JUDGES


@every_called
def test_a_command_ends_with_the_codes_of_its_kind(words: str) -> None:
    codes = {call.code for call in kept_calls(words)}
    if words in JUDGES:
        assert codes & JUDGEMENTS
    else:
        assert 0 in codes
        assert codes <= CODES.keys() - JUDGEMENTS


@every
def test_wrong_usage_is_2_and_help_is_0(words: str) -> None:
    assert invoked(words, "--no-such-option").returncode == 2
    assert invoked(words, "--help").returncode == 0


@every_called
def test_a_command_that_fails_is_1(words: str, tmp_path: Path) -> None:
    """Where nothing listens; without a cluster, as the golden file shows."""
    places = [option(COMMANDS[words], name) for name in ("bootstrap_server", "zookeeper", "zookeeper_connect")]
    place = next((place for place in places if place is not None), None)
    if place is None:
        assert 1 in {call.code for call in kept_calls(words)}
        return
    line = next(line for line in CALLS if words_of(line) == words)
    with surroundings(tmp_path):
        done = invoked(re.sub(r" --(profile|snapshot|loads) \S+", "", line), place.opts[0], NOWHERE)
    assert (done.returncode, NOWHERE in done.stderr.decode()) == (1, True), done
