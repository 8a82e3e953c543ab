"""Bad rows: what may be wrong with one, and how it is refused or counted."""

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
    """What may be wrong with a row. Of several faults of a row the first in this list counts."""

    COLUMN = "unknown column"
    SHAPE = "not readable"
    TOPIC = "not a topic name"
    PARTITION = "not a partition number"
    BROKER = "not a broker id"
    TWICE_IN_LIST = "a replica twice"
    NO_REPLICAS = "no replicas"
    NUMBER = "not a size or rate"
    UNKNOWN = "load of a partition that the snapshot lacks"
    REPEATED = "row twice"


AMONG_OTHERS: Final = {Fault.UNKNOWN: "is not in the snapshot", Fault.REPEATED: "is there twice"}
"""What is wrong with a row that is good by itself."""


@frozen(order=True)
class Bad:
    """Rows of one file that have the same fault.

    Attributes:
        row: The first of them.
        detail: What is wrong there, in words.
        fault: What they have in common.
        rows: How many they are.
    """

    row: int
    detail: str
    fault: Fault = field(order=False)
    rows: int = field(order=False)


@frozen
class Place:
    """A file, and what its rows are called: lines as an editor counts them, entries of a list, or rows of a table."""

    file: Path
    unit: str


def to_refuse(bad: Iterable[Bad], on_bad_rows: OnBadRows) -> list[Bad]:
    """Return the bad rows of a file that are to be refused, the first one first.

    An unknown column is no fault of a row: nobody knows what all of them say there, so none is left out for it.
    """
    found = sorted(bad)
    columns = [b for b in found if b.fault is Fault.COLUMN]
    return columns or (found if on_bad_rows is OnBadRows.REFUSE else [])


def settle(place: Place, bad: Iterable[Bad], on_bad_rows: OnBadRows, set_aside: Counter[str]) -> None:
    """Refuse the bad rows of a file, or count them in `set_aside`.

    Raises:
        PlanError: There are some, and they are to be refused; it names the first one.
    """
    found = list(bad)
    if refused := to_refuse(found, on_bad_rows):
        first = f"{place.file}: {place.unit} {refused[0].row}: {refused[0].detail}"
        if refused[0].fault is Fault.COLUMN:
            raise PlanError(first)
        more = sum(b.rows for b in refused) - 1
        also = f" (and {more} more bad rows)" if more > 1 else " (and 1 more bad row)" if more else ""
        raise PlanError(f"{first}{also}: mend it, or leave such rows out with --set-aside-bad-rows")
    for b in found:
        set_aside[b.fault] += b.rows
