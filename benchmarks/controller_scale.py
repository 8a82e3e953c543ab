"""The cost of a partition to the controller as their number grows: the time to load it, and the memory that it takes.

Uses the in-memory store, which is set up quickly, and a process of its own for each size; the brokers are in another,
and accept every order at once. The time ends when the last one has answered. Then what is free is given back to the
system, as a controller does after ten quiet seconds. `--million` adds the largest size.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import trio

from benchmarks.kit import figures
from benchmarks.kit.accepting_brokers import our_brokers
from benchmarks.kit.cluster import Shape, create_cluster
from benchmarks.kit.controllership import controllership
from benchmarks.kit.memory import resident_bytes_of
from transport.store.memory import MemoryZooKeeper

SIZES: Final = (10_000, 30_000, 100_000)
MILLION: Final = 1_000_000
SPANS: Final = ((SIZES[0], SIZES[-1]), (SIZES[-1], MILLION))
"""The sizes between which the growth is shown."""

PARTITIONS_PER_TOPIC: Final = 50


async def load(partitions: int) -> tuple[float, int]:
    """Load this many partitions; return the processor time in seconds, and the controller's memory in bytes."""
    zookeeper = MemoryZooKeeper(lambda: 0)
    shape = Shape(partitions // PARTITIONS_PER_TOPIC, PARTITIONS_PER_TOPIC)
    with tempfile.TemporaryDirectory() as directory:
        async with (
            zookeeper.session() as store,
            zookeeper.session() as controllers,
            our_brokers(shape.brokers, Path(directory) / "brokers.log") as brokers,
        ):
            await create_cluster(store, shape, brokers.ports)
            give_back()
            before = resident_bytes_of(os.getpid())
            async with controllership(controllers, store, brokers) as controller:
                outcome = await controller.fail_over()
                give_back()
                return outcome.times.processor, resident_bytes_of(os.getpid()) - before


def give_back() -> None:
    """Give memory that is free back to the system, or else the controller would use it unnoticed."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def measure(partitions: int) -> tuple[float, float]:
    """Load this many partitions in a process of its own."""
    command = [sys.executable, __file__, str(partitions)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds, memory = map(float, printed.split())
    return seconds, memory


def main() -> None:
    """Print a row for each size, and the power of the number of partitions with which the time grows."""
    print("| partitions | failover, processor time, s | us per partition | resident bytes per partition |")
    print("| ---: | ---: | ---: | ---: |")
    seconds = {}
    for size in (*SIZES, MILLION) if "--million" in sys.argv else SIZES:
        seconds[size], memory = measure(size)
        per_partition = seconds[size] / size * 1e6
        print(f"| {size:,} | {seconds[size]:.2f} | {per_partition:.1f} | {memory / size:,.0f} |", flush=True)
        figures.note(f"failover of {size:,} partitions in memory", "processor, s", seconds[size])
        figures.note(f"failover of {size:,} partitions in memory", "bytes", memory)
    for first, last in SPANS:
        if last in seconds:
            power = math.log(seconds[last] / seconds[first]) / math.log(last / first)
            print(
                f"\nFrom {first:,} to {last:,} partitions the time grows with their number to the power of {power:.2f}."
            )


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].isdecimal():
        print(*trio.run(load, int(sys.argv[1])))
    else:
        main()
