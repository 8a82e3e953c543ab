"""The cost of a partition to the controller as their number grows: the time to load it, and the memory that it takes.

Uses the in-memory store, which is set up quickly, and a process of its own for each size. The brokers accept every
request, so nothing waits in the channels when the memory is measured. `--million` adds the largest size.
"""

from __future__ import annotations

import gc
import math
import subprocess
import sys
from pathlib import Path
from typing import Final

import trio

from benchmarks.kit.cluster import Shape, create_cluster
from benchmarks.kit.controllership import controllership
from benchmarks.kit.sink import Sinks
from transport.store.memory import MemoryZooKeeper

SIZES: Final = (10_000, 30_000, 100_000)
MILLION: Final = 1_000_000
PARTITIONS_PER_TOPIC: Final = 50


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def load(partitions: int) -> tuple[float, float]:
    """Load this many partitions; return the processor time in seconds, and the controller's memory in bytes."""
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, zookeeper.session() as controllers:
        await create_cluster(store, Shape(partitions // PARTITIONS_PER_TOPIC, PARTITIONS_PER_TOPIC))
        gc.collect()
        before, brokers = resident_bytes(), Sinks()
        brokers.answering.close()
        async with controllership(controllers, brokers) as (_, stopwatch):
            taken = await stopwatch.take("Elect")
            brokers.answering.open()
            await stopwatch.all_told()
            await trio.sleep(1)
            gc.collect()
            return taken.processor, resident_bytes() - before


def measure(partitions: int) -> tuple[float, float]:
    """Load this many partitions in a process of its own."""
    command = [sys.executable, __file__, str(partitions)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, memory = map(float, printed.split())
    return seconds, memory


def main() -> None:
    """Print a row for each size, and the power of the number of partitions with which the time grows."""
    sizes = (*SIZES, MILLION) if "--million" in sys.argv else SIZES
    print("| partitions | failover, processor time, s | us per partition | resident bytes per partition |")
    print("| --- | --- | --- | --- |")
    seconds = {}
    for size in sizes:
        seconds[size], memory = measure(size)
        per_partition = seconds[size] / size * 1e6
        print(f"| {size:,} | {seconds[size]:.2f} | {per_partition:.1f} | {memory / size:,.0f} |", flush=True)
    slope = math.log(seconds[sizes[-1]] / seconds[sizes[0]]) / math.log(sizes[-1] / sizes[0])
    print(f"\nThe time grows with the number of partitions to the power of {slope:.2f} (1 is linear).")


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].isdecimal():
        print(*trio.run(load, int(sys.argv[1])))
    else:
        main()
