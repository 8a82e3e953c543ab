"""Reading a cluster on Spark, at any size: the data that reaches this process grows with the number of brokers only.

It uses only DataFrames, so it works through Spark Connect, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 (the name that all of PySpark's documentation uses)
)
from pyspark.sql.pandas.types import from_arrow_schema

from spark_bridge.inputs.brokers import all_brokers
from spark_bridge.inputs.dealing import DEALT, JOINED, VALUES, deal, join_dealt, put_together, shared_out
from spark_bridge.inputs.faults import Bad, Fault, settle, to_refuse
from spark_bridge.inputs.files import Part, Snapshot, broker_parts, load_parts, open_snapshot
from spark_bridge.inputs.formats import Format, format_of
from spark_bridge.inputs.frames import OF_LOADS, OF_PARTITIONS, Frame, RowKind, open_frame, open_parquet
from spark_bridge.inputs.sources import OnBadRows, Sources
from spark_bridge.inputs.stand_ins import StandIns
from spark_bridge.inputs.text import LinesByKind
from spark_bridge.model.block import count_of_blocks
from spark_bridge.model.brokers import Brokers
from spark_bridge.remote_folder import SharedFolder, folder_url


@frozen
class InputsOnSpark:
    """The inputs of planning, joined, with partitions on Spark.

    Attributes:
        brokers: All brokers.
        dealt: A row of `number` and `rows` for each block; a value of `rows` is many rows of `join.CANONICAL`.
        blocks: The number of blocks.
        set_aside: The number of input rows that were set aside, by fault.
        unknown_loads: The number of partitions without a known size.
        cluster_id: The id of the cluster, None if it is not known.
    """

    brokers: Brokers
    dealt: DataFrame
    blocks: int
    set_aside: dict[str, int]
    unknown_loads: int
    cluster_id: str | None = None


def read_cluster_on_spark(
    spark: SparkSession, sources: Sources, scratch: SharedFolder, own: Path = Path()
) -> InputsOnSpark:
    """Read all sources and join the loads to the partitions, with the same errors as `read.read_cluster`.

    Args:
        spark: The session; its workers see the files of the sources under the same names.
        sources: The sources.
        scratch: A folder that workers see as well, for the partitions and for single documents converted to rows.
        own: A folder of this process for stand-ins of inputs that only Spark can reach; not needed without such inputs.

    Raises:
        PlanError: A file cannot be read or has the wrong content, or a bad row must be rejected.
    """
    near = StandIns(spark, own)
    with near.named():
        return _read(near, sources, scratch)


def _read(near: StandIns, sources: Sources, scratch: SharedFolder) -> InputsOnSpark:
    spark = near.spark
    aside: Counter[str] = Counter()
    path = near.path(sources.snapshot)
    snapshot = open_snapshot(path)
    frames = [_open(near, path, snapshot.parts, OF_PARTITIONS, scratch / "snapshot")]
    for n, source in enumerate(sources.loads):
        path = near.path(source)
        frames.append(_open(near, path, load_parts(path), OF_LOADS, scratch / f"loads-{n}"))
    # The count includes bad rows and lines about brokers, so it is right only if these are few.
    expected = count_of_blocks(frames[0].raw.count())
    joined = _joined(spark, frames, expected, scratch / "joined")
    bad = _bad_rows(joined)
    _settle(frames[0], bad.get(0, {}), sources.on_bad_rows, aside)
    _collect_brokers(frames[0], joined, snapshot)
    added = None if sources.brokers is None else broker_parts(near.path(sources.brokers, whole=True))
    partitions, unknown, assigned = _sums(joined)
    brokers = all_brokers(snapshot.broker_parts(), added, assigned)
    for n, frame in enumerate(frames[1:], 1):
        _settle(frame, bad.get(n, {}), sources.on_bad_rows, aside)
    dealt, blocks = joined.select("number", "rows"), count_of_blocks(partitions)
    if blocks != expected:
        dealt = deal_again(dealt, blocks)
    return InputsOnSpark(brokers, dealt, blocks, dict(aside), unknown, snapshot.cluster_id)


def _open(near: StandIns, path: Path, parts: Sequence[Part], kind: RowKind, scratch: SharedFolder) -> Frame:
    form = format_of(path)
    if form is Format.PARQUET:
        return open_parquet(near, parts, kind)
    return open_frame(near, parts[0], form, kind, scratch)


def _joined(spark: SparkSession, frames: Sequence[Frame], into: int, folder: SharedFolder) -> DataFrame:
    """Deal all rows into blocks, join each block's rows, and store the rows of `JOINED` in a folder."""
    parts = [
        frame.raw.mapInArrow(partial(deal, frame.tell, n, into), from_arrow_schema(DEALT))
        for n, frame in enumerate(frames)
    ]
    of_replicas = [frame.of_replicas for frame in frames[1:]]

    def joined(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        return join_dealt(of_replicas, key[0].as_py(), rows)

    # An empty row for each block, so that blocks without any rows exist as well.
    places = spark.createDataFrame([(n, 0, None, None, [], []) for n in range(into)], from_arrow_schema(DEALT))
    dealt = reduce(DataFrame.unionAll, parts, places)
    dealt.groupBy("number").applyInArrow(joined, from_arrow_schema(JOINED)).write.parquet(folder_url(folder))
    return spark.read.schema(from_arrow_schema(JOINED)).parquet(folder_url(folder))


def deal_again(dealt: DataFrame, into: int) -> DataFrame:
    """Deal rows of `VALUES` into another number of blocks."""

    def together(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        return put_together(key[0].as_py(), rows)

    cut = dealt.mapInArrow(partial(shared_out, into), from_arrow_schema(VALUES))
    return cut.groupBy("number").applyInArrow(together, from_arrow_schema(VALUES))


def _sums(joined: DataFrame) -> tuple[int, int, list[int]]:
    """Return the number of partitions, the number without a known size, and all ids that have a replica."""
    ids = F.array_distinct(F.flatten(F.collect_list("assigned")))
    (row,) = joined.agg(F.sum("partitions"), F.sum("unknown"), ids).collect()
    return row[0], row[1], row[2]


BadRows = dict[str, list[Bad]]


def _bad_rows(joined: DataFrame) -> dict[int, BadRows]:
    """Return, by source, file and fault, the number of bad rows, and the first one with its detail."""
    bad = joined.select(F.explode("bad").alias("bad")).select("bad.*")
    first = F.min(F.struct("row", "detail"))
    by_source: dict[int, BadRows] = {}
    for source, file, fault, count, (row, detail) in (
        bad.groupBy("source", "file", "fault").agg(F.sum("rows"), first).collect()
    ):
        by_source.setdefault(source, {}).setdefault(file, []).append(Bad(row, detail, Fault(fault), count))
    return by_source


def _settle(frame: Frame, by_file: BadRows, on_bad_rows: OnBadRows, aside: Counter[str]) -> None:
    """Reject the bad rows of the first file that has any, or count all of them.

    Raises:
        PlanError: There are bad rows that must be rejected.
    """
    for file in sorted(by_file):
        bad = by_file[file]
        if refused := to_refuse(bad, on_bad_rows):
            # Only the first one is named, so only its line must be found.
            [row] = frame.numbers([refused[0].row]).values()
            bad = [evolve(refused[0], row=row, rows=sum(b.rows for b in refused))]
        settle(frame.places[file], bad, on_bad_rows, aside)


def _collect_brokers(frame: Frame, joined: DataFrame, snapshot: Snapshot) -> None:
    """Add the brokers from lines of a snapshot to `snapshot`, and the id of the cluster."""
    lines = joined.select(F.explode("brokers").alias("said")).select("said.*").orderBy("row").collect()
    if lines:
        numbers = frame.numbers(row for row, _ in lines)
        snapshot.take_lines(LinesByKind.of([line for _, line in lines], list(numbers.values())))
