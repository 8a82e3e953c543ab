"""The machine-readable form of benchmarks: a line of JSON for each measured figure, in a file that the caller names.

`compare` sets `KLAMM_FIGURES` for the benchmarks that it runs. Without it nothing is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import asdict, frozen

VARIABLE: Final = "KLAMM_FIGURES"


@frozen
class Figure:
    """A measured value of a row, in a unit such as "s" or "bytes, resident". Less is better."""

    row: str
    unit: str
    value: float
    is_base: bool = False
    """Whether the benchmark has measured it in the tree with which it compares another one itself."""


def note(row: str, unit: str, value: float, *, is_base: bool = False) -> None:
    """Write a figure where the caller of the benchmark wants it; a rate is noted as the time of what is counted."""
    if path := os.environ.get(VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(Figure(row, unit, value, is_base))) + "\n")


def read(path: Path) -> Iterator[Figure]:
    """Yield the figures of a file; none if nothing was written."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        yield Figure(**json.loads(line))
