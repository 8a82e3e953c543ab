"""`klamm rollout status --watch`: in place on a terminal, elsewhere a line for each change, until it is over."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from typing import Final

import click
import orjson
import trio
from rich.console import Console
from rich.live import Live
from rich.text import Text

from klamm.cli.output import print_document, print_table
from klamm.cli.progress import is_animated
from klamm.cli.rollout.report import Report

SECONDS: Final = 1.0
"""The time between two looks."""

Look = Callable[[], Awaitable[Report]]


def print_report(report: Report, output: str) -> None:
    """Print a report, as a table or a document."""
    if output != "table":
        print_document(report.document, output)
        return
    click.echo(table_of(report), nl=False)


def table_of(report: Report, room: int | None = None) -> str:
    """Return a report as tables."""
    out = io.StringIO()
    print_table(("rollout", report.name), report.rows, room=room, file=out)
    odd = [(one.partition, one.move.value, one.because) for one in report.odd]
    if odd:
        out.write("\n")
        print_table(("partition", "move", "because"), odd, room=room, file=out)
    return out.getvalue()


async def watch(look: Look, output: str) -> None:
    """Show a rollout again and again until it is over."""
    console = Console()
    if output != "table" or not is_animated(console):
        await _print_changes(look, output)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            report = await look()
            live.update(Text.from_ansi(table_of(report, console.width)), refresh=True)
            if report.state.is_over:
                return
            await trio.sleep(SECONDS)


async def _print_changes(look: Look, output: str) -> None:
    """Print a line for each change: words, or a document as JSON or YAML."""
    told = None
    while True:
        report = await look()
        text = _text(report, output)
        if text != told:
            told = text
            click.echo(text)
        if report.state.is_over:
            return
        await trio.sleep(SECONDS)


def _text(report: Report, output: str) -> str:
    match output:
        case "json":
            return orjson.dumps(report.document).decode()
        case "yaml":
            import yaml

            plain = orjson.loads(orjson.dumps(report.document))
            return "---\n" + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip("\n")
        case _:
            return report.line
