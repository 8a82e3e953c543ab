"""The one convention of output: `-o table|wide|json|yaml`, `--no-headers`, `--watch`, and `--out` for files.

A command returns a `View`, and `output_options` prints it. Documents for programs are msgspec structs, so that each has
a JSON schema: times are RFC 3339 in UTC, sizes are integers of bytes, and an unknown value is null.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial, wraps
from itertools import compress
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, get_args

import click
import msgspec
from attrs import frozen
from click.shell_completion import CompletionItem

from klamm.cli.decorators import AnyCommand, with_options
from klamm.cli.output import print_json, print_table, print_yaml
from transport.messages import UNKNOWN

T = TypeVar("T")

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time of a document: RFC 3339, in UTC."""

WATCH_SECONDS: Final = 2.0
"""The time between two looks of `--watch`."""

DRY_RUN: Final = "Nothing was changed: this was a dry run."
"""The last line of a dry run that shows what would change."""


class Format(StrEnum):
    """A format of output. `wide` has more columns than `table`, and does not fold its lines."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"

    @property
    def is_document(self) -> bool:
        """Whether programs read it: stdout then has the document and nothing else."""
        return self in {Format.JSON, Format.YAML}


@frozen
class Table:
    """A table. Only `wide` output has the columns whose heads are in `wide`; those in `numbers` align to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    wide: Collection[str] = ()
    numbers: Collection[str] = ()


@frozen
class Note:
    """A line that goes to stderr beside tables; programs find its content in the document.

    One that is `always` there goes to stderr beside documents, too.
    """

    text: str
    always: bool = False


@frozen
class View:
    """The result of a command: a document for programs, the same for people, and the exit code.

    `is_over` ends a `--watch`: the document will not change any more.
    """

    document: object
    parts: Sequence[Table | Note | str]
    code: int = 0
    is_over: bool = False


# --- documents --------------------------------------------------------------------------------------------------


def known(value: T) -> T | None:
    """Return a value of a message, None for UNKNOWN."""
    return None if value == UNKNOWN else value


def time_of(milliseconds: int) -> Time | None:
    """Return a time of a message, which is in ms since 1970, with its zone; None for UNKNOWN."""
    return None if milliseconds == UNKNOWN else datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def seconds_of(milliseconds: int) -> float | None:
    """Return a duration of a message, which is in ms, in seconds; None for UNKNOWN."""
    return None if milliseconds == UNKNOWN else milliseconds / 1000


def document_types(command: click.Command) -> tuple[Any, ...]:
    """Return the types of the documents that a command prints. Raises KeyError for a command without one."""
    document = vars(command.callback)["document"]
    if isinstance(document, tuple):
        return document
    return get_args(document) if isinstance(document, UnionType) else (document,)


def schema_of(command: click.Command) -> dict[str, Any]:
    """Return the JSON schema of the document that a command prints. Raises KeyError for a command without one."""
    types = document_types(command)
    if len(types) == 1:
        return msgspec.json.schema(types[0])
    schemas, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    return {"anyOf": list(schemas), "$defs": components}


# --- options ----------------------------------------------------------------------------------------------------

_FORMAT: Final = click.option(
    "-o",
    "--output",
    type=click.Choice([each.value for each in Format]),
    default=Format.TABLE.value,
    show_default=True,
    callback=lambda _context, _option, name: Format(name),
    help="The format of the output; wide is a table with more columns and unfolded lines.",
)
_NO_HEADERS: Final = click.option("--no-headers", is_flag=True, help="Print tables without their heads.")
_OLD_JSON: Final = click.option("--json", "as_json", is_flag=True, hidden=True)
_WATCH: Final = click.option(
    "-w", "--watch", is_flag=True, help="Print it again whenever it changes; JSON is one document on each line."
)


def output_options(
    document: object, *, watch: bool = False, knows_format: bool = False
) -> Callable[[Callable[..., View]], Callable[..., None]]:
    """Add the options of output to a command that returns a View.

    Args:
        document: The type of its document, for the schema.
        watch: Whether to add `--watch`, which runs the command again and again.
        knows_format: Whether to pass the Format to the command, as `output`.
    """

    def decorate(command: Callable[..., View]) -> Callable[..., None]:
        @wraps(command)
        def printed(*, output: Format, no_headers: bool, watch: bool = False, **options: object) -> None:
            look = partial(command, **options, **({"output": output} if knows_format else {}))
            code = (_watched if watch else _shown)(look, output, headers=not no_headers)
            if code:
                sys.exit(code)

        vars(printed)["document"] = document
        return with_options(printed, (_FORMAT, _NO_HEADERS, *([_WATCH] if watch else [])))

    return decorate


def printing_options(document: object) -> Callable[[AnyCommand], AnyCommand]:
    """Add `-o` and `--no-headers` to a command that prints by itself; it receives `output` and `no_headers`.

    Its document may be one of several types, which are given as a tuple.
    """

    def decorate(command: AnyCommand) -> AnyCommand:
        vars(command)["document"] = document
        return with_options(command, (_FORMAT, _NO_HEADERS))

    return decorate


dry_run_option: Final = click.option(
    "--dry-run", is_flag=True, help="Only check whether this would succeed; nothing changes."
)
"""The option of commands that change something; the command receives it as `dry_run`."""

