"""Every command follows the conventions: formats, dry runs, units, completion, exit codes, and a call in Python.

A new command takes part by itself. One that must differ is named here or in `commands`, with the reason.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import click
import pytest

import klamm
from klamm.cli.formats import Format, schema_of
from klamm.cli.names import Bytes, KnownTopic
from tests.cli.walk.commands import COMMANDS, FILES, FORMATTED, SERVICES, option

ROOT: Final = Path(__file__).parents[3]
SCHEMAS: Final = Path(__file__).parent / "schemas"
API: Final = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
CALLS: Final = dict(re.findall(r"^\| `klamm ([a-z -]+)` \| (.*?) \|$", API, re.MULTILINE))

every = pytest.mark.parametrize("words", COMMANDS)
every_formatted = pytest.mark.parametrize("words", FORMATTED)


@every_formatted
def test_it_prints_in_every_format(words: str) -> None:
    output = option(FORMATTED[words], "output")
    assert output is not None
    assert {"-o", "--output"} <= set(output.opts)
    assert all(str(output.type.convert(each.value, output, None)) == each.value for each in Format)
    assert option(FORMATTED[words], "no_headers") is not None


@every_formatted
def test_its_document_has_the_schema_that_is_kept(words: str) -> None:
    """A change of a schema shows in a change of its file: `python -m tests.cli.walk.write` writes all."""
    kept = json.loads((SCHEMAS / f"{words.replace(' ', '-')}.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(schema_of(FORMATTED[words]))) == kept


@every_formatted
def test_its_document_has_no_codes_for_the_unknown_and_times_with_a_zone(words: str) -> None:
    for name, kind in _properties(schema_of(FORMATTED[words])):
        assert not name.endswith("_ms"), f"{name}: a time is RFC 3339, a duration is in seconds"
        if name.endswith(("_time", "_since")):
            assert "date-time" in json.dumps(kind), name


def _properties(schema: object) -> list[tuple[str, object]]:
    if isinstance(schema, list):
        return [found for each in schema for found in _properties(each)]
    if not isinstance(schema, dict):
        return []
    own = list(schema.get("properties", {}).items()) if isinstance(schema.get("properties"), dict) else []
    return own + [found for each in schema.values() for found in _properties(each)]


@every
def test_whoever_changes_a_cluster_can_try_it_first(words: str) -> None:
    command = COMMANDS[words]
    is_change = vars(command.callback).get("changes_cluster", False)
    assert not is_change or option(command, "dry_run") is not None


def test_commands_that_change_something_are_known_as_such() -> None:
    changing = {words for words, command in COMMANDS.items() if vars(command.callback).get("changes_cluster", False)}
    verbs = [
        "add-partitions",
        "alter",
        "cancel",
        "create",
        "delete",
        "elect",
        "execute",
        "pause",
        "remove",
        "resume",
        "set",
        "start",
        "undo",
        "abort",
    ]
    assert {words for words in COMMANDS if words.split()[-1] in verbs} <= changing


@every
def test_sizes_and_rates_take_units(words: str) -> None:
    for each in COMMANDS[words].params:
        # Settings of services are in Kafka's form, which is a number.
        if words not in SERVICES and re.search(r"bytes|throttle|rate$", str(each.name)) and each.type.name != "boolean":
            assert isinstance(each.type, Bytes) or each.type.name == "rate", each.name


TOPICS: Final = ("topic", "topics", "names", "topic_list")
BROKERS: Final = ("brokers", "broker_list", "exclude")


@every
def test_topics_and_brokers_are_completed(words: str) -> None:
    # A topic that is created does not exist yet; a plan's snapshot is no cluster that could be asked.
    if words == "topic create" or words in {*SERVICES, *FILES}:
        return
    for each in COMMANDS[words].params:
        if each.name in TOPICS:
            assert isinstance(each.type, KnownTopic) or _is_completed(each), each.name
        if each.name in BROKERS:
            assert _is_completed(each), each.name


def _is_completed(param: click.Parameter) -> bool:
    is_plain = type(param.type).shell_complete is click.ParamType.shell_complete
    return not is_plain or param._custom_shell_complete is not None  # noqa: SLF001


@every
def test_the_docs_say_when_its_exit_code_is_zero(words: str) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = page.partition("### What 0 means in each command")[2]
    named = [name for row in re.findall(r"^\| (`.*?) \|", rows, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)]
    assert any(words == name or words.startswith(f"{name} ") for name in named)


def test_the_table_of_calls_has_every_command_and_no_other() -> None:
    assert sorted(CALLS) == sorted(COMMANDS)


@pytest.mark.parametrize("words", CALLS)
def test_what_the_command_offers_is_a_call_in_python(words: str) -> None:
    for name in re.findall(r"`([\w.]+)`", CALLS[words]):
        home, _, call = name.rpartition(".")
        owner = klamm if home == "klamm" else klamm.AdminClient
        assert name == "klamm.testing" or hasattr(owner, call), name
    # A command without a call says why.
    assert re.search(r"`[\w.]+`|^none: \w+", CALLS[words])
