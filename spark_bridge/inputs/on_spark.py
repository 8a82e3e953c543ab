"""Reading a cluster on Spark, at any size: what comes to this process grows with the brokers, not the partitions.

DataFrames only, so that it works through Spark Connect, too.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from attrs import evolve, field, frozen
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 (the name that all of PySpark's documentation uses)

from spark_bridge.inputs.brokers import all_brokers
from spark_bridge.inputs.columns import BROKER_COLUMNS, MEASURES, ROW
from spark_bridge.inputs.faults import AMONG_OTHERS, Bad, Fault, settle
from spark_bridge.inputs.files import Snapshot, broker_parts, load_parts, open_snapshot
from spark_bridge.inputs.formats import Format, format_of
from spark_bridge.inputs.frames import OF_LOADS, OF_PARTITIONS, Frame, open_frame, open_parquet
from spark_bridge.inputs.sources import OnBadRows, Sources
from spark_bridge.inputs.text import json_table
from spark_bridge.inputs.workers import BROKER, FILE
from spark_bridge.model.brokers import Brokers

_NAME = ("topic", "partition")
_SAID = {name: f"new_{name}" for name in MEASURES}


@frozen
class InputsOnSpark:
    """A cluster as planning takes it in, its partitions on Spark.

    Attributes:
        brokers: All of them.
        partitions: The columns of `read.CANONICAL`, in no order, each partition there once.
        set_aside: How many rows of the inputs were left out, by what was wrong with them.
        unknown_loads: How many partitions have no known size.
    """

    brokers: Brokers
    partitions: DataFrame
    set_aside: dict[str, int]
    unknown_loads: int
    _kept: DataFrame = field(repr=False)

    def release(self) -> None:
        """Let Spark forget the partitions, which it keeps from this reading on.

        What is made of them is to be there by then: otherwise Spark reads the files once more.
        """
        self._kept.unpersist()


def read_cluster_on_spark(spark: SparkSession, sources: Sources, scratch: Path) -> InputsOnSpark:
    """Read all of the sources and join the loads to the partitions; say the same as `read.read_cluster`.

    Args:
        spark: The session; its workers see the files of the sources under the same names.
        sources: What to read.
        scratch: A folder that workers see, too. Inputs that are one document are written there, a row a row.

    Raises:
        PlanError: A file cannot be read or is not what it should be, or a row is bad and is to be refused.
    """
    aside: Counter[str] = Counter()
    snapshot = open_snapshot(sources.snapshot)
    frame = _open_snapshot(spark, sources.snapshot, snapshot, scratch / "snapshot")
    kept = _blamed(_numbered(frame), F.col("nth") > 1).persist()
    try:
        _settle(frame, kept, sources.on_bad_rows, aside)
        _collect_brokers(frame, kept, snapshot)
        unknown = [F.lit(None).cast("bigint").alias(name) for name in MEASURES]
        partitions = kept.where(F.col("fault").isNull()).select(*_NAME, "replicas", "leader", *unknown)
        assigned = partitions.select(F.explode("replicas")).distinct().collect()
        added = None if sources.brokers is None else broker_parts(sources.brokers)
        brokers = all_brokers(snapshot.broker_parts(), added, [id_ for [id_] in assigned])
        for n, path in enumerate(sources.loads):
            frame = _open_loads(spark, path, scratch / f"loads-{n}")
            joined = _joined(partitions, frame).persist()
            try:
                _settle(frame, joined, sources.on_bad_rows, aside)
            finally:
                kept.unpersist()
                kept = joined
            partitions = _updated(joined)
        return InputsOnSpark(brokers, partitions, dict(aside), partitions.where("bytes IS NULL").count(), kept)
    except BaseException:
        kept.unpersist()
        raise


def _open_snapshot(spark: SparkSession, path: Path, snapshot: Snapshot, scratch: Path) -> Frame:
    form = format_of(path)
    if form is Format.PARQUET:
        return open_parquet(spark, snapshot.parts, OF_PARTITIONS)
    return open_frame(spark, snapshot.parts[0], form, OF_PARTITIONS, scratch)


def _open_loads(spark: SparkSession, path: Path, scratch: Path) -> Frame:
    form, parts = format_of(path), load_parts(path)
    if form is Format.PARQUET:
        return open_parquet(spark, parts, OF_LOADS)
    return open_frame(spark, parts[0], form, OF_LOADS, scratch)


def _numbered(frame: Frame) -> DataFrame:
    """Give the rows of each partition numbers in the order of the files, `nth`. Notes belong to no partition."""
    of_partition = Window.partitionBy(*_NAME)
    rows = frame.checked
    if frame.of_replicas:
        rows = rows.withColumns({name: F.max(name).over(of_partition) for name in MEASURES})
    return rows.withColumn("nth", F.row_number().over(of_partition.orderBy(FILE, ROW)))


def _joined(partitions: DataFrame, frame: Frame) -> DataFrame:
    """Put loads beside the partitions they are about; those about none, and notes, stay alone."""
    said = _numbered(frame).withColumnsRenamed(_SAID)
    # Joined by hash: both sides would be sorted by name otherwise.
    both = partitions.join(said.hint("shuffle_hash"), [*_NAME], "full")
    repeated = F.expr("false") if frame.of_replicas else F.col("nth") > 1
    return _blamed(both, repeated, F.col("replicas").isNull())


def _updated(joined: DataFrame) -> DataFrame:
    """Return each partition with what loads say of it now, else what was known before."""
    measures = [F.coalesce(_SAID[name], name).alias(name) for name in MEASURES]
    rows = joined.where(F.col("fault").isNull() & (F.coalesce("nth", F.lit(1)) == 1))
    return rows.select(*_NAME, "replicas", "leader", *measures)


def _blamed(rows: DataFrame, repeated: Column, unknown: Column | None = None) -> DataFrame:
    """Write a fault that shows only among others into the row, as a note has it."""
    fault = F.when(F.col("fault").isNotNull(), F.col("fault"))
    if unknown is not None:
        fault = fault.when(unknown, F.lit(str(Fault.UNKNOWN)))
    fault = fault.when(repeated, F.lit(str(Fault.REPEATED)))
    return rows.withColumn("fault", fault)


def _settle(frame: Frame, rows: DataFrame, on_bad_rows: OnBadRows, aside: Counter[str]) -> None:
    """Refuse the bad rows of the first file that has some, or count all of them.

    Raises:
        PlanError: There are some, and they are to be refused.
    """
    by_file: dict[str, list[Bad]] = {}
    for file, fault, count, (row, detail) in _faults(rows).collect():
        by_file.setdefault(file, []).append(Bad(row, detail, Fault(fault), count))
    for file in sorted(by_file):
        bad = by_file[file]
        if on_bad_rows is OnBadRows.REFUSE:
            # Only the first is named, so only that one's line has to be found.
            first = min(bad)
            [row] = frame.numbers([first.row]).values()
            bad = [evolve(first, row=row, rows=sum(b.rows for b in bad))]
        settle(frame.places[file], bad, on_bad_rows, aside)


def _faults(rows: DataFrame) -> DataFrame:
    """Return for each file and fault how many rows have it, and the first with what is wrong there."""
    name = F.concat_ws("-", *_NAME)
    detail = F.col("detail")
    for fault, words in AMONG_OTHERS.items():
        detail = F.when(F.col("fault") == str(fault), F.concat(name, F.lit(f" {words}"))).otherwise(detail)
    bad = rows.where(F.col("fault").isNotNull() & (F.col("fault") != BROKER))
    count = F.sum(F.coalesce("rows", F.lit(1)))
    return bad.groupBy(FILE, "fault").agg(count, F.min(F.struct(ROW, detail.alias("detail"))))


def _collect_brokers(frame: Frame, rows: DataFrame, snapshot: Snapshot) -> None:
    """Take what lines of a snapshot say of brokers out of its notes."""
    lines = rows.where(F.col("fault") == BROKER).select(ROW, "detail").orderBy(ROW).collect()
    if lines:
        numbers = frame.numbers(row for row, _ in lines)
        snapshot.brokers.append(json_table([line for _, line in lines], list(numbers.values()), BROKER_COLUMNS))