yes_option: Final = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
"""The option of commands that ask before they do harm; the command receives it as `yes`."""


def confirm(question: str, *, yes: bool, is_new: bool = True) -> None:
    """Ask on the terminal whether to go on, unless --yes is given.

    Without a terminal --yes is required; a question that earlier releases did not ask (`is_new` is false) is then a
    warning for two releases, so that scripts go on.

    Raises:
        click.UsageError: There is no terminal to ask on.
        click.Abort: The answer is no.
    """
    if yes:
        return
    if sys.stdin is not None and sys.stdin.isatty():
        click.confirm(question, abort=True, err=True)
    elif is_new:
        raise click.UsageError(f"{question} Confirm it with --yes.")
    else:
        click.echo("not confirmed: give --yes, which a later release requires where nothing can be asked", err=True)


# --- old spellings ----------------------------------------------------------------------------------------------


def warn_of_old(old: str, new: str) -> None:
    """Print that an old spelling still works, and the new one; it works for two releases."""
    click.echo(f"{old} is an old spelling, which later releases refuse: use {new}", err=True)


class FormatOrPath(click.ParamType[str]):
    """A format, or the path of a file or folder, which earlier releases took as `-o`."""

    name = "format"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002  as click has it
        """Return the formats."""
        return f"[{'|'.join(Format)}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Return a Format, or the path as it is."""
        return Format(value) if value in list(Format) else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the formats that begin so."""
        return [CompletionItem(name) for name in Format if name.startswith(incomplete)]


def out_option(
    document: object, text: str, metavar: str, *, has_tables: bool = False, has_old_json: bool = False
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Add `--out` to a command that writes files, and `-o`, which takes a format; a path there is the old spelling.

    A folder that is called as a format is `./json`. The command receives `out` (None if it is not given) and `output`.

    Args:
        document: The type of the document of its report, for the schema.
        text: The help of `--out`.
        metavar: What `--out` names.
        has_tables: Whether the report has tables; the command then receives `no_headers`.
        has_old_json: Whether earlier releases had `--json`, which is `-o json`.
    """

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        @wraps(command)
        def with_out(*, out: str | None, output: str, as_json: bool = False, **options: object) -> T:
            place, form, old, new = out, Format.TABLE, [], []
            if isinstance(output, Format):
                form = output
            elif out is not None:
                raise click.UsageError(f"-o {output}: give a format, as --out names the place already")
            else:
                place, old, new = output, [f"-o {output}"], [f"--out {output}"]
            if as_json:
                form, old, new = Format.JSON, [*old, "--json"], [*new, "-o json"]
            if old:
                warn_of_old(" ".join(old), " ".join(new))
            return command(out=place, output=form, **options)

        vars(with_out)["document"] = document
        options = (
            click.option("--out", metavar=metavar, help=text),
            click.option(
                "-o",
                "--output",
                type=FormatOrPath(),
                default=Format.TABLE,
                show_default=True,
                help="The format of the report.",
            ),
            *([_NO_HEADERS] if has_tables else []),
            *([_OLD_JSON] if has_old_json else []),
        )
        return with_options(with_out, options)

    return decorate


def _shown(look: Callable[[], View], output: Format, *, headers: bool) -> int:
    view = look()
    show(view, output, headers=headers)
    return view.code


def _watched(look: Callable[[], View], output: Format, *, headers: bool) -> int:
    """Print a view whenever it changes, until it is over; errors in between are printed when they change."""
    before: object = None
    while True:
        try:
            view = look()
        except click.ClickException as error:
            if before is None:
                raise
            if before != error.message:
                click.echo(f"{error.message}: trying again", err=True)
            before = error.message
        else:
            if before != view.document:
                _show_next(view, output, is_first=before is None, headers=headers)
            if view.is_over:
                return view.code
            before = view.document
        sys.stdout.flush()
        time.sleep(WATCH_SECONDS)


def _show_next(view: View, output: Format, *, is_first: bool, headers: bool) -> None:
    if output is Format.JSON:
        click.echo(msgspec.json.encode(view.document).decode())
        return
    if not is_first:
        click.echo("---" if output is Format.YAML else "")
    show(view, output, headers=headers)


# --- printing ---------------------------------------------------------------------------------------------------


def show(view: View, output: Format, *, headers: bool = True) -> None:
    """Print a view."""
    if output.is_document:
        for part in view.parts:
            if isinstance(part, Note) and part.always:
                click.echo(part.text, err=True)
    if output is Format.JSON:
        print_json(view.document)
    elif output is Format.YAML:
        print_yaml(view.document)
    else:
        for part in view.parts:
            _print(part, output, headers=headers)


def _print(part: Table | Note | str, output: Format, *, headers: bool) -> None:
    if isinstance(part, Note):
        click.echo(part.text, err=True)
    elif isinstance(part, str):
        click.echo(part)
    else:
        is_wide = output is Format.WIDE
        kept = [is_wide or name not in part.wide for name in part.columns]
        names = list(compress(part.columns, kept))
        rows = [list(compress(row, kept)) for row in part.rows]
        print_table(names, rows, numbers=part.numbers, room=sys.maxsize if is_wide else None, headers=headers)
