"""The large events that Klamm's controller and Kafka's own are compared by, and when one of them is over."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit.accepting_brokers import MICROSECONDS, Taken
from benchmarks.kit.cluster import Shape, moved
from benchmarks.kit.kafka_sides import PATIENCE_SECONDS, POLL_SECONDS, Side, Targets
from benchmarks.kit.samples import Sample, Samples, now
from transport.metadata import TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Znode

BROKER: Final = 0
"""The broker that is lost or shut down."""

QUIET_SECONDS: Final = 2
LOOK_SECONDS: Final = 0.25
BUSY: Final = 0.25
"""The share of a core that a controller uses if it is not at rest."""

LEAST_METADATA: Final = 40
"""A partition takes more bytes than that in UpdateMetadata."""

COLD, WARM = "failover, cold", "failover, warm"
CREATION, DELETION, REASSIGNMENT = "creation", "deletion", "reassignment"
LOSS, SHUTDOWN = "loss", "controlled shutdown"

IsDone = Callable[[Taken], Awaitable[bool]]
Outcome = Mapping[str, object]
"""The contents on which both sides have to agree after an event, by path."""


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
class Events:
    """The events of a cluster, and what they have taken. Each method returns when its event is over."""

    shape: Shape
    samples: Samples = field(factory=Samples, init=False)
    taken: dict[str, dict[str, Taken]] = field(factory=dict, init=False)
    """The requests that each side sent to brokers in the last event of a kind."""

    # --- failover -------------------------------------------------------------------------------------------------

    async def fail_over(self, event: str, side: Side, before: int | None) -> int:
        """Wait for another `/controller` than the one of mzxid `before`; return its mzxid."""
        with trio.fail_after(PATIENCE_SECONDS):
            while (znode := await side.require(paths.CONTROLLER)).stat.mzxid == before:  # noqa: ASYNC110
                await trio.sleep(POLL_SECONDS)
        watcher = Watcher(side, znode.stat.mtime_ms * 1000)
        taken = await watcher.until_at_rest(partial(self._have_all, len(side.brokers.ports)))
        self._add(event, watcher, taken, taken.answered)
        return znode.stat.mzxid

    async def _have_all(self, brokers: int, taken: Taken) -> bool:
        """Return whether each broker was told of all partitions, and of each of its replicas."""
        await trio.lowlevel.checkpoint()
        metadata = self.shape.partitions * brokers * LEAST_METADATA
        return taken.update_metadata.size >= metadata and taken.leader_and_isr.partitions >= self.shape.replica_count

    # --- loss and controlled shutdown -----------------------------------------------------------------------------

    async def lose(self, side: Side) -> Outcome:
        """Lose a broker."""
        watcher = Watcher(side, now())
        await side.lose(BROKER)
        return await self._until_left(LOSS, watcher, 0)

    async def shut_down(self, side: Side) -> Outcome:
        """Relieve a broker that is about to stop."""
        watcher = Watcher(side, 0)
        watcher.begun = await side.shut_broker_down(BROKER)
        return await self._until_left(SHUTDOWN, watcher, now())

    async def _until_left(self, event: str, watcher: Watcher, answered: int) -> Outcome:
        """Wait until the broker is in no ISR; `answered` is the time of the last answer."""
        states: dict[str, Znode] = {}

        async def is_left(_: Taken) -> bool:
            states.update(await watcher.side.states())
            return _is_settled(states) and not any(BROKER in _isr(state) for state in states.values())

        taken = await watcher.until_at_rest(is_left)
        changed = sum(
            znode.stat.version > 0 and znode.stat.mtime_ms * 1000 > watcher.begun for znode in states.values()
        )
        self._add(event, watcher, taken, max(_written(states), answered), f"{changed:,} states, ")
        return _leadership(states)

    # --- topics ---------------------------------------------------------------------------------------------------

    async def create(self, more: Shape, side: Side) -> Outcome:
        """Create topics."""
        watcher = Watcher(side, 0)
        watcher.begun = await side.create_more(more)
        names = list(map(paths.partition_state, more.tps()))
        states: dict[str, Znode] = {}

        async def is_created(taken: Taken) -> bool:
            states.update(await side.read(names))
            has_told = taken.leader_and_isr.partitions >= more.replica_count
            return len(states) == more.partitions and _is_settled(states) and has_told

        taken = await watcher.until_at_rest(is_created)
        self._add(CREATION, watcher, taken, _written(states))
        return _leadership(states)

    async def delete(self, more: Shape, side: Side) -> Outcome:
        """Delete topics."""
        watcher = Watcher(side, 0)
        watcher.begun = await side.delete(more)
        with trio.fail_after(PATIENCE_SECONDS):
            gone = await side.until_deleted()

        async def is_deleted(taken: Taken) -> bool:
            await trio.lowlevel.checkpoint()
            return taken.stop_replica.partitions >= more.replica_count

        taken = await watcher.until_at_rest(is_deleted)
        self._add(DELETION, watcher, taken, gone)
        return {paths.TOPICS: await side.topics()}

    # --- reassignment ---------------------------------------------------------------------------------------------

    async def move(self, targets: Targets, side: Side) -> Outcome:
        """Move one replica each of some partitions; the leaders let the new ones join at once."""
        watcher = Watcher(side, 0)
        watcher.begun = await side.move(targets)
        answered = now()
        names = [*map(paths.partition_state, targets)]
        topics: dict[str, Znode] = {}
        states: dict[str, Znode] = {}

        async def is_moved(_: Taken) -> bool:
            topics.update(await side.read([paths.topic(name) for name in dict.fromkeys(tp.topic for tp in targets)]))
            states.update(await side.read(names))
            isrs = zip(map(_isr, states.values()), targets.values(), strict=True)
            is_joined = all(isr == set(target) for isr, target in isrs)
            return is_joined and _is_settled(topics | states) and _assigned(topics).items() >= targets.items()

        taken = await watcher.until_at_rest(is_moved)
        self._add(REASSIGNMENT, watcher, taken, max(answered, _written(topics | states)))
        assigned = {f"{topic}-{partition}": replicas for (topic, partition), replicas in _assigned(topics).items()}
        return {**_leadership(states), **assigned}

    def _add(self, event: str, watcher: Watcher, taken: Taken, end: int, remark: str = "") -> None:
        """Add what an event took until `end`, or until the last broker has answered."""
        name = watcher.side.name
        self.samples.add(event, name, watcher.sample(max(taken.answered, end)), f"{remark}{taken}")
        self.taken.setdefault(event, {})[name] = taken


def moves(shape: Shape, every: int) -> tuple[Targets, Targets]:
    """Return the moves of one of so many partitions, and those back."""
    there, first = moved(shape, every), zip(shape.tps(), map(shape.replicas, range(shape.partitions)), strict=True)
    return there, {tp: replicas for tp, replicas in first if tp in there}


def _is_quiet_since(last: int) -> bool:
    return now() - last > QUIET_SECONDS * MICROSECONDS


def _is_settled(znodes: Mapping[str, Znode]) -> bool:
    # What has just been written is still to be told.
    return _is_quiet_since(_written(znodes))


def _written(znodes: Mapping[str, Znode]) -> int:
    """Return when the last of these znodes was written, in microseconds since 1970."""
    return max(znode.stat.mtime_ms for znode in znodes.values()) * 1000


def _isr(state: Znode) -> frozenset[int]:
    return frozenset(json.loads(state.data)["isr"])


def _leadership(states: Mapping[str, Znode]) -> Outcome:
    """Return the leader and the ISR of each partition."""
    return {path: (json.loads(znode.data)["leader"], _isr(znode)) for path, znode in states.items()}


def _assigned(topics: Mapping[str, Znode]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas of those partitions that are not being reassigned."""
    return dict(_each_assigned(topics))


def _each_assigned(topics: Mapping[str, Znode]) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
    for path, znode in topics.items():
        name = path.removeprefix(f"{paths.TOPICS}/")
        for partition, assignment in formats.decode_topic(name, znode.data).partitions.items():
            if not assignment.adding_replicas and not assignment.removing_replicas:
                yield TopicPartition(name, partition), assignment.replicas
