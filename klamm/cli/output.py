"""The output of commands: tables that fit the terminal, and one form of JSON and YAML everywhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import IO, Any, Final

import click
import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from rich.cells import cell_len

from klamm.cli.streams import is_dumb_terminal
from transport.messages import PartitionState
from transport.metadata import LEADER_DURING_DELETE, NO_EPOCH

_NARROWEST: Final = 8
_CONTROLS: Final = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0))}


class PartitionRow(Struct):
    """A partition in the form that every document has. The leader is null if there is none, or during a deletion."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader: int | None
    isr: tuple[int, ...]
    leader_epoch: int | None
    controller_epoch: int | None
    partition_state: str

    @classmethod
    def of(cls, state: PartitionState) -> PartitionRow:
        """Return the row of a partition."""
        return PartitionRow(
            state.topic,
            state.partition,
            state.replicas,
            state.adding_replicas,
            state.removing_replicas,
            known_leader(state.leader),
            state.isr,
            None if state.leader_epoch == NO_EPOCH else state.leader_epoch,
            None if state.controller_epoch == NO_EPOCH else state.controller_epoch,
            _phase(state),
        )


def known_leader(leader: int) -> int | None:
    """Return the leader of a partition, None if it has none."""
    return leader if leader >= 0 else None


def partition_json(state: PartitionState) -> dict[str, Any]:
    """Return a partition in the JSON form that every command prints."""
    return asdict(PartitionRow.of(state))


def _phase(state: PartitionState) -> str:
    if state.leader >= 0:
        return "OnlinePartition"
    if state.leader == LEADER_DURING_DELETE:
        return "NonExistentPartition"
    return "NewPartition" if state.leader_epoch == NO_EPOCH else "OfflinePartition"


def print_json(value: object) -> None:
    """Print a document as JSON, indented."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_yaml(value: object) -> None:
    """Print a document as YAML, with the same keys in the same order as JSON."""
    import yaml

    click.echo(yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True), nl=False)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    narrow: bool = False,
    numbers: Collection[str] = (),
    room: int | None = None,
    headers: bool = True,
    file: IO[str] | None = None,
) -> None:
    """Print a plain table; cells are folded and never cut.

    rich measures and folds the cells. Its own tables fold names before sentences, and take 60 times as long for the
    partitions of a large cluster.

    Args:
        columns: The heads.
        rows: The cells. A column of integers is aligned to the right.
        narrow: Separate columns by one space instead of two.
        numbers: The heads of more columns to align to the right.
        room: The greatest width; by default that of the terminal. On a pipe the width is unlimited, so that programs
            read whole names.
        headers: Whether to print the heads.
        file: Where to print; by default stdout.
    """
    values = [list(row) for row in rows]
    cells = [[show(cell) for cell in row] for row in values]
    by_column = list(zip(columns, *cells, strict=True))
    natural = [max(map(cell_len, column)) for column in by_column]
    words = [max(cell_len(word) for cell in column for word in cell.split() or [""]) for column in by_column]
    gap = " " if narrow else "  "
    gaps = len(gap) * (len(columns) - 1)
    widths = _fitting(natural, words, (_room() if room is None else room) - gaps)
    counts = [_are_counts(column) for column in zip(*values, strict=True)] or [False] * len(columns)
    to_right = [is_count or name in numbers for name, is_count in zip(columns, counts, strict=True)]
    lines = [line for row in cells for line in _folded(row, widths, to_right, gap)]
    if headers:
        head = [bold(line) for line in _folded(columns, widths, to_right, gap)]
        lines = [*head, "─" * (sum(widths) + gaps), *lines]
    if lines:
        click.echo("\n".join(lines), file=file)


def bold(text: str, colour: str | None = None) -> str:
    """Return a text in bold, or unchanged for a terminal that can only print lines."""
    return text if is_dumb_terminal() else click.style(text, bold=True, fg=colour)


def _are_counts(column: Sequence[object]) -> bool:
    """Return whether a column has integers and nothing else, except where a value is unknown."""
    kinds = {type(value) for value in column}
    return int in kinds and kinds <= {int, type(None)}


def _room() -> int:
    """Return the number of columns to print in."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return sys.maxsize


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


def _folded(row: Sequence[str], widths: Sequence[int], to_right: Sequence[bool], gap: str) -> Iterator[str]:
    """Yield the lines of a row, broken between words if possible."""
    folded = [_broken(cell, width) for cell, width in zip(row, widths, strict=True)]
    for line in zip_longest(*folded, fillvalue=""):
        yield gap.join(map(_aligned, line, widths, to_right)).rstrip()


def _broken(cell: str, width: int) -> list[str]:
    if cell_len(cell) <= width:
        return [cell]
    from rich.console import Console
    from rich.text import Text

    return [line.plain.rstrip() for line in Text(cell).wrap(Console(), width)]


def _aligned(cell: str, width: int, to_right: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if to_right else cell + blanks


def show(cell: object) -> str:
    """Return a cell's text: a list of brokers as 1,2,3, an empty value as a dash."""
    if isinstance(cell, tuple | list):
        return ",".join(map(str, cell)) or "-"
    return "-" if cell is None else harmless(str(cell)) or "-"


def harmless(text: str) -> str:
    """Return a text with its control characters escaped: with them a rack, for example, could command the terminal."""
    return text.translate(_CONTROLS)
