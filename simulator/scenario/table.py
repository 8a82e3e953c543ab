"""An outcome as a table for people: the events, and the states of each partition, row by row."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from controller.admin.move_rows import COLUMNS, cells
from simulator.scenario.outcome import CommitRow, PlayedEvent, ScenarioOutcome

WIDTH: Final = 80


def lines(outcome: ScenarioOutcome, *, headers: bool = True) -> Iterator[str]:
    """Yield the lines of a table no wider than 80 columns, with its heads or without, and a summary."""
    rows = outcome.chronicle.rows()
    table = _one_partition(rows) if len({_partition(row) for row in rows}) == 1 else _several_partitions(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    header, *texts = [_line(line, widths) for line in table]
    if headers:
        yield header
        yield "─" * len(header)
    rest = iter(texts)
    for entry in outcome.chronicle.entries:
        if isinstance(entry, CommitRow):
            yield next(rest)
        else:
            yield from _happening(entry, widths[0])
    yield from _summary(outcome)


def _one_partition(rows: Iterable[CommitRow]) -> list[tuple[str, ...]]:
    table = [(_time(row.time), row.round, str(row.controller_id), *cells(row.state)) for row in rows]
    return [("time", "step", "by", *COLUMNS), *table]


def _several_partitions(rows: Iterable[CommitRow]) -> list[tuple[str, ...]]:
    table = [(_time(row.time), _partition(row), row.round, *cells(row.state)) for row in rows]
    return [("time", "partition", "step", *COLUMNS), *table]


def _partition(row: CommitRow) -> str:
    return str(row.state.tp)


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    time, *others = row
    padded = [time.rjust(widths[0]), *(cell.ljust(width) for cell, width in zip(others, widths[1:], strict=True))]
    return " ".join(padded).rstrip()


def _happening(happening: PlayedEvent, indent: int) -> list[str]:
    text = f"{_time(happening.time).rjust(indent)} > {happening.text}"
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * (indent + 3), break_long_words=False)


def _summary(outcome: ScenarioOutcome) -> Iterator[str]:
    expected, missed = outcome.chronicle.expectations, len(outcome.chronicle.misses)
    yield f"{outcome.seconds:.1f} s of cluster time with seed {outcome.seed}, trace {outcome.trace.digest}"
    records = f"{outcome.acknowledged} record{_ending(outcome.acknowledged)} acknowledged"
    yield f"{records}; {expected} thing{_ending(expected)} expected, {missed or 'none'} missed"


def _ending(number: int) -> str:
    return "" if number == 1 else "s"
