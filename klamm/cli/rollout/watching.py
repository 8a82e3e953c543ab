"""`klamm rollout status --watch`: in place on a terminal, elsewhere a line for each change, until it is over.

With `-o wide` each change is the whole table, unfolded, instead of the line.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import click
import msgspec
import trio
from msgspec.structs import replace
from rich.console import Console
from rich.live import Live
from rich.text import Text

from klamm.cli.formats import Format
from klamm.cli.output import print_table
from klamm.cli.progress import is_animated
from klamm.cli.rollout.documents import RolloutRow
from klamm.cli.rollout.report import Report

SECONDS: Final = 1.0
"""The time between two looks."""

Look = Callable[[], Awaitable[Report]]


def table_of(report: Report, room: int, *, headers: bool = True) -> str:
    """Return a report as tables that fit this many columns."""
    out = io.StringIO()
    for part in report.parts:
        if isinstance(part, str):
            out.write(f"{part}\n")
        else:
            print_table(part.columns, part.rows, room=room, headers=headers, file=out)
    return out.getvalue()


async def watch(look: Look, output: Format, *, headers: bool = True) -> None:
    """Show a rollout again and again until it is over."""
    console = Console()
    if output.is_document or not is_animated(console):
        await _print_changes(look, output, headers=headers)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            report = await look()
            room = sys.maxsize if output is Format.WIDE else console.width
            live.update(Text.from_ansi(table_of(report, room, headers=headers)), refresh=True)
            if report.state.is_over:
                return
            await trio.sleep(SECONDS)


async def _print_changes(look: Look, output: Format, *, headers: bool) -> None:
    """Print each change: a line in words, a table if it is wide, or a document as JSON or YAML."""
    told: object = None
    while True:
        report = await look()
        news = report.line if output is Format.TABLE else _timeless(report.document)
        if news != told:
            if output is Format.WIDE and told is not None:
                click.echo("")
            told = news
            click.echo(_text(report, output, headers=headers))
        if report.state.is_over:
            return
        await trio.sleep(SECONDS)


def _timeless(document: RolloutRow) -> RolloutRow:
    """Return a document without the time of its numbers, which changes with each look."""
    progress = document.progress
    return document if progress is None else replace(document, progress=replace(progress, as_of=None))


def _text(report: Report, output: Format, *, headers: bool) -> str:
    match output:
        case Format.JSON:
            return msgspec.json.encode(report.document).decode()
        case Format.YAML:
            import yaml

            plain = msgspec.to_builtins(report.document)
            return "---\n" + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip("\n")
        case Format.WIDE:
            return table_of(report, sys.maxsize, headers=headers).rstrip("\n")
        case _:
            return report.line
