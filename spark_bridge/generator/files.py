"""A generated cluster as the files that planning reads: a snapshot, loads, and a table of brokers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_bridge.errors import PlanError
from spark_bridge.generator.cluster import GeneratedCluster
from spark_bridge.generator.shapes import ClusterShape
from spark_bridge.model.block import BYTES, BYTES_IN, NOBODY, Block
from spark_bridge.model.brokers import Brokers

SNAPSHOT: Final = "snapshot"
LOADS: Final = "loads"
BROKERS: Final = "brokers.csv"

_COLUMNS: Final = {
    SNAPSHOT: ["topic", "partition", "replicas", "leader"],
    LOADS: ["topic", "partition", "bytes", "bytes_in", "bytes_out"],
}


def write_cluster(shape: ClusterShape, folder: Path, on_written: Callable[[int], None]) -> None:
    """Write a cluster to a folder: `snapshot` and `loads`, which are folders of Parquet, and `brokers.csv`.

    Args:
        shape: The shape of the cluster.
        folder: The folder, which is created; it may exist if it is empty.
        on_written: Called with the number of partitions of each part that was written.

    Raises:
        PlanError: The folder is not empty, or cannot be written.
    """
    cluster = GeneratedCluster(shape)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise PlanError(f"{folder} is not empty: name another folder, or empty this one")
        _write_brokers(cluster.brokers, folder / BROKERS)
        for name in _COLUMNS:
            (folder / name).mkdir()
        for number, block in enumerate(cluster.blocks()):
            rows = pa.Table.from_batches([rows_of(block, cluster.brokers)])
            for name, columns in _COLUMNS.items():
                pq.write_table(rows.select(columns), folder / name / f"block-{number:05}.parquet")
            on_written(len(block))
    except OSError as error:
        raise PlanError(f"{folder}: {error.strerror or error}") from None


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


def _write_brokers(brokers: Brokers, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["id", "rack", "capacity", "disk"])
        table.writerows([broker.id, broker.rack or "", f"{broker.capacity:g}", broker.disk] for broker in brokers.rows)
