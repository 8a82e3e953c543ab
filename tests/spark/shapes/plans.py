"""Plans of an instance on each engine, within a bound of processor time."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Final

import pyarrow as pa
import pytest
from attrs import frozen

from spark_bridge.engines.engine import Engine
from spark_bridge.engines.in_process import InProcess
from spark_bridge.errors import PlanError
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.packing import blocks_of
from spark_bridge.model.summary import Summary
from spark_bridge.planning import plan_cluster, refuse_worse
from spark_bridge.summing import summarize
from tests.spark.kernel.instances import Instance
from tests.spark.session import SparkSession

ENGINES: Final = ("kernel", "blocks", "spark")
"""One block in this process, some blocks in it, and the same blocks on Spark."""

EngineOf = Callable[[Sequence[Block]], Engine]


class TookTooLong(BaseException):
    """A plan reached its bound of processor time. It is no Exception, so that no planner takes it for its own."""


@frozen
class ShapePlan:
    """The result of planning.

    Attributes:
        lists: The replicas of every partition, in the order of the instance.
        summary: What a report would say; None where the plan was refused before.
        refusal: What the planner said; None where there is a plan.
        cpu: Seconds of processor time.
        is_cut: Whether the bound on work ended the search.
        beside: Whether racks count what brokers keep that get nothing.
    """

    lists: tuple[tuple[int, ...], ...]
    summary: Summary | None
    refusal: str | None
    cpu: float
    is_cut: bool = False
    beside: bool = False

    @property
    def spares(self) -> bool:
        """Return whether the plan leaves racks as they are because disks have no room."""
        return self.summary is not None and self.summary.unrepaired > 0


def planned(given: Instance, blocks: Sequence[Block], engine_of: EngineOf) -> ShapePlan:
    """Plan an instance that was dealt into blocks."""
    began, engine, summary, refusal = process_time(), engine_of(blocks), None, None
    is_cut = beside = False
    try:
        made = plan_cluster(engine, given.brokers, given.goal, lambda _: None)
        is_cut, beside = made.bounds.is_cut, bool(made.bounds.terms.rests.any())
        summary = summarize(made, {}, 0)
        refuse_worse(summary, given.goal)
    except PlanError as refused:
        refusal = str(refused)
    cpu = process_time() - began
    lists = _lists_of(given, held_by(engine)) if refusal is None else ()
    engine.close()
    return ShapePlan(lists, summary, refusal, cpu, is_cut, beside)


def blocks_for(given: Instance, engine: str) -> list[Block]:
    """Deal an instance's partitions: into one block, or into two to five by the hash of their names.

    For Spark, every third is one block.
    """
    if engine == "kernel" or (engine == "spark" and given.seed % 3 == 0):
        return [given.block()]
    rows = table_of(given)
    with small_blocks(ceil(len(rows) / (2 + given.seed % 4))):
        return list(blocks_of(rows, given.brokers.ids))


@contextmanager
def small_blocks(size: int) -> Iterator[None]:
    """Deal partitions into blocks of about this size for the length of the `with`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spark_bridge.model.block.BLOCK_SIZE", max(1, size))
        yield


def table_of(given: Instance) -> pa.Table:
    """Return an instance's partitions as the rows of planning's inputs."""
    ids = given.brokers.ids.tolist()
    rate = pa.array(given.bytes_in, pa.int64())
    return pa.table(
        {
            "topic": pa.array([topic for topic, _ in given.names], pa.string()),
            "partition": pa.array([number for _, number in given.names], pa.int32()),
            "replicas": pa.array([[ids[b] for b in row] for row in given.replicas], pa.list_(pa.int32())),
            "bytes": pa.array(given.size, pa.int64()),
            "bytes_in": rate,
            "bytes_out": pa.array([2 * r for r in given.bytes_in], pa.int64()),
        }
    )


def in_process(blocks: Sequence[Block]) -> Engine:
    """Take blocks into this process."""
    return InProcess(list(blocks))


def on_spark(spark: SparkSession, folder: Path) -> EngineOf:
    """Return what takes blocks to Spark."""
    from spark_bridge.engines.spark import OnSpark  # noqa: PLC0415 (there may be no PySpark)

    def engine_of(blocks: Sequence[Block]) -> Engine:
        rows = [(n, bytearray(block.to_bytes()), bytearray()) for n, block in enumerate(blocks)]
        frame = spark.createDataFrame(rows, "number int, state binary, tally binary")
        return OnSpark.from_blocks(spark, folder, frame, len(blocks))

    return engine_of


def held_by(engine: Engine) -> list[Block]:
    """Return an engine's blocks, by number."""
    if isinstance(engine, InProcess):
        return engine.held
    from spark_bridge.engines.spark import OnSpark  # noqa: PLC0415 (there may be no PySpark)

    assert isinstance(engine, OnSpark)
    rows = engine.frame.select("number", "state").collect()
    return [Block.from_bytes(row["state"]) for row in sorted(rows, key=lambda row: row["number"])]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """End what takes more processor time.

    Raises:
        TookTooLong: It did.
    """

    def stop(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        raise TookTooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _lists_of(given: Instance, blocks: Sequence[Block]) -> tuple[tuple[int, ...], ...]:
    lists = {
        (block.topics[topic], int(number)): tuple(int(b) for b in after if b != NOBODY)
        for block in blocks
        for topic, number, after in zip(block.topic, block.partition, block.after, strict=True)
    }
    # What no broker serves is left out of the blocks, and so stays as it is.
    return tuple(lists.get(name, before) for name, before in zip(given.names, given.replicas, strict=True))
