"""The output of commands: tables that fit the terminal, and one form of JSON and YAML everywhere."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

import click
import orjson

from klamm.cli.streams import is_dumb_terminal
from transport.messages import PartitionState
from transport.metadata import LEADER_DURING_DELETE, NO_EPOCH

UNLIMITED: Final = sys.maxsize
"""The width of a table that is not printed on a terminal."""

_NARROWEST: Final = 8


def partition_json(state: PartitionState) -> dict[str, Any]:
    """Return a partition in the JSON form that every command prints."""
    return {
        "topic": state.topic,
        "partition": state.partition,
        "replicas": state.replicas,
        "adding_replicas": state.adding_replicas,
        "removing_replicas": state.removing_replicas,
        "leader": state.leader,
        "isr": state.isr,
        "leader_epoch": state.leader_epoch,
        "controller_epoch": state.controller_epoch,
        "partition_state": _phase(state),
    }


def _phase(state: PartitionState) -> str:
    if state.leader >= 0:
        return "OnlinePartition"
    if state.leader == LEADER_DURING_DELETE:
        return "NonExistentPartition"
    return "NewPartition" if state.leader_epoch == NO_EPOCH else "OfflinePartition"


def print_json(value: object) -> None:
    """Print JSON, indented."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def print_yaml(value: object) -> None:
    """Print YAML, with the same keys in the same order as JSON."""
    import yaml

    plain = orjson.loads(orjson.dumps(value))
    click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)


def print_document(value: object, output: str) -> None:
    """Print a value as `output` says: json or yaml."""
    {"json": print_json, "yaml": print_yaml}[output](value)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, narrow: bool = False) -> None:
    """Print a plain table; cells are folded and never cut. A `narrow` one has one space between columns, not two.

    It is at most as wide as the terminal. On a pipe its width is unlimited, so that programs read whole names.
    """
    cells = [[show(cell) for cell in row] for row in rows]
    by_column = list(zip(columns, *cells, strict=True))
    natural = [max(map(len, column)) for column in by_column]
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in by_column]
    gap = " " if narrow else "  "
    widths = _fitting(natural, words, _room() - len(gap) * (len(columns) - 1))
    lines = [line for row in cells for line in _folded(row, widths, gap)]
    head = [line if is_dumb_terminal() else click.style(line, bold=True) for line in _folded(columns, widths, gap)]
    click.echo("\n".join([*head, "─" * (sum(widths) + len(gap) * (len(columns) - 1)), *lines]))


def _room() -> int:
    """Return the number of columns to print in."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return UNLIMITED


def _fitting(widths: Sequence[int], words: Sequence[int], room: int) -> list[int]:
    """Return widths that fit. The widest columns shrink first, and below a whole word only if necessary."""
    fitting = list(widths)
    for floors in (words, [_NARROWEST] * len(widths)):
        while sum(fitting) > room:
            spare = [width if width > floor else 0 for width, floor in zip(fitting, floors, strict=True)]
            if not any(spare):
                break
            fitting[spare.index(max(spare))] -= 1
    return fitting


def _folded(row: Sequence[str], widths: Sequence[int], gap: str) -> Iterator[str]:
    """Yield the lines of a row, broken between words if possible."""
    folded = [_broken(cell, width) for cell, width in zip(row, widths, strict=True)]
    for line in zip_longest(*folded, fillvalue=""):
        yield gap.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _broken(cell: str, width: int) -> list[str]:
    return [cell] if len(cell) <= width else textwrap.wrap(cell, width, break_on_hyphens=False)


def show(cell: object) -> str:
    """Return a cell's text: a list of brokers as 1,2,3, an empty value as a dash."""
    if isinstance(cell, tuple | list):
        return ",".join(map(str, cell)) or "-"
    return "-" if cell is None else str(cell) or "-"
