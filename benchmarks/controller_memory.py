"""The resident memory of a controller's process after each large event, compared with that after a failover.

The process is `klamm controller run` on a separate ZooKeeper server; the brokers are in another one and accept every
order at once. As many partitions are created and deleted as there are others. What is there after the creation is
compared with a process that has found as many partitions at its failover. `--settle` sets the seconds between the end
of an event and the measurement, an argument without a name the number of partitions.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit import command, figures
from benchmarks.kit.accepting_brokers import AcceptingBrokers, our_brokers
from benchmarks.kit.cluster import Shape, create_cluster, create_topics, moved
from benchmarks.kit.memory import processor_seconds_of, resident_bytes_of
from benchmarks.kit.requests import creation_of, deletion_of, moves_to, shutdown_of
from benchmarks.kit.samples import say
from transport.child_process import spawn
from transport.messages import Request
from transport.network import TcpNetwork
from transport.store import paths
from transport.store.protocol import Delete, MetadataStore
from transport.store.zookeeper import open_zookeeper
from transport.wire import open_connection
from transport.zookeeper_server import HOST, development_zookeeper, free_port

PARTITIONS: Final = 100_000
SETTLE_SECONDS: Final = 60
LOOK_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 4
BUSY: Final = 0.1
"""The share of a core that a controller uses if it is not at rest."""

MOVED: Final = 20
"""One of so many partitions is reassigned."""

LOST, SHUT_DOWN = 0, 1
"""The brokers that are lost and shut down."""

FAILOVER: Final = "failover"
CREATION: Final = "creation"
LARGER: Final = "failover with as many as after the creation"


@define
class Bench:
    """The controller's process, its port, and what has been measured."""

    process: subprocess.Popen[bytes]
    port: int
    store: MetadataStore
    brokers: AcceptingBrokers
    settle: float
    resident: dict[str, int] = field(factory=dict, init=False)

    async def run(self, shape: Shape, more: Shape) -> None:
        """Let all events happen."""
        await self.note(FAILOVER)
        await self._ask(CREATION, creation_of(more))
        await self._ask("deletion", deletion_of(more))
        await self.brokers.let_join(self.port)
        await self._ask("reassignment", moves_to(moved(shape, MOVED)))
        await self._ask("controlled shutdown", await shutdown_of(self.store, SHUT_DOWN))
        await self.store.multi([Delete(paths.broker(LOST))])
        await self.note("loss")

    async def _ask(self, event: str, request: Request[object]) -> None:
        async with open_connection(TcpNetwork(), HOST, self.port, client_id="benchmark") as connection:
            await connection.call(request, timeout=3600)
        await self.note(event)

    async def note(self, event: str) -> None:
        """Wait until the controller is at rest, and for a while after that; then note its memory."""
        quiet, brokers = 0.0, await self.brokers.taken(0)
        while quiet < QUIET_SECONDS or not brokers.answered:
            before, used = brokers, processor_seconds_of(self.process.pid)
            await trio.sleep(LOOK_SECONDS)
            brokers, used = await self.brokers.taken(0), processor_seconds_of(self.process.pid) - used
            if self.process.poll() is not None:
                raise RuntimeError("the controller has ended")
            is_quiet = brokers == before and used < BUSY * LOOK_SECONDS
            quiet = quiet + LOOK_SECONDS if is_quiet else 0.0
        await trio.sleep(self.settle)
        self.resident[event] = resident_bytes_of(self.process.pid)
        say(f"{event}: {self.resident[event] >> 20} MiB")


@contextmanager
def controller(zookeeper: str, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a controller in a process of its own."""
    program = [sys.executable, "-m", "klamm", "controller", "run", "--id", "1001", "--port", str(port)]
    process = spawn([*program, "--zookeeper", zookeeper, "--no-auto-leader-rebalance-enable"], log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def benches(settle: float, *shapes: Shape) -> AsyncIterator[Bench]:
    """Run a controller on a server of its own, with the topics of all shapes."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        async with (
            development_zookeeper(Path(directory) / "zookeeper") as server,
            our_brokers(shapes[0].brokers, Path(directory) / "brokers.log") as brokers,
            open_zookeeper(server.address) as store,
        ):
            await create_cluster(store, shapes[0], brokers.ports)
            for shape in shapes[1:]:
                await create_topics(store, shape)
            with controller(server.address, port, Path(directory) / "controller.log") as process:
                yield Bench(process, port, store, brokers, settle)


async def measure(partitions: int, settle: float) -> dict[str, int]:
    """Return the resident memory after each event, and after a failover with what there is after the creation."""
    shape = Shape(partitions // 50, 50)
    more = Shape(partitions // 100, 100, shape.brokers, prefix="new", first_topic=shape.topics)
    async with benches(settle, shape, more) as bench:
        await bench.note(LARGER)
        resident = bench.resident
    async with benches(settle, shape) as bench:
        await bench.run(shape, more)
        return resident | bench.resident


def main() -> None:
    """Print a row for each event."""
    parser = command.parser(__doc__)
    parser.add_argument("partitions", type=int, nargs="?", default=PARTITIONS)
    parser.add_argument("--settle", type=float, default=SETTLE_SECONDS)
    arguments = parser.parse_args()
    resident = command.on_zookeeper(measure, arguments.partitions, arguments.settle)
    print(f"| {arguments.settle:g} s after | resident, MiB | of that after a failover with as many partitions |")
    print("| --- | ---: | ---: |")
    for event, memory in resident.items():
        like = LARGER if event in (LARGER, CREATION) else FAILOVER
        print(f"| {event} | {memory >> 20} | {memory / resident[like]:.2f} |")
        figures.note(f"memory after {event}", "bytes", memory)


if __name__ == "__main__":
    main()
