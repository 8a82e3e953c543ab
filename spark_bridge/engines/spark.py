"""The engine on Spark: every block is one binary value of a DataFrame, and a step is one job over them.

Only the DataFrame API is used, so that it works on one machine, on a cluster and over Spark Connect alike. What a step
makes is kept by Spark until the next step is done; a worker that dies loses blocks, which others make again from their
predecessors. Tallies are added up by workers; one row comes to the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import reduce

import numpy as np
import pyarrow as pa
from attrs import define
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_bridge.engines.engine import Accept, Texts
from spark_bridge.kernel.tally import Query, Step, Tally, add
from spark_bridge.model.block import Block, count_of_blocks
from spark_bridge.model.packing import pack
from spark_bridge.model.summary import Flow
from spark_bridge.outputs.flows import FLOWS, FlowsOf

_BLOCKS = "number int, state binary, tally binary"


@define(eq=False)
class OnSpark:
    """Blocks in a Spark cluster.

    Attributes:
        frame: Rows of `number`, `state` and `tally`, which Spark keeps.
        blocks: How many blocks there are.
    """

    frame: DataFrame
    blocks: int
    name: str = "spark"

    @classmethod
    def of(cls, partitions: DataFrame, count: int, ids: NDArray[np.int32]) -> OnSpark:
        """Deal partitions into blocks.

        Args:
            partitions: Rows of the canonical columns.
            count: How many rows these are.
            ids: All brokers' ids, in order.
        """
        blocks = count_of_blocks(count)
        name = sql.concat(sql.col("topic"), sql.lit("-"), sql.col("partition").cast("string"))
        numbered = partitions.withColumn("number", (sql.crc32(name) % blocks).cast("int"))

        def packed(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
            state = pack(rows.drop_columns(["number"]), ids).to_bytes()
            return pa.table({"number": pa.array([key[0].as_py()], pa.int32()), "state": [state], "tally": [b""]})

        return cls.from_blocks(numbered.groupBy("number").applyInArrow(packed, _BLOCKS), blocks)

    @classmethod
    def from_blocks(cls, frame: DataFrame, blocks: int) -> OnSpark:
        """Take blocks as they are; Spark makes them now and keeps them."""
        kept = frame.persist()
        kept.count()
        return cls(kept, blocks)

    def step(self, step: Step, accept: Accept | None = None) -> Tally | None:
        """Replace every block by what the step makes of it, if the sum of the tallies is accepted."""

        def stepped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, block in _blocks_in(batches):
                done, tally = step(number, block)
                yield _batch(number, done.to_bytes(), pickle.dumps(tally))

        made = self.frame.mapInArrow(stepped, _BLOCKS).persist()
        total = _sum(made)
        if accept is not None and not accept(total):
            made.unpersist()
            return None
        self.frame.unpersist()
        self.frame = made
        return total

    def ask(self, query: Query) -> Tally:
        """Return the sum of a query's tallies over all blocks."""

        def asked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, block in _blocks_in(batches):
                yield _batch(number, b"", pickle.dumps(query(number, block)))

        return _sum(self.frame.mapInArrow(asked, _BLOCKS))

    def texts(self, query: Texts, most: int) -> list[str]:
        """Return what a query says of blocks, not more than so many lines."""

        def said(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, block in _blocks_in(batches):
                yield pa.RecordBatch.from_pydict({"text": pa.array(list(query(number, block))[:most], pa.string())})

        return [row["text"] for row in self.frame.mapInArrow(said, "text string").limit(most).collect()]

    def flows(self, query: FlowsOf, most: int) -> tuple[list[Flow], int]:
        """Return the greatest flows between brokers, most bytes first, and how many there are more."""

        def flowing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, block in _blocks_in(batches):
                yield query(block)

        schema = ", ".join(f"{name} bigint" for name in FLOWS.names)
        pairs = self.frame.mapInArrow(flowing, schema).groupBy("source", "destination")
        summed = pairs.agg(sql.sum("replicas").alias("replicas"), sql.sum("bytes").alias("bytes")).persist()
        order = [sql.desc("bytes"), sql.desc("replicas"), sql.asc("source"), sql.asc("destination")]
        rows = summed.orderBy(*order).limit(most).collect()
        left = summed.count() - len(rows)
        summed.unpersist()
        return [Flow(**row.asDict()) for row in rows], left

    def close(self) -> None:
        """Let Spark forget the blocks."""
        self.frame.unpersist()


def blocks_on(spark: SparkSession, numbers: int, make: Callable[[int], Block]) -> DataFrame:
    """Return blocks that workers make by number, as rows for `OnSpark.from_blocks`."""

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield _batch(number, make(number).to_bytes(), b"")

    return spark.range(0, numbers, 1, numbers).mapInArrow(made, _BLOCKS)


def _blocks_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Block]]:
    for batch in batches:
        for number, state in zip(batch["number"], batch["state"], strict=True):
            yield number.as_py(), Block.from_bytes(state.as_buffer())


def _batch(number: int, state: bytes, tally: bytes) -> pa.RecordBatch:
    columns = {"number": pa.array([number], pa.int32()), "state": [state], "tally": [tally]}
    return pa.RecordBatch.from_pydict(columns)


def _sum(frame: DataFrame) -> Tally:
    """Add tallies up where they are, then those sums in one place."""

    def summed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tallies = (pickle.loads(t.as_buffer()) for batch in batches for t in batch["tally"])  # noqa: S301 (our own)
        nothing: Tally = {}
        yield pa.RecordBatch.from_pydict({"tally": [pickle.dumps(reduce(add, tallies, nothing))]})

    parts = frame.select("tally").mapInArrow(summed, "tally binary")
    # Not `coalesce`, which would have one task do everything before it as well.
    (row,) = parts.repartition(1).mapInArrow(summed, "tally binary").collect()
    total: Tally = pickle.loads(row["tally"])  # noqa: S301 (our own)
    return total
