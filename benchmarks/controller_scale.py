"""The cost of a partition to the controller as their number grows: the time to load it, and the memory that it takes.

Uses the in-memory store, which is set up quickly, and a process of its own for each size; the brokers are in another.
The memory is that by which the process has grown since the controller started, store included, a while after the
failover and after each large event; `--settle` sets the seconds of that while. `--million` adds the largest size.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio
from attrs import asdict, define, field

from benchmarks.kit.accepting_brokers import our_brokers
from benchmarks.kit.cluster import Shape, create_cluster, moved
from benchmarks.kit.controllership import Controllership, Outcome, controllership
from benchmarks.kit.samples import say
from transport.store.memory import MemoryZooKeeper

SIZES: Final = (10_000, 30_000, 100_000)
MILLION: Final = 1_000_000
SPANS: Final = ((SIZES[0], SIZES[-1]), (SIZES[-1], MILLION))
"""The sizes between which the growth is shown."""

PARTITIONS_PER_TOPIC: Final = 50
CREATED: Final = 100_000
"""The most partitions that are created and deleted."""

MOVED: Final = 5_000
"""The most partitions that are moved."""

SETTLE_SECONDS: Final = 60
LOST, SHUT_DOWN = 0, 1
"""The brokers that are lost and shut down."""


@define
class Measured:
    """A size: the processor time of the failover in seconds, and the memory in bytes after each event."""

    processor: float = 0.0
    memory: dict[str, int] = field(factory=dict)


@define
class Process:
    """This process, which measures one size."""

    settle: float
    measured: Measured = field(factory=Measured, init=False)
    _before: int = field(default=0, init=False)

    async def load(self, partitions: int) -> None:
        """Load this many partitions, and let the large events happen."""
        zookeeper = MemoryZooKeeper(lambda: 0)
        shape = Shape(partitions // PARTITIONS_PER_TOPIC, PARTITIONS_PER_TOPIC)
        with tempfile.TemporaryDirectory() as directory:
            async with (
                zookeeper.session() as store,
                zookeeper.session() as controllers,
                our_brokers(shape.brokers, Path(directory) / "brokers.log") as brokers,
            ):
                await create_cluster(store, shape, brokers.ports)
                gc.collect()
                self._before = resident_bytes()
                async with controllership(controllers, store, brokers) as controller:
                    await self._let_happen(controller, shape)

    async def _let_happen(self, controller: Controllership, shape: Shape) -> None:
        more = Shape(min(shape.partitions, CREATED) // 100, 100, prefix="new")
        outcome = await controller.fail_over()
        self.measured.processor = outcome.times.processor
        await self._note("failover", outcome)
        await self._note("creation", await controller.create(more))
        await self._note("deletion", await controller.delete(more))
        every = max(20, shape.partitions // MOVED)
        await self._note("reassignment", await controller.move(moved(shape, every)))
        await self._note("controlled shutdown", await controller.shut_down(SHUT_DOWN))
        await self._note("loss", await controller.lose(LOST))

    async def _note(self, event: str, outcome: Outcome) -> None:
        await trio.sleep(self.settle)
        self.measured.memory[event] = resident_bytes() - self._before
        say(f"{event}: processor {outcome.times.processor:.2f} s, {self.measured.memory[event] >> 20} MiB")


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def measure(partitions: int, settle: float) -> Measured:
    """Measure a size in a process of its own."""
    command = [sys.executable, __file__, "--size", str(partitions), "--settle", str(settle)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Measured(**json.loads(printed))


def show(sizes: Sequence[int], settle: float) -> None:
    """Print a row for each size, the power with which the time grows, and the memory after each event."""
    print("| partitions | failover, processor time, s | us per partition | resident bytes per partition |")
    print("| ---: | ---: | ---: | ---: |")
    found: dict[int, Measured] = {}
    for size in sizes:
        found[size] = of = measure(size, settle)
        time, memory = of.processor, of.memory["failover"]
        print(f"| {size:,} | {time:.2f} | {time / size * 1e6:.1f} | {memory / size:,.0f} |", flush=True)
    for first, last in SPANS:
        if last in found:
            power = math.log(found[last].processor / found[first].processor) / math.log(last / first)
            print(
                f"\nFrom {first:,} to {last:,} partitions the time grows with their number to the power of {power:.2f}."
            )
    print(f"\n| {settle:g} s after | {' | '.join(f'{size:,}, MiB | times as much' for size in sizes)} |")
    print(f"| --- |{' ---: |' * 2 * len(sizes)}")
    for event in found[sizes[0]].memory:
        cells = [f"{of.memory[event] >> 20} | {of.memory[event] / of.memory['failover']:.2f}" for of in found.values()]
        print(f"| {event} | {' | '.join(cells)} |")


def main() -> None:
    """Measure all sizes, or one in this process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--million", action="store_true", help=f"add {MILLION:,} partitions")
    parser.add_argument("--settle", type=float, default=SETTLE_SECONDS)
    parser.add_argument("--size", type=int, help="measure this size only, in this process, and print JSON")
    arguments = parser.parse_args()
    if arguments.size is None:
        show((*SIZES, MILLION) if arguments.million else SIZES, arguments.settle)
    else:
        process = Process(arguments.settle)
        trio.run(process.load, arguments.size)
        print(json.dumps(asdict(process.measured)))


if __name__ == "__main__":
    main()
