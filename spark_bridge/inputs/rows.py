"""The good rows of an input's files, joined, and the bad rows of each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from attrs import define
from numpy.typing import NDArray

from spark_bridge.inputs.checks import Checked
from spark_bridge.inputs.columns import ROW
from spark_bridge.inputs.faults import AMONG_OTHERS, Bad, Fault, Place, settle
from spark_bridge.inputs.sources import OnBadRows

if TYPE_CHECKING:
    # Spark's workers join rows, too, and do not have the modules that read documents.
    from spark_bridge.inputs.files import Part


@define
class Rows:
    """All good rows of one input, file by file, in their original order.

    Attributes:
        table: The rows.
        places: The files.
        ends: For each file, the number of rows up to its end.
        bad: For each file, the faults of its other rows.
    """

    table: pa.Table
    places: list[Place]
    ends: list[int]
    bad: list[list[Bad]]

    @classmethod
    def of(cls, parts: Sequence[Part], check: Callable[[pa.Table], Checked], schema: pa.Schema) -> Rows:
        """Read and check all rows; the good ones have `schema`.

        Raises:
            PlanError: A file cannot be read or has the wrong content.
        """
        good, bad, ends, end = [schema.empty_table()], [], [], 0
        for part in parts:
            checked = [check(raw) for raw in part.tables()]
            good.extend(c.good for c in checked)
            bad.append([b for c in checked for b in c.bad])
            end += sum(len(c.good) for c in checked)
            ends.append(end)
        return cls(pa.concat_tables(good).combine_chunks(), [part.place for part in parts], ends, bad)

    def blame(self, rows: NDArray[np.int64], fault: Fault) -> None:
        """Mark good rows as bad, given their fault and their ascending positions in `table`."""
        file = np.searchsorted(self.ends, rows, side="right")
        for n in np.unique(file).tolist():
            mine = rows[file == n]
            first = self.table.slice(int(mine[0]), 1).to_pylist()[0]
            detail = f"{first['topic']}-{first['partition']} {AMONG_OTHERS[fault]}"
            self.bad[n].append(Bad(first[ROW], detail, fault, len(mine)))

    def settle(self, on_bad_rows: OnBadRows, set_aside: Counter[str]) -> None:
        """Reject the bad rows of the first file that has any, or count all of them in `set_aside`.

        Raises:
            PlanError: There are bad rows that must be rejected.
        """
        for place, bad in zip(self.places, self.bad, strict=True):
            settle(place, bad, on_bad_rows, set_aside)
