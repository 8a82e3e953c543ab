"""The files of a plan in a folder that only Spark can reach: made by workers, and put there one by one from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from spark_bridge.engines.spark import OnSpark, blocks_in
from spark_bridge.model.block import Block
from spark_bridge.remote_folder import RemoteFolder

WriteInto = Callable[[Path, int, Block], object]
"""Writes a block's files into a folder of the machine where it runs, given the block's number."""


def write_remote_plan(engine: OnSpark, write_into: WriteInto, target: RemoteFolder) -> None:
    """Make each block's files on workers, and give them their names in `target` when all of them exist.

    Args:
        engine: The engine with the blocks, in a folder in the file system of `target`.
        write_into: Writes the files of a block.
        target: The folder for the files.

    Raises:
        PlanError: A file cannot be written.
    """

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, block in blocks_in(batches):
            with TemporaryDirectory(prefix="klamm-plan-") as name:
                write_into(Path(name), number, block)
                for file in sorted(Path(name).iterdir()):
                    columns = {"name": [file.name], "content": [file.read_bytes()]}
                    yield pa.RecordBatch.from_pydict(columns)

    assert isinstance(engine.folder, RemoteFolder)
    made_url, whole = (engine.folder / "made").url, engine.folder / "whole"
    engine.frame.mapInArrow(made, "name string, content binary").write.parquet(made_url)
    whole.claim()
    with TemporaryDirectory(prefix="klamm-plan-") as name:
        for row in engine.spark.read.parquet(made_url).toLocalIterator():
            file = Path(name) / row["name"]
            file.write_bytes(row["content"])
            whole.put(file)
            file.unlink()
    whole.move_files(target)
