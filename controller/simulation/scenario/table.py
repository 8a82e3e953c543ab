"""An outcome as people read it: what happened and what became of each partition, row by row."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from controller.move_rows import COLUMNS, cells
from controller.simulation.scenario.outcome import Happening, Outcome, Row

WIDTH: Final = 80

_HEADER: Final = ("time", "step", "by")


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield the lines of a table no wider than 80 columns, and a summary."""
    entries = outcome.chronicle.entries
    names = list(dict.fromkeys(_partition(row) for row in outcome.chronicle.rows()))
    rows = [_HEADER + COLUMNS, *(_cells(row) for row in outcome.chronicle.rows())]
    if len(names) > 1:
        # Which controller it was gives way to which partition.
        rows = [("time", "partition", "step", *COLUMNS)]
        rows += [(*_cells(row)[:1], _partition(row), row.round, *cells(row.state)) for row in outcome.chronicle.rows()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = iter([_line(row, widths) for row in rows])
    header = next(texts)
    yield header
    yield "─" * len(header)
    for entry in entries:
        if isinstance(entry, Row):
            yield next(texts)
        else:
            yield from _happening(entry)
    yield from _summary(outcome)


def _partition(row: Row) -> str:
    return f"{row.state.topic}-{row.state.partition}"


def _cells(row: Row) -> tuple[str, ...]:
    return (_time(row.time), row.round, str(row.controller_id), *cells(row.state))


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    time, *others = row
    padded = [time.rjust(widths[0]), *(cell.ljust(width) for cell, width in zip(others, widths[1:], strict=True))]
    return " ".join(padded).rstrip()


def _happening(happening: Happening) -> list[str]:
    text = f"{_time(happening.time)} > {happening.text}"
    return textwrap.wrap(text, WIDTH, subsequent_indent="        ", break_long_words=False)


def _summary(outcome: Outcome) -> Iterator[str]:
    chronicle = outcome.chronicle
    met = chronicle.expectations - len(chronicle.misses)
    yield f"{outcome.seconds:.1f} s of cluster time with seed {outcome.seed}: trace {outcome.trace.digest}"
    yield f"{outcome.acknowledged} records acknowledged; {met} of {chronicle.expectations} expectations met"
