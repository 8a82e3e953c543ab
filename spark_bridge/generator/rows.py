"""Generated partitions as input rows of planning, made in this process or by Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from spark_bridge.generator.cluster import GeneratedCluster
from spark_bridge.generator.shapes import Shape
from spark_bridge.model.block import BYTES, BYTES_IN, NOBODY, Block
from spark_bridge.model.brokers import Brokers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = (
    "topic string, partition int, replicas array<int>, leader int, bytes bigint, bytes_in bigint, bytes_out bigint"
)


def rows_of(block: Block, brokers: Brokers) -> pa.RecordBatch:
    """Return a block's partitions before a plan, with broker ids, and led by the first replica."""
    replicas = block.before != NOBODY
    ends = np.concatenate([[0], np.cumsum(replicas.sum(axis=1))]).astype(np.int32)
    ids = brokers.ids[block.before]
    columns = {
        "topic": pa.array(block.topics, pa.string()).take(pa.array(block.topic)),
        "partition": pa.array(block.partition),
        "replicas": pa.ListArray.from_arrays(pa.array(ends), pa.array(ids[replicas])),
        "leader": pa.array(ids[:, 0]),
        "bytes": pa.array(block.weights[:, BYTES]),
        "bytes_in": pa.array(block.weights[:, BYTES_IN]),
        "bytes_out": pa.array(block.bytes_out),
    }
    return pa.RecordBatch.from_pydict(columns)


def generated_rows(spark: SparkSession, shape: Shape) -> DataFrame:
    """Return a cluster's partitions; workers make each block on demand. Columns as in `COLUMNS`."""

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cluster = _cluster(shape)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield rows_of(cluster.block(number), cluster.brokers)

    blocks = GeneratedCluster(shape).count_of_blocks
    return spark.range(0, blocks, 1, blocks).mapInArrow(make, COLUMNS)


@lru_cache(maxsize=1)
def _cluster(shape: Shape) -> GeneratedCluster:
    """Return a cluster, cached in a worker: what all blocks have in common takes longer to compute than one block."""
    return GeneratedCluster(shape)
