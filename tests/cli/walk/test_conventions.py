"""Every command follows the conventions: lists, formats, dry runs, units, completion, and a call in Python.

A new command takes part once it is in one of the lists of `commands`, which also name those that differ, with the
reason. What is true of the calls in golden files is true of the commands: `test_words` holds these files.
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
from tests.cli.shell import run_klamm
from tests.cli.walk.commands import AT_TIMES, CHANGING, COMMANDS, FILES, FORMATTED, LOCAL, LOOKING, SERVICES, option
from tests.cli.walk.recording import kept_calls
from tests.cli.walk.stage import PROFILE, write_profile
from tests.kafka.scripted_nodes import scripted_nodes

ROOT: Final = Path(__file__).parents[3]
SCHEMAS: Final = Path(__file__).parent / "schemas"
API: Final = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
CALLS: Final = dict(re.findall(r"^\| `klamm ([a-z -]+)` \| (.*?) \|$", API, re.MULTILINE))

CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qg"

every = pytest.mark.parametrize("words", COMMANDS)
every_formatted = pytest.mark.parametrize("words", FORMATTED)


@every_formatted
def test_it_prints_in_every_format(words: str) -> None:
    output = option(FORMATTED[words], "output")
    assert output is not None
    assert {"-o", "--output"} <= set(output.opts)
    assert all(str(output.type.convert(each.value, output, None)) == each.value for each in Format)
    assert words in FILES or option(FORMATTED[words], "no_headers") is not None


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


def test_each_command_is_in_one_list() -> None:
    assert sorted([*CHANGING, *LOOKING, *SERVICES, *LOCAL]) == sorted(COMMANDS)


@pytest.mark.parametrize("words", CHANGING)
def test_a_change_can_be_tried_first(words: str) -> None:
    assert (option(COMMANDS[words], "dry_run") is None) is bool(CHANGING[words])


@every
def test_only_commands_that_change_a_cluster_have_its_options_for_that(words: str) -> None:
    command = COMMANDS[words]
    is_change = vars(command.callback).get("changes_cluster", False) or option(command, "dry_run") is not None
    assert words in CHANGING or not is_change


@pytest.mark.parametrize("words", [words for words in CHANGING if words not in AT_TIMES])
def test_a_change_names_first_the_cluster_that_it_is_made_to(words: str) -> None:
    made = [call for call in kept_calls(words) if call.code == 0]
    assert made
    id_ = f" {CLUSTER_ID}" if words.startswith("controller ") else ""  # clusters of Klamm's brokers have none
    for call in made:
        of_profile = f" (profile {PROFILE})" if f"--profile {PROFILE}" in call.line else ""
        assert call.stderr.splitlines()[:1] == [f"cluster{id_} at 127.0.0.1:PORT{of_profile}"], call.line


@pytest.mark.parametrize("words", [*LOOKING, *LOCAL])
def test_a_look_names_no_cluster_as_if_it_changed_it(words: str) -> None:
    assert [call.line for call in kept_calls(words) if re.search("^cluster ", call.stderr, re.MULTILINE)] == []


async def test_a_change_names_the_id_of_the_cluster_and_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_nodes(1) as nodes:
        nodes.cluster_id = CLUSTER_ID
        nodes.show("orders", (1,))
        [(host, port)] = nodes.bootstrap
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        write_profile(tmp_path, "lab", f"{host}:{port}")
        done = await run_klamm("topic", "delete", "orders", "--dry-run", "--profile", "lab", whole=True)
    assert (done.returncode, done.stderr.decode()) == (0, f"cluster {CLUSTER_ID} at {host}:{port} (profile lab)\n")


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
