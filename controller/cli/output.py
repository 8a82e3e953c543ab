"""How commands print: tables that fit 80 columns, JSON and YAML in one form everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click
import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from transport.messages import PartitionState
from transport.metadata import LEADER_DURING_DELETE, NO_EPOCH

UNLIMITED: Final = 10_000
"""Columns of a table that nobody reads on a terminal."""


def partition_json(state: PartitionState) -> dict[str, Any]:
    """Return a partition in the one JSON form that every command prints."""
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
    """Print a plain table; cells are folded and never cut. A `narrow` one leaves one space between columns, not two."""
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0 if narrow else 1, 0, 0))
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(show(cell) for cell in row))
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        # Whoever reads a pipe looks for whole names.
        console.width = UNLIMITED
    console.print(table)


def show(cell: object) -> str:
    """Return a cell's text: a list of brokers as 1,2,3, nothing as a dash."""
    if isinstance(cell, tuple | list):
        return ",".join(map(str, cell)) or "-"
    return "-" if cell is None else str(cell) or "-"
