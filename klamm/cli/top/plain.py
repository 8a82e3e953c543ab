"""`klamm top` as lines, for a file, a pipe, or a terminal that can only print lines."""

from __future__ import annotations

import sys

import click

from klamm.cli.output import bold, print_table
from klamm.cli.top.board import tables
from klamm.cli.top.facts import controller_of, counts, moving
from klamm.cli.top.following import Look
from klamm.cli.units import moment

_LEFT_OUT = frozenset({"progress"})
"""The columns that say in a picture what another one says."""


def print_look(look: Look, where: str, *, is_wide: bool = False, headers: bool = True) -> None:
    """Print everything that a look has seen; `is_wide` folds no line."""
    if look.reading is None:
        click.echo(f"{moment(look.at_ms)}: {where} does not answer: {look.trouble}")
        return
    click.echo(f"{where}, {controller_of(look.reading)}, at {moment(look.at_ms)}")
    click.echo(", ".join(count.text for count in counts(look.reading)))
    click.echo(moving(look.reading))
    for line in look.reading.lacking:
        click.echo(line, err=True)
    for table in tables(look.reading, look.rollouts):
        if not table.rows and not (table.name == "Rollouts" and look.rollouts):
            continue
        click.echo(f"\n{bold(table.name)}")
        kept = [number for number, column in enumerate(table.columns) if column.name not in _LEFT_OUT]
        names = [table.columns[number].name for number in kept]
        rows = [[row.cells[number].text for number in kept] for row in table.rows]
        numbers = [column.name for column in table.columns if column.to_right]
        print_table(names, rows, numbers=numbers, room=sys.maxsize if is_wide else None, headers=headers)
