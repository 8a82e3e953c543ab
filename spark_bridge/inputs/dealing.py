"""Rows dealt by the names of partitions, by Spark's workers, so that all rows about a partition meet in one place.

A worker that has checked rows cuts them by the hash of their names into one piece for each block. Spark transports the
pieces as binary values without decoding them, so it handles single rows only once, when it reads the files. All pieces
of one block meet in a worker, which joins them as `join` joins all rows in one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.inputs.checks import LOADS, PARTITIONS
from spark_bridge.inputs.columns import ROW
from spark_bridge.inputs.faults import Bad, Place
from spark_bridge.inputs.join import Joined
from spark_bridge.inputs.rows import Rows
from spark_bridge.inputs.workers import Batches, Tell
from spark_bridge.model.packing import hashes_of

_BAD: Final = pa.struct([("fault", pa.string()), ("rows", pa.int64()), ("row", pa.int64()), ("detail", pa.string())])
_BROKER: Final = pa.struct([("row", pa.int64()), ("line", pa.string())])

DEALT: Final = pa.schema(
    [
        ("number", pa.int32()),
        ("source", pa.int32()),
        ("file", pa.string()),
        ("rows", pa.binary()),
        ("bad", pa.list_(_BAD)),
        ("brokers", pa.list_(_BROKER)),
    ]
)
"""A piece with the good rows of a batch for block `number`, or, with number 0, its bad rows and lines about brokers.

The source is the number of the input: 0 is the snapshot, loads are numbered from 1.
"""

_BAD_IN: Final = pa.struct([("source", pa.int32()), ("file", pa.string()), *_BAD])

JOINED: Final = pa.schema(
    [
        ("number", pa.int32()),
        ("rows", pa.binary()),
        ("partitions", pa.int64()),
        ("unknown", pa.int64()),
        ("assigned", pa.list_(pa.int32())),
        ("bad", pa.list_(_BAD_IN)),
        ("brokers", pa.list_(_BROKER)),
    ]
)
"""A block's partitions as rows of `join.CANONICAL`, and the counts for the summary of its inputs."""

VALUES: Final = pa.schema([("number", pa.int32()), ("rows", pa.binary())])
"""Rows of any schema, as binary values."""


def to_bytes(table: pa.Table) -> bytes:
    """Encode rows as one binary value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    value: bytes = sink.getvalue().to_pybytes()
    return value


def from_bytes(value: pa.Buffer) -> pa.Table:
    """Decode the rows of a binary value."""
    return pa.ipc.open_stream(value).read_all()


def pieces(rows: pa.Table, into: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield `into` pieces of rows, numbered by the hashes of names; the order within a piece is that of the rows."""
    number = hashes_of(rows) % into
    order = np.argsort(number, kind="stable")
    sorted_rows, ends = rows.take(order), np.cumsum(np.bincount(number, minlength=into)).tolist()
    for n, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        yield n, sorted_rows.slice(start, end - start)


def deal(tell: Tell, source: int, into: int, batches: Batches) -> Batches:
    """Check the rows of a source, and cut them into pieces; yield rows of `DEALT`."""
    for told in tell(batches):
        rows = [{"number": n, "rows": to_bytes(piece)} for n, piece in pieces(told.checked.good, into) if len(piece)]
        if told.checked.bad or told.brokers:
            brokers = [{"row": row, "line": line} for row, line in told.brokers]
            rows.append({"number": 0, "bad": [_as_dict(bad) for bad in told.checked.bad], "brokers": brokers})
        about = {"source": source, "file": told.file}
        if rows:
            yield pa.RecordBatch.from_pylist([row | about for row in rows], DEALT)


def _as_dict(bad: Bad) -> dict[str, Any]:
    return {"fault": str(bad.fault), "rows": bad.rows, "row": bad.row, "detail": bad.detail}


def join_dealt(of_replicas: Sequence[bool], number: int, dealt: pa.Table) -> pa.Table:
    """Join the rows of one block; return a row of `JOINED`.

    Args:
        of_replicas: For each of the loads, whether a row is a replica of a partition.
        number: The number of the block.
        dealt: Its rows of `DEALT`, in any order.
    """
    snapshot, *loads = (_rows(dealt, n) for n in range(1 + len(of_replicas)))
    joined = Joined.of(snapshot)
    for rows, several in zip(loads, of_replicas, strict=True):
        joined.add(rows, one_each=not several)
    found = [
        {"source": n, "file": place.file.name, **_as_dict(bad)}
        for n, rows in enumerate((snapshot, *loads))
        for place, some in zip(rows.places, rows.bad, strict=True)
        for bad in some
    ]
    told = dealt.filter(pc.is_null(dealt["rows"])).to_pylist()
    row = {
        "number": number,
        "rows": to_bytes(joined.table()),
        "partitions": len(joined.partitions),
        "unknown": joined.unknown_loads(),
        "assigned": joined.assigned(),
        "bad": found + [{"source": t["source"], "file": t["file"], **bad} for t in told for bad in t["bad"]],
        "brokers": [broker for t in told for broker in t["brokers"]],
    }
    return pa.Table.from_pylist([row], JOINED)


def shared_out(into: int, batches: Batches) -> Batches:
    """Cut the rows of each value into pieces; takes and yields rows of `VALUES`."""
    for batch in batches:
        for value in batch["rows"]:
            for number, piece in pieces(from_bytes(value.as_buffer()), into):
                yield pa.RecordBatch.from_pylist([{"number": number, "rows": to_bytes(piece)}], VALUES)


def put_together(number: int, values: pa.Table) -> pa.Table:
    """Join the values of one number into one; takes and returns rows of `VALUES`."""
    tables = [from_bytes(value.as_buffer()) for value in values["rows"]]
    return pa.Table.from_pylist([{"number": number, "rows": to_bytes(pa.concat_tables(tables))}], VALUES)


def _rows(dealt: pa.Table, source: int) -> Rows:
    """Join the pieces of one source, file by file, in the order of the file's rows."""
    mine = dealt.filter(pc.and_(pc.equal(dealt["source"], source), pc.is_valid(dealt["rows"])))
    tables, places, ends, end = [(LOADS if source else PARTITIONS).empty_table()], [], [], 0
    for file in sorted(pc.unique(mine["file"]).to_pylist()):
        values = mine.filter(pc.equal(mine["file"], file))["rows"]
        table = pa.concat_tables([from_bytes(value.as_buffer()) for value in values])
        tables.append(table.take(np.argsort(table[ROW].to_numpy(), kind="stable")))
        places.append(Place(Path(file), ""))
        end += len(table)
        ends.append(end)
    return Rows(pa.concat_tables(tables).combine_chunks(), places, ends, [[] for _ in places])
