"""The formats of output, `--watch`, units, confirmations and old spellings, on commands made for these tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime

import click
import pytest
import yaml
from click.testing import CliRunner, Result
from msgspec import Struct

from klamm.cli import formats
from klamm.cli.connect import Cluster, changed_cluster_options
from klamm.cli.formats import Note, Table, View, confirm, known, out_option, output_options, time_of, yes_option
from klamm.cli.names import RATE, SIZE

NAME = "n" * 249
OLD = "-o ./json is an old spelling, which later releases refuse: use --out ./json\n"


class Row(Struct):
    name: str
    begun: datetime | None
    leader: int | None


def view(name: str = "orders", *, code: int = 0, is_over: bool = False) -> View:
    row = Row(name, time_of(1_700_000_000_000), known(-1))
    table = Table(("name", "leader", "epoch"), [(name, None, 7)], wide={"epoch"})
    return View([row], ["first", table, Note("beside")], code, is_over=is_over)


def command(looks: Callable[[], View], **more: bool) -> click.Command:
    return click.command()(output_options(list[Row], **more)(looks))


def run(made: click.Command, *words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(made, words, input=typed)


def test_a_table_has_notes_beside_it_and_wide_columns_only_if_asked() -> None:
    result = run(command(view))
    assert result.stdout.splitlines() == ["first", "name    leader", "──────────────", "orders  -"]
    assert result.stderr == "beside\n"
    assert run(command(view), "-o", "wide").stdout.splitlines()[1:] == [
        "name    leader  epoch",
        "─────────────────────",
        "orders  -           7",
    ]


def test_without_heads_only_rows_are_printed() -> None:
    assert run(command(view), "--no-headers").stdout.splitlines() == ["first", "orders  -"]


def test_a_table_fits_the_terminal_and_a_wide_one_is_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    made = command(lambda: view(NAME))
    assert max(map(len, run(made).stdout.splitlines())) <= 80
    assert NAME in run(made, "-o", "wide").stdout


def test_documents_have_null_for_unknown_values_and_times_in_utc() -> None:
    expected = [{"name": "orders", "begun": "2023-11-14T22:13:20Z", "leader": None}]
    result = run(command(view), "-o", "json")
    assert (json.loads(result.stdout), result.stderr) == (expected, "")
    assert yaml.safe_load(run(command(view), "--output", "yaml").stdout.replace("Z", "Z ")) is not None
    assert run(command(view), "-o", "yaml").stdout.splitlines()[1] == "  begun: '2023-11-14T22:13:20Z'"


def test_the_code_of_the_view_is_that_of_the_command() -> None:
    assert run(command(lambda: view(code=3))).exit_code == 3


# --- watching ---------------------------------------------------------------------------------------------------


def watched(monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    """Watch something that changes once, cannot be seen twice, and is over."""
    monkeypatch.setattr(formats, "WATCH_SECONDS", 0)
    looks: Iterator[View | Exception] = iter(
        [
            view("one"),
            view("one"),
            click.ClickException("no answer"),
            click.ClickException("no answer"),
            view("two", code=3, is_over=True),
        ]
    )

    def look() -> View:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    return run(command(look, watch=True), "-w", *words)


def test_json_is_a_line_whenever_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    result = watched(monkeypatch, "-o", "json")
    assert [json.loads(line)[0]["name"] for line in result.stdout.splitlines()] == ["one", "two"]
    assert (result.stderr, result.exit_code) == ("no answer: trying again\n", 3)


def test_a_table_is_printed_again_whenever_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = watched(monkeypatch, "--no-headers").stdout.splitlines()
    assert lines == ["first", "one   -", "", "first", "two   -"]


def test_yaml_is_a_document_whenever_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = list(yaml.safe_load_all(watched(monkeypatch, "-o", "yaml").stdout))
    assert [document[0]["name"] for document in documents] == ["one", "two"]


def test_if_the_first_look_fails_so_does_the_command() -> None:
    def look() -> View:
        raise click.ClickException("no answer")

    result = run(command(look, watch=True), "-w")
    assert (result.exit_code, result.stderr) == (1, "Error: no answer\n")


def test_a_command_that_is_watched_keeps_its_cluster_and_so_names_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "WATCH_SECONDS", 0)
    seen: list[Cluster] = []

    def look(cluster: Cluster) -> View:
        seen.append(cluster)
        return view(is_over=len(seen) == 2)

    made = click.command()(output_options(list[Row], watch=True)(changed_cluster_options(look)))
    assert run(made, "-w").exit_code == 0
    assert seen[0] is seen[1]


# --- units ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1048576", 1_048_576),
        ("50MB", 50_000_000),
        ("1.5 GB", 1_500_000_000),
        ("64MiB", 64 * 1024**2),
        ("2tb", 2_000_000_000_000),
        ("7B", 7),
    ],
)
def test_sizes_and_rates_have_units(text: str, number: int) -> None:
    assert SIZE.convert(text, None, None) == number
    assert RATE.convert(text, None, None) == number
    assert RATE.convert(f"{text}/s", None, None) == number


@pytest.mark.parametrize("text", ["", "MB", "0", "-1", "1.5", "20MB/s", "5 miles", "99999999TB", "1e3"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not a (size such as 50GB|whole number of bytes from 1)"):
        SIZE.convert(text, None, None)


# --- confirmations and old spellings ----------------------------------------------------------------------------


@click.command()
@yes_option
@click.option("--is-old", is_flag=True)
def harmful(*, yes: bool, is_old: bool) -> None:
    confirm("Delete everything?", yes=yes, is_new=not is_old)
    click.echo("deleted")


def test_without_a_terminal_harm_needs_a_yes() -> None:
    refused = run(harmful)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Delete everything? Confirm it with --yes." in refused.stderr
    assert run(harmful, "--yes").stdout == "deleted\n"


def test_what_scripts_did_without_a_question_goes_on_with_a_warning() -> None:
    done = run(harmful, "--is-old")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (0, "deleted\n", 1)


@pytest.mark.parametrize(("answer", "code", "printed"), [("y\n", 0, "deleted\n"), ("n\n", 1, "")])
def test_a_terminal_is_asked(answer: str, code: int, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    asked = run(harmful, typed=answer)
    assert (asked.exit_code, asked.stdout.replace("Delete everything? [y/N]: ", "")[-len(printed) :]) == (code, printed)


@click.command()
@out_option(list[Row], "The place.", "PATH")
def writing(*, out: str | None, output: str) -> None:
    click.echo(f"{out} {output}")


@pytest.mark.parametrize(
    ("words", "printed", "warning"),
    [
        ((), "None table\n", ""),
        (("--out", "plan"), "plan table\n", ""),
        (("-o", "json"), "None json\n", ""),
        (
            ("-o", "./json"),
            "./json table\n",
            OLD,
        ),
        (("--out", "json", "-o", "yaml"), "json yaml\n", ""),
    ],
)
def test_a_format_word_is_a_format_and_a_path_is_the_old_spelling(
    words: tuple[str, ...], printed: str, warning: str
) -> None:
    result = run(writing, *words)
    assert (result.stdout, result.stderr) == (printed, warning)


def test_two_places_are_a_mistake() -> None:
    assert run(writing, "--out", "plan", "-o", "elsewhere").exit_code == 2
