"""The engine on Spark: each block is one binary value of a DataFrame, and a step is one job over them.

Only the DataFrame API is used, so that it works on one machine, on a cluster and over Spark Connect. The result of a
step is written to Parquet, in a folder that the workers share, and read by the next step. Since each round starts from
files, a worker that dies costs only its own tasks, and Spark's query plans, which it prints and compares at each step,
do not grow from round to round. Workers add tallies up; one row reaches the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np
import pyarrow as pa
from attrs import define
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession, functions as sql

from spark_bridge.engines.engine import Accept, Texts
from spark_bridge.inputs.dealing import from_bytes
from spark_bridge.kernel.flows import FLOWS, FlowsOf
from spark_bridge.kernel.tally import BlockStep, Query, Tally, add
from spark_bridge.model.block import Block
from spark_bridge.model.packing import pack
from spark_bridge.model.summary import Flow
from spark_bridge.remote_folder import SharedFolder, folder_url, remove_folder

_BLOCKS = "number int, state binary, tally binary"


@define(eq=False)
class OnSpark:
    """Blocks in a Spark cluster.

    Attributes:
        spark: The session.
        folder: The folder for the blocks; workers see it under the same name.
        blocks: The number of blocks.
        written: The number of times they were written.
    """

    spark: SparkSession
    folder: SharedFolder
    blocks: int
    written: int = 0
    name: str = "spark"

    @classmethod
    def of(
        cls, spark: SparkSession, folder: SharedFolder, dealt: DataFrame, blocks: int, ids: NDArray[np.int32]
    ) -> OnSpark:
        """Pack partitions into blocks.

        Args:
            spark: The session.
            folder: The folder for the blocks; workers see it under the same name.
            dealt: A row of `number` and `rows` for each block; a value of `rows` is many rows of the canonical columns.
            blocks: The number of blocks.
            ids: The ids of all brokers, in order.
        """

        def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number, rows in zip(batch["number"], batch["rows"], strict=True):
                    yield _batch(number.as_py(), pack(from_bytes(rows.as_buffer()), ids).to_bytes(), b"")

        return cls.from_blocks(spark, folder, dealt.mapInArrow(packed, _BLOCKS), blocks)

    @classmethod
    def from_blocks(cls, spark: SparkSession, folder: SharedFolder, frame: DataFrame, blocks: int) -> OnSpark:
        """Return an engine with the given blocks, which are written."""
        made = cls(spark, folder, blocks)
        made._write(frame, 0)
        return made

    @property
    def frame(self) -> DataFrame:
        """Return the blocks: rows of `number`, `state` and `tally`."""
        return self._read(self.written)

    def step(self, step: BlockStep, accept: Accept | None = None) -> Tally | None:
        """Replace each block by the result of a step, if the sum of the tallies is accepted."""

        def stepped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, block in blocks_in(batches):
                done, tally = step(number, block)
                yield _batch(number, done.to_bytes(), pickle.dumps(tally))

        new = self.written + 1
        self._write(self.frame.mapInArrow(stepped, _BLOCKS), new)
        total = _sum(self._read(new))
        if accept is not None and not accept(total):
            remove_folder(self._path(new))
            return None
        remove_folder(self._path(self.written))
        self.written = new
        return total

    def _path(self, number: int) -> SharedFolder:
        return self.folder / f"blocks-{number}"

    def _read(self, number: int) -> DataFrame:
        return self.spark.read.schema(_BLOCKS).parquet(folder_url(self._path(number)))

    def _write(self, frame: DataFrame, number: int) -> None:
        """Write blocks without compression or dictionaries, which do not help with unordered numbers."""
        writer = (
            frame.write.mode("overwrite").option("compression", "none").option("parquet.enable.dictionary", "false")
        )
        writer.parquet(folder_url(self._path(number)))

    def ask(self, query: Query) -> Tally:
        """Return the sum of a query's tallies over all blocks."""

        def asked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, block in blocks_in(batches):
                yield _batch(number, b"", pickle.dumps(query(number, block)))

        return _sum(self.frame.mapInArrow(asked, _BLOCKS))

    def texts(self, query: Texts, most: int) -> list[str]:
        """Return the lines of a query about all blocks, at most `most`."""

        def said(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, block in blocks_in(batches):
                yield pa.RecordBatch.from_pydict({"text": pa.array(list(query(number, block))[:most], pa.string())})

        return [row["text"] for row in self.frame.mapInArrow(said, "text string").limit(most).collect()]

    def flows(self, query: FlowsOf, most: int) -> tuple[list[Flow], int]:
        """Return the largest flows between brokers, most bytes first, and the number of other flows."""

        def flowing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, block in blocks_in(batches):
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
        """Remove the blocks."""
        remove_folder(self._path(self.written))


def blocks_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Block]]:
    """Yield the blocks of an engine's rows, each with its number."""
    for batch in batches:
        for number, state in zip(batch["number"], batch["state"], strict=True):
            yield number.as_py(), Block.from_bytes(state.as_buffer())


def _batch(number: int, state: bytes, tally: bytes) -> pa.RecordBatch:
    columns = {"number": pa.array([number], pa.int32()), "state": [state], "tally": [tally]}
    return pa.RecordBatch.from_pydict(columns)


def _sum(frame: DataFrame) -> Tally:
    """Add tallies up on the workers that hold them, then add these sums up in one task."""

    def summed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tallies = (pickle.loads(t.as_buffer()) for batch in batches for t in batch["tally"])  # noqa: S301 (our own)
        nothing: Tally = {}
        yield pa.RecordBatch.from_pydict({"tally": [pickle.dumps(reduce(add, tallies, nothing))]})

    parts = frame.select("tally").mapInArrow(summed, "tally binary")
    # `coalesce` would make a single task do all the preceding work as well.
    (row,) = parts.repartition(1).mapInArrow(summed, "tally binary").collect()
    total: Tally = pickle.loads(row["tally"])  # noqa: S301 (our own)
    return total
