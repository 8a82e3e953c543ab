"""Large events of Klamm's controller and of Kafka's own, side by side in one run on one ZooKeeper server.

Each controls a cluster of 10 brokers below a chroot of its own, with the same topics of 50 partitions with 3 replicas,
and broker 0 leads a quarter. The brokers accept each order at once and remember when. Kafka's controller lives in an
eleventh broker, without partitions; Klamm's is told of another one in its place. Events alternate between the two:

- failover, cold: the controller's process is killed, and another is started once its session has expired. It begins
  when `/controller` is created, and ends with the last answer of a broker.
- failover, warm: `/controller` is deleted, and the same process is elected again. Begins and ends alike.
- creation: the znodes of topics of 100 partitions are created. Ends with the last state in ZooKeeper or the last
  answer of a broker.
- deletion: these topics are marked for deletion. Ends when neither they nor the marks are left, or with the last
  answer.
- reassignment: one replica of every 20th partition is to move, or to move back, requested in Kafka's protocol. The
  leaders let new replicas join the ISR at once, with AlterPartition. Ends as a creation.
- loss: the registration of broker 0 is deleted. Ends as a creation.
- controlled shutdown: requested for broker 0 in Kafka's protocol. Ends with its answer, or as a loss.

After each event but failovers, the leaders and ISRs of both clusters have to be equal, and so do the assignments after
a reassignment and the topics after a deletion. The processor time of a controller's process is taken from the beginning
until it is at rest. `--partitions` gives one or more sizes, of which the first and the last one show the growth. With
`--own-wire`, Klamm's controller has brokers of its own instead of Kafka's, and is asked on Klamm's wire.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from math import log
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit import command
from benchmarks.kit.cluster import Shape
from benchmarks.kit.kafka_broker import require_jars
from benchmarks.kit.kafka_events import BROKER, COLD, WARM, Events, Outcome, moves
from benchmarks.kit.kafka_sides import Side, both_sides
from benchmarks.kit.samples import NAMES, say, table_line
from transport.store import paths
from transport.zookeeper_server import development_zookeeper

PARTITIONS: Final = 100_000
PARTITIONS_PER_TOPIC: Final = 50
CREATED_PER_TOPIC: Final = 100
MOVED: Final = 20
"""One of so many partitions is reassigned."""

ROUNDS: Final = 1
FAILOVERS, TOPICS, MOVES, LOSS, SHUTDOWN = "failovers", "topics", "moves", "loss", "shutdown"
EVENTS: Final = (TOPICS, MOVES, LOSS, SHUTDOWN)
"""The events of a round. Each process takes office twice before its first event, so failovers are measured anyway."""

HEAP: Final = "4g"
ZOOKEEPER_HEAP: Final = "2g"


@define
class Bench:
    """Both sides, and the events that are measured."""

    events: Events
    sides: tuple[Side, Side]
    created: int
    """The number of topics that are created and deleted."""

    _is_changed: bool = field(default=False, init=False)
    """Whether broker 0 is gone, so that all has to be as at first before the next event."""

    async def run(self, rounds: int, wanted: tuple[str, ...]) -> None:
        """Measure events in turn; each side begins as often as the other."""
        for side in self.sides:
            await self._take_office(side, None)
        steps = {TOPICS: self._create_and_delete, MOVES: self._move, LOSS: self._lose, SHUTDOWN: self._shut_down}
        for number in range(rounds):
            if FAILOVERS in wanted:
                await self._restart()
            for name, step in steps.items():
                if name in wanted:
                    await step(number)

    async def _create_and_delete(self, number: int) -> None:
        shape = self.events.shape
        first = shape.topics + number * self.created
        more = Shape(self.created, CREATED_PER_TOPIC, shape.brokers, prefix="new", first_topic=first)
        await self._alternate(partial(self.events.create, more))
        await self._alternate(partial(self.events.delete, more))

    async def _move(self, _: int) -> None:
        for targets in moves(self.events.shape, MOVED):
            await self._alternate(partial(self.events.move, targets))

    async def _lose(self, _: int) -> None:
        await self._alternate(self.events.lose)
        self._is_changed = True

    async def _shut_down(self, _: int) -> None:
        await self._alternate(self.events.shut_down)
        self._is_changed = True

    async def _alternate(self, event: Callable[[Side], Awaitable[Outcome]]) -> None:
        """Let both sides process an event, and end the process if they do not agree on its outcome."""
        if self._is_changed:
            await self._restart()
        self.sides = (self.sides[1], self.sides[0])
        some, others = [await event(side) for side in self.sides]
        differing = [path for path in {**some, **others} if some.get(path) != others.get(path)]
        say(f"{len(differing)} of {len(some):,} outcomes differ")
        if differing:
            path = differing[0]
            sys.exit(f"for example {path}: {some.get(path)} and {others.get(path)}")

    # --- taking office --------------------------------------------------------------------------------------------

    async def _restart(self) -> None:
        """Start both controllers anew, on what there was at first."""
        for side in self.sides:
            before = (await side.require(paths.CONTROLLER)).stat.mzxid
            await side.kill()
            await side.restore(BROKER)
            await self._take_office(side, before)
        self._is_changed = False

    async def _take_office(self, side: Side, before: int | None) -> None:
        """Start a controller, and let it be elected twice; `before` is the mzxid of the `/controller` before it."""
        side.start()
        before = await self.events.fail_over(COLD, side, before)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(side.vacate)
            await self.events.fail_over(WARM, side, before)


async def measure(partitions: int, rounds: int, wanted: tuple[str, ...], heap: str, *, own_wire: bool) -> Events:
    """Measure events on a separate server."""
    topics = max(1, partitions // PARTITIONS_PER_TOPIC)
    shape = Shape(topics, PARTITIONS_PER_TOPIC, led_by_first=topics * PARTITIONS_PER_TOPIC // 4)
    with tempfile.TemporaryDirectory() as directory:
        async with (
            development_zookeeper(Path(directory) / "zookeeper", heap=ZOOKEEPER_HEAP) as server,
            both_sides(server.address, Path(directory), shape, heap, own_wire=own_wire) as sides,
        ):
            say(f"{shape.partitions:,} partitions were created for each side")
            bench = Bench(Events(shape), sides, max(1, shape.partitions // CREATED_PER_TOPIC))
            await bench.run(rounds, wanted)
    return bench.events


# --- tables -----------------------------------------------------------------------------------------------------------


def tables(events: Events) -> Iterator[str]:
    """Yield the times, and the requests."""
    yield f"{events.shape.partitions:,} partitions on {events.shape.brokers} brokers:\n"
    yield from events.samples.table()
    yield "\nRequests to all brokers in the last event of each kind (LeaderAndIsr, StopReplica, UpdateMetadata):\n"
    yield table_line(["event", *NAMES])
    yield table_line(["---", *["---:"] * len(NAMES)])
    for event, of in events.taken.items():
        yield table_line([event, *(", ".join(map(str, of[name].requests)) for name in NAMES)])


def growth(small: Events, large: Events) -> Iterator[str]:
    """Yield a table of the powers of the number of partitions with which the times grow: 1 is linear."""
    sizes = small.shape.partitions, large.shape.partitions
    yield "\nThe times grow from {:,} to {:,} partitions with this power of their number:\n".format(*sizes)
    yield table_line(["event", *NAMES])
    yield table_line(["---", *["---:"] * len(NAMES)])
    before, after = ({name: of.samples.medians(name) for name in NAMES} for of in (small, large))
    for event in large.taken:
        ratios = [after[name][event] / before[name][event] for name in NAMES]
        yield table_line([event, *(f"{log(ratio) / log(sizes[1] / sizes[0]):.2f}" for ratio in ratios)])


def main() -> None:
    """Print a row for each event."""
    parser = command.parser(__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[PARTITIONS])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--events", nargs="*", choices=[FAILOVERS, *EVENTS], default=EVENTS)
    parser.add_argument("--heap", default=HEAP, help="the heap of Kafka's broker")
    parser.add_argument("--own-wire", action="store_true", help="Klamm's controller has brokers of its own")
    arguments = parser.parse_args()
    require_jars()
    measured = []
    for partitions in arguments.partitions:
        chosen = partial(measure, own_wire=arguments.own_wire)
        events = command.on_zookeeper(chosen, partitions, arguments.rounds, tuple(arguments.events), arguments.heap)
        print(*tables(events), sep="\n", flush=True)
        measured.append(events)
    if len(measured) > 1:
        print(*growth(measured[0], measured[-1]), sep="\n")
    print("\nAfter each event but failovers, the leaders and ISRs of both clusters were equal.")


if __name__ == "__main__":
    main()
