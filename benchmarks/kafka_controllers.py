"""Large events of Klamm's controller and of Kafka's own, side by side in one run on one ZooKeeper server.

Each controls a cluster of 10 brokers below a chroot of its own, with the same topics of 50 partitions with 3 replicas,
and broker 0 leads a quarter. The brokers accept each order at once and remember when. Kafka's controller lives in an
eleventh broker, without partitions; Klamm's is told of another one in its place. The events:

- failover, cold: the controller's process is killed, and another is started once its session has expired. It begins
  when `/controller` is created, and ends with the last answer of a broker.
- failover, warm: `/controller` is deleted, and the same process is elected again. Begins and ends alike.
- loss: the registration of broker 0 is deleted. Ends with the last state in ZooKeeper or the last answer of a broker.
- controlled shutdown: requested for broker 0 in Kafka's protocol. Ends with its answer, or as a loss.

After a loss and a controlled shutdown the states of both clusters have to be equal. The processor time of a
controller's process is taken from the beginning until it is at rest. `--partitions` and `--rounds` give the size.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit.accepting_brokers import MICROSECONDS, Taken
from benchmarks.kit.cluster import Shape
from benchmarks.kit.kafka_broker import require_jars
from benchmarks.kit.kafka_sides import PATIENCE_SECONDS, POLL_SECONDS, Side, both_sides
from benchmarks.kit.samples import Sample, Samples, now, say
from transport.store import paths
from transport.store.protocol import Znode
from transport.zookeeper_server import DevelopmentServerError, development_zookeeper

PARTITIONS: Final = 100_000
PARTITIONS_PER_TOPIC: Final = 50
ROUNDS: Final = 2
BROKER: Final = 0
"""The broker that is lost or shut down."""

HEAP: Final = "4g"
ZOOKEEPER_HEAP: Final = "2g"
QUIET_SECONDS: Final = 2
LOOK_SECONDS: Final = 0.25
BUSY: Final = 0.25
"""The share of a core that a controller uses if it is not at rest."""

LEAST_METADATA: Final = 40
"""A partition takes more bytes than that in UpdateMetadata."""

COLD, WARM = "failover, cold", "failover, warm"

IsDone = Callable[[Taken], Awaitable[bool]]


@define
class Watcher:
    """Follows an event of one side until its controller is at rest."""

    side: Side
    begun: int
    """The beginning, in microseconds since 1970."""

    _processor: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._processor = self.side.processor_seconds

    async def until_at_rest(self, is_done: IsDone) -> Taken:
        """Wait until brokers are sent nothing more, the controller is at rest, and the event is over."""
        with trio.fail_after(PATIENCE_SECONDS):
            while True:
                before = self.side.processor_seconds
                await trio.sleep(LOOK_SECONDS)
                used = self.side.processor_seconds - before
                taken = await self.side.brokers.taken(self.begun)
                is_at_rest = used < BUSY * LOOK_SECONDS and _is_quiet_since(taken.answered)
                if taken.answered and is_at_rest and await is_done(taken):
                    return taken

    def sample(self, end: int) -> Sample:
        """Return the sample of an event that is over."""
        return Sample((end - self.begun) / MICROSECONDS, self.side.processor_seconds - self._processor)


@define
class Bench:
    """Both sides, and what has been measured."""

    shape: Shape
    sides: tuple[Side, Side]
    samples: Samples = field(factory=Samples, init=False)

    async def run(self, rounds: int) -> None:
        """Measure all events in turn; each side begins as often as the other."""
        order = self.sides
        for side in order:
            await self._take_office(side, None)
        for _ in range(rounds):
            for event in (self._lose, self._shut_down):
                order = (order[1], order[0])
                outcomes = [await event(side) for side in order]
                self._require_equal(*outcomes)
                for side in order:
                    await self._restart(side)

    # --- failover -------------------------------------------------------------------------------------------------

    async def _restart(self, side: Side) -> None:
        before = (await side.require(paths.CONTROLLER)).stat.mzxid
        await side.kill()
        await side.restore(BROKER)
        await self._take_office(side, before)

    async def _take_office(self, side: Side, before: int | None) -> None:
        """Start a controller, and let it be elected twice; `before` is the mzxid of the `/controller` before it."""
        side.start()
        before = await self._fail_over(COLD, side, before)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(side.vacate)
            await self._fail_over(WARM, side, before)

    async def _fail_over(self, event: str, side: Side, before: int | None) -> int:
        """Wait for a new `/controller`, and measure what it does; return its mzxid."""
        with trio.fail_after(PATIENCE_SECONDS):
            while (znode := await side.require(paths.CONTROLLER)).stat.mzxid == before:  # noqa: ASYNC110
                await trio.sleep(POLL_SECONDS)
        watcher = Watcher(side, znode.stat.mtime_ms * 1000)
        taken = await watcher.until_at_rest(partial(self._have_all, len(side.brokers.ports)))
        self.samples.add(event, side.name, watcher.sample(taken.answered), taken)
        return znode.stat.mzxid

    async def _have_all(self, brokers: int, taken: Taken) -> bool:
        """Return whether each broker was told of all partitions, and of each of its replicas."""
        await trio.lowlevel.checkpoint()
        metadata = self.shape.partitions * brokers * LEAST_METADATA
        replicas = self.shape.partitions * self.shape.replication_factor
        return taken.update_metadata.size >= metadata and taken.leader_and_isr.partitions >= replicas

    # --- loss and controlled shutdown -----------------------------------------------------------------------------

    async def _lose(self, side: Side) -> Mapping[str, Znode]:
        watcher = Watcher(side, now())
        await side.lose(BROKER)
        return await self._until_left("loss", watcher, 0)

    async def _shut_down(self, side: Side) -> Mapping[str, Znode]:
        watcher = Watcher(side, 0)
        watcher.begun = await side.shut_broker_down(BROKER)
        return await self._until_left("controlled shutdown", watcher, now())

    async def _until_left(self, event: str, watcher: Watcher, answered: int) -> Mapping[str, Znode]:
        """Wait until the broker is in no ISR, and return the states; `answered` is the time of the last answer."""
        states: dict[str, Znode] = {}

        async def is_left(_: Taken) -> bool:
            states.update(await watcher.side.states())
            # What has just been written is still to be told.
            return _is_quiet_since(_written(states)) and not any(BROKER in _outcome(of)[1] for of in states.values())

        taken = await watcher.until_at_rest(is_left)
        written = _written(states)
        changed = sum(
            znode.stat.version > 0 and znode.stat.mtime_ms * 1000 > watcher.begun for znode in states.values()
        )
        sample = watcher.sample(max(taken.answered, written, answered))
        self.samples.add(event, watcher.side.name, sample, f"{changed:,} states, {taken}")
        return states

    def _require_equal(self, some: Mapping[str, Znode], others: Mapping[str, Znode]) -> None:
        """End the process if the leader or the ISR of a partition differs."""
        differing = [path for path, znode in some.items() if _outcome(znode) != _outcome(others[path])]
        say(f"{len(differing)} of {len(some):,} states differ")
        if differing:
            path = differing[0]
            sys.exit(f"for example {path}: {some[path].data.decode()} and {others[path].data.decode()}")


def _is_quiet_since(last: int) -> bool:
    return now() - last > QUIET_SECONDS * MICROSECONDS


def _written(states: Mapping[str, Znode]) -> int:
    """Return when the last state was written, in microseconds since 1970."""
    return max(znode.stat.mtime_ms for znode in states.values()) * 1000


def _outcome(znode: Znode) -> tuple[int, frozenset[int]]:
    state = json.loads(znode.data)
    return state["leader"], frozenset(state["isr"])


async def measure(partitions: int, rounds: int, heap: str) -> Samples:
    """Measure all events on a separate server."""
    topics = max(1, partitions // PARTITIONS_PER_TOPIC)
    shape = Shape(topics, PARTITIONS_PER_TOPIC, led_by_first=topics * PARTITIONS_PER_TOPIC // 4)
    with tempfile.TemporaryDirectory() as directory:
        async with (
            development_zookeeper(Path(directory) / "zookeeper", heap=ZOOKEEPER_HEAP) as server,
            both_sides(server.address, Path(directory), shape, heap) as sides,
        ):
            say(f"{shape.partitions:,} partitions were created for each side")
            bench = Bench(shape, sides)
            await bench.run(rounds)
    return bench.samples


def main() -> None:
    """Print a row for each event."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--heap", default=HEAP, help="the heap of Kafka's broker")
    arguments = parser.parse_args()
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    require_jars()
    try:
        samples = trio.run(measure, arguments.partitions, arguments.rounds, arguments.heap)
    except DevelopmentServerError as error:
        sys.exit(str(error))
    print(f"{arguments.partitions:,} partitions on 10 brokers:\n")
    for line in samples.table():
        print(line)
    print("\nAfter each loss and controlled shutdown, the leaders and ISRs of both clusters were equal.")


if __name__ == "__main__":
    main()
