"""Bad rows: their possible faults, and how they are rejected or counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

from attrs import field, frozen

from spark_bridge.errors import PlanError
from spark_bridge.inputs.sources import OnBadRows


class Fault(StrEnum):
    """The faults of a row. If a row has several, the first in this list counts."""

    COLUMN = "unknown column"
    SHAPE = "not readable"
    TOPIC = "not a topic name"
    PARTITION = "not a partition number"
    TOPIC_ID = "not a topic id"
    BROKER = "not a broker id"
    TWICE_IN_LIST = "duplicate replica"
    NO_REPLICAS = "no replicas"
    NUMBER = "not a size or rate"
    UNKNOWN = "load of a partition that the snapshot lacks"
    REPEATED = "duplicate row"


AMONG_OTHERS: Final = {Fault.UNKNOWN: "is not in the snapshot", Fault.REPEATED: "is a duplicate"}
"""Faults that a row has only in relation to other rows."""


@frozen(order=True)
class Bad:
    """Rows of one file that have the same fault.

    Attributes:
        row: The number of the first one.
        detail: What is wrong with it, in words.
        fault: Their fault.
        rows: The number of rows.
    """

    row: int
    detail: str
    fault: Fault = field(order=False)
    rows: int = field(order=False)


@frozen
class Place:
    """A file, and the name of its rows: lines as in an editor, entries of a list, or rows of a table."""

    file: Path
    unit: str


def to_refuse(bad: Iterable[Bad], on_bad_rows: OnBadRows) -> list[Bad]:
    """Return the bad rows of a file that must be rejected, the first one first.

    An unknown column is a fault of the whole file, so no row is set aside because of it.
    """
    found = sorted(bad)
    columns = [b for b in found if b.fault is Fault.COLUMN]
    return columns or (found if on_bad_rows is OnBadRows.REFUSE else [])


def settle(place: Place, bad: Iterable[Bad], on_bad_rows: OnBadRows, set_aside: Counter[str]) -> None:
    """Reject the bad rows of a file, or count them in `set_aside`.

    Raises:
        PlanError: There are bad rows that must be rejected; it names the first one.
    """
    found = list(bad)
    if refused := to_refuse(found, on_bad_rows):
        first = f"{place.file}: {place.unit} {refused[0].row}: {refused[0].detail}"
        if refused[0].fault is Fault.COLUMN:
            raise PlanError(first)
        more = sum(b.rows for b in refused) - 1
        also = f" (and {more} more bad rows)" if more > 1 else " (and 1 more bad row)" if more else ""
        raise PlanError(f"{first}{also}: correct it, or leave such rows out with --set-aside-bad-rows")
    for b in found:
        set_aside[b.fault] += b.rows
