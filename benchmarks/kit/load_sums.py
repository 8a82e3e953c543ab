"""The least that a planner does with its inputs: read them, join them, and sum the loads by broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_bridge.generator.files import LOADS, SNAPSHOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEY: Final = ["topic", "partition"]


def by_arrow(cluster: Path) -> dict[int, int]:
    """Return the bytes of each broker, summed in this process."""
    snapshot, loads = pq.read_table(cluster / SNAPSHOT), pq.read_table(cluster / LOADS, columns=[*_KEY, "bytes"])
    places = pa.array(np.arange(len(snapshot)))
    # Arrow cannot join tables that have lists, so the lists stay here and only their positions are joined.
    joined = snapshot.select(_KEY).append_column("place", places).join(loads, _KEY)
    sizes = np.zeros(len(snapshot), np.int64)
    sizes[joined["place"].to_numpy()] = joined["bytes"].to_numpy()
    lists = snapshot["replicas"].combine_chunks()
    held = np.bincount(lists.flatten(), np.repeat(sizes, np.diff(lists.offsets)))
    return {broker: int(size) for broker, size in enumerate(held) if size}


def by_spark(spark: SparkSession, cluster: Path) -> dict[int, int]:
    """Return the bytes of each broker, summed by Spark."""
    from pyspark.sql.functions import explode  # noqa: PLC0415 (the other one needs no PySpark)

    rows = spark.read.parquet(str(cluster / SNAPSHOT)).join(spark.read.parquet(str(cluster / LOADS)), _KEY)
    sums = rows.select(explode("replicas").alias("broker"), "bytes").groupBy("broker").sum("bytes")
    return dict(sums.collect())
