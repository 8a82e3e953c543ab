"""A great rollout: accepted, carried out for a while, and found by the next controller.

Its plan has a move for each partition of the cluster: to one more broker than before. The cluster is in the in-memory
store, and the brokers are in another process: they accept every order at once, and let new replicas join the ISR while
the rollout is to go on. An argument gives the number of moves, `--million` the one that docs/rollouts.md quotes. The
exit code is 1 if a bound is exceeded; those of times are for the processor, so that nothing else on the machine counts.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen

from benchmarks.controller_scale import MILLION, PARTITIONS_PER_TOPIC, give_back
from benchmarks.kit import figures
from benchmarks.kit.accepting_brokers import AcceptingBrokers, our_brokers
from benchmarks.kit.cluster import Shape, create_cluster, register, topic_id
from benchmarks.kit.controllership import Controllership, controllership
from benchmarks.kit.memory import resident_bytes_of
from benchmarks.kit.samples import say
from benchmarks.kit.times import Times, taking_time
from controller.events import ControllerEvent
from controller.model.rollout import Rollout
from controller.observation.instruments import Instrument
from transport.messages import (
    ChangeRolloutRequest,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    UploadRolloutRequest,
)
from transport.messages.rollouts import MOVES_OF_A_PART
from transport.store import paths
from transport.store.limits import RequestLimits
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Delete, MetadataStore, Znode
from transport.store.timed import TimedStore

MOVES: Final = 100_000
CARRIED_OUT: Final = 2 * MOVES_OF_A_PART
NAME: Final = "great"
NEW_BROKER: Final = 10
SIZE: Final = 1_000_000
AT_ONCE: Final = 500
LOOK_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 2.0

ACCEPTED_SECONDS: Final = 30.0
BYTES_OF_A_MOVE: Final = 300.0
EVENT_SECONDS: Final = 0.1
_MS: Final = 1_000


@define
class Events(Instrument):
    """The longest processor time of this process during an event of each name."""

    longest: dict[str, float] = field(factory=dict, init=False)
    _began: float = field(default=0.0, init=False)

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:  # noqa: ARG002
        """Note the beginning."""
        self._began = time.process_time()

    def finished(self, event: ControllerEvent, seconds: float) -> None:  # noqa: ARG002
        """Note the end."""
        self.longest[event.name] = max(self.longest.get(event.name, 0.0), time.process_time() - self._began)

    @property
    def of_rollouts(self) -> dict[str, float]:
        """The same for the events that are about rollouts."""
        return {name: seconds for name, seconds in self.longest.items() if "Rollout" in name}


@frozen
class CountingStore(TimedStore):
    """A store that counts the znodes of rollouts that are read, by kind."""

    reads: Counter[str] = field(factory=Counter, kw_only=True)

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        """Read many znodes."""
        self.reads.update(kind for path in paths if (kind := kind_of(path)))
        return await self.store.read(paths, watch=watch)


def kind_of(path: str) -> str:
    """Return what a znode of a rollout has; empty for others."""
    below = path.removeprefix(f"{paths.rollout(NAME)}")
    if below == path:
        return ""
    return below.strip("/").partition("/")[0] or "state"


@frozen
class Row:
    """A line of the table: what was measured, and the most that it may be, if that is bounded."""

    what: str
    measured: float
    unit: str
    most: float | None = None

    def __str__(self) -> str:
        """Return the line."""
        most = "" if self.most is None else f"{self.most:,.0f}"
        return f"| {self.what} | {self.measured:,.{1 if self.unit == 's' else 0}f} {self.unit} | {most} |"

    @property
    def is_exceeded(self) -> bool:
        """Whether it is more than that."""
        return self.most is not None and self.measured > self.most


@define
class Bench:
    """A cluster, and what has been measured of a rollout of all of its partitions."""

    moves: int
    zookeeper: MemoryZooKeeper
    store: MetadataStore
    brokers: AcceptingBrokers
    rows: list[Row] = field(factory=list, init=False)

    @property
    def shape(self) -> Shape:
        """The shape of the cluster."""
        return Shape(self.moves // PARTITIONS_PER_TOPIC, PARTITIONS_PER_TOPIC, NEW_BROKER)

    async def run(self) -> None:
        """Let two controllers carry the rollout out, one after the other."""
        async with self.zookeeper.session() as session:
            events = Events()
            async with controllership(session, self.store, self.brokers, events) as controller:
                await controller.fail_over()
                before = self._resident()
                await self._accept(controller)
                await self._carry_out(controller)
                self._note_memory("memory of a move, one part in memory", before)
                self._note_events("the first controller", events)
        await self._note_znodes()
        async with self.zookeeper.session() as session:
            counting, events = CountingStore(session, lambda _: None), Events()
            async with controllership(counting, self.store, self.brokers, events) as controller:
                await controller.fail_over()
                for kind, count in counting.reads.items():
                    self.rows.append(Row(f"znodes that the next controller reads: {kind}", count, ""))
                before = self._resident()
                await self._open_all(controller)
                self._note_memory("memory of a move, all parts in memory", before)
                self._note_events("the next controller", events)

    # --- what happens -----------------------------------------------------------------------------------------------

    async def _accept(self, controller: Controllership) -> None:
        say("uploading")
        # The first moves begin right after the start: whoever is told of them late lets nobody join.
        await self.brokers.let_join(controller.service.port)
        times: list[Times] = []
        parts = self._parts()
        for first, part in parts:
            with taking_time() as taken:
                await controller.service.answer(UploadRolloutRequest(NAME, "digest", first, part))
            times += taken
        settings = RolloutSettings(AT_ONCE, AT_ONCE, AT_ONCE, AT_ONCE)
        with taking_time() as taken:
            await controller.service.answer(StartRolloutRequest(NAME, "digest", self.moves, settings))
        times += taken
        self.rows.append(Row("accepted within", sum(each.wall for each in times), "s"))
        self.rows.append(Row("processor time of that", sum(each.processor for each in times), "s", ACCEPTED_SECONDS))

    def _parts(self) -> Iterator[tuple[int, tuple[RolloutMove, ...]]]:
        """Yield the parts of the plan: the last replica of each partition moves to the new broker."""
        tps = self.shape.tps()
        for first in range(0, self.moves, MOVES_OF_A_PART):
            part = []
            for number in range(first, min(first + MOVES_OF_A_PART, self.moves)):
                before = self.shape.replicas(number)
                id_ = topic_id(number // PARTITIONS_PER_TOPIC)
                part.append(RolloutMove(*tps[number], (*before[:-1], NEW_BROKER), before, id_, SIZE + number))
            yield first, tuple(part)

    async def _carry_out(self, controller: Controllership) -> None:
        """Let the rollout go on until some parts of the plan are over."""
        say("carrying out")
        rollout = _great(controller)
        with taking_time() as taken:
            done = 0
            while done < min(CARRIED_OUT, self.moves // 2):
                await trio.sleep(LOOK_SECONDS)
                done = rollout.stored.moves - rollout.moves_left
        await controller.service.answer(ChangeRolloutRequest(NAME, RolloutOrder.PAUSE))
        await _rest(controller)
        await self.brokers.let_join(0)
        await controller.service.answer(ChangeRolloutRequest(NAME, RolloutOrder.RESUME))
        await _rest(controller)
        self.rows.append(Row("processor time of a move that is carried out", taken[0].processor / done * 1e6, "us"))

    async def _open_all(self, controller: Controllership) -> None:
        """Let the new broker die: the controller reads on, and looks for moves that could begin."""
        say("opening all parts")
        await self.store.multi([Delete(paths.broker(NEW_BROKER))])
        rollout = _great(controller)
        while rollout.unread:  # noqa: ASYNC110
            await trio.sleep(LOOK_SECONDS)
        await _rest(controller)
        self.rows.append(Row("parts in memory then", len(rollout.parts), ""))

    # --- what is noted ----------------------------------------------------------------------------------------------

    def _resident(self) -> int:
        give_back()
        return resident_bytes_of(os.getpid())

    def _note_memory(self, what: str, before: int) -> None:
        self.rows.append(Row(what, (self._resident() - before) / self.moves, "bytes", BYTES_OF_A_MOVE))

    def _note_events(self, whose: str, events: Events) -> None:
        for name, seconds in sorted(events.of_rollouts.items()):
            self.rows.append(Row(f"longest {name} of {whose}", seconds * _MS, "ms", EVENT_SECONDS * _MS))

    async def _note_znodes(self) -> None:
        root, most = paths.rollout(NAME), RequestLimits().chunk
        plans, marks = await self.store.children([paths.rollout_plans(NAME), f"{root}/marks"])
        kinds = {
            "state": [root],
            "part of the plan": [paths.rollout_plan(NAME, int(first)) for first in plans or ()],
            "marks": [paths.rollout_marks(NAME, int(first)) for first in marks or ()],
        }
        for kind, found in kinds.items():
            sizes = [len(znode.data) for znode in await self.store.read(found) if znode is not None]
            self.rows.append(Row(f"largest of {len(sizes):,} znodes: {kind}", max(sizes), "bytes", most))


def _great(controller: Controllership) -> Rollout:
    office = controller.service.office
    assert office is not None
    return office.context.rollouts.by_name[NAME]


async def _rest(controller: Controllership) -> None:
    """Wait until the queue has been empty for a while."""
    quiet = 0.0
    while quiet < QUIET_SECONDS:
        await trio.sleep(LOOK_SECONDS)
        quiet = quiet + LOOK_SECONDS if controller.service.is_idle else 0


async def measure(moves: int) -> list[Row]:
    """Measure a rollout of so many moves."""
    zookeeper = MemoryZooKeeper(lambda: 0)
    with tempfile.TemporaryDirectory() as directory:
        async with (
            zookeeper.session() as store,
            our_brokers(NEW_BROKER + 1, Path(directory) / "brokers.log") as brokers,
        ):
            bench = Bench(moves, zookeeper, store, brokers)
            await create_cluster(store, bench.shape, brokers.ports)
            await register(store, NEW_BROKER, brokers.ports[NEW_BROKER])
            # The collector is not to search the store, which a controller does not have in its process.
            gc.collect()
            gc.freeze()
            await bench.run()
            return bench.rows


def main() -> None:
    """Print the table."""
    given = next((int(word) for word in sys.argv[1:] if word.isdecimal()), MOVES)
    moves = MILLION if "--million" in sys.argv else given
    rows = trio.run(measure, moves)
    print(f"| {moves:,} moves | measured | at most |", "| --- | ---: | ---: |", *rows, sep="\n")
    for row in rows:
        # The longest events and the sizes of znodes have bounds of their own, and say little about speed.
        if row.unit in ("s", "us"):
            figures.note(f"rollout: {row.what}", row.unit, row.measured)
    if any(row.is_exceeded for row in rows):
        sys.exit("a bound is exceeded")


if __name__ == "__main__":
    main()
