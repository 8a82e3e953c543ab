"""A controller's rounds on the memory store, without a network: what is published is kept in a list.

Every test on the bench also holds what must hold always: brokers hear only of what is in the store, and each commit
keeps the invariants of a partition's leadership.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from attrs import define, evolve, field
from structlog.testing import capture_logs

from controller.events import BrokerChange, ControllerEvent, RoomSeen, event_of
from controller.gathered import CaughtUp
from controller.handlers.failover import failover
from controller.model.context import ControllerContext
from controller.model.facts import BrokerGone, BrokerRegistered, BrokerUnusable
from controller.model.rounds import (
    Publication,
    Rounds,
    TellLeaderAndIsr,
    TellMetadata,
    TellStopReplica,
)
from controller.node import dispatch
from controller.node.round_runner import RoundRunner
from controller.observation.observer import CommittedRound, Observer, PublishedRound
from tests.controller.meddler import delete_topic
from tests.kit.told import Order, Single, Stop, singly
from transport.errors import ErrorCode
from transport.host import Host
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerEndpoint,
    PartitionError,
    PartitionState,
    ReassignablePartition,
    Request,
)
from transport.metadata import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    BrokerRegistration,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import FORBIDDEN, Create, Delete, Set, Znode, ensure_paths

T = TypeVar("T")
R = TypeVar("R")

ENDPOINT = BrokerEndpoint(1001, "127.0.0.1", 1)
HOST = Host(lambda: 0, random.Random(1))
TP = TopicPartition("orders", 0)
BROKERS = (1, 2, 3, 4, 5, 6)


class Crashed(Exception):
    """The controller died."""


@define
class Recorder:
    """Takes the part of channels and observer, and remembers."""

    zookeeper: MemoryZooKeeper
    published: list[Single] = field(factory=list)
    commits: list[CommittedRound] = field(factory=list)
    rounds: list[str] = field(factory=list)
    """Names of rounds as they were committed, and in parentheses as they were published."""

    crash_after: str | None = None
    """The moment of the crash, in the notation of `rounds`."""

    def follow(self, fact: BrokerRegistered | BrokerUnusable | BrokerGone) -> None:
        """Brokers are known from the context."""

    def publish(self, publications: Sequence[Publication]) -> None:
        """Remember what was published, one partition at a time; it must be in the store."""
        self.published += [each for publication in publications for each in singly(publication)]
        for publication in publications:
            for state in states_of(publication):
                self._require_durable(state)

    def see(self, mark: str) -> None:
        """Remember a round."""
        self.rounds.append(mark)
        if mark == self.crash_after:
            self.crash_after = None
            raise Crashed(mark)

    def clear(self) -> None:
        """Forget what was seen."""
        self.published.clear()
        self.commits.clear()
        self.rounds.clear()

    # --- questions ----------------------------------------------------------------------------------------------

    def stopped(self, *, delete: bool) -> set[int]:
        """Return the brokers that were told to stop a replica."""
        stops = [p for p in self.published if isinstance(p, Stop) and p.partition.delete is delete]
        return {broker_id for stop in stops for broker_id in stop.brokers}

    def leader_and_isr(self) -> list[Order]:
        """Return what was told to somebody of leading and following."""
        return [p for p in self.published if isinstance(p, Order) and p.brokers]

    def metadata(self) -> list[TellMetadata]:
        """Return what was told of the cluster."""
        return [p for p in self.published if isinstance(p, TellMetadata)]

    def latest_metadata(self, tp: TopicPartition) -> PartitionState:
        """Return what every broker was told last of a partition."""
        states = [state for p in self.metadata() if p.brokers is None for state in p.partitions]
        return next(state for state in reversed(states) if state.tp == tp)

    # --- what always holds --------------------------------------------------------------------------------------

    def _require_durable(self, state: PartitionState) -> None:
        tp = state.tp
        if state.leader == LEADER_DURING_DELETE:
            topic = self.zookeeper.tree.read(paths.topic(tp.topic))
            if self.zookeeper.tree.read(paths.delete_topic(tp.topic)) is not None:
                return
            assert topic is None or formats.decode_topic(tp.topic, topic.data).topic_id != state.topic_id
            return
        znode = self.zookeeper.tree.read(paths.partition_state(tp))
        assert znode is not None, f"brokers hear of {tp}, which is not in the store"
        if znode == FORBIDDEN:
            return
        stored = formats.decode_partition_state(tp, znode.data, znode.stat.version)
        told = (state.leader_epoch, state.partition_epoch, state.leader, state.isr)
        assert told == (stored.leader_epoch, stored.partition_epoch, stored.leader, stored.isr)

    def require_invariants(self) -> None:
        """Epochs never go down within a topic id, a leader is in the ISR, the ISR is within RS.

        Where the ISR is empty, its members were expelled because they had lost their data.
        """
        empty: set[tuple[str, int]] = set()
        epochs: dict[tuple[str, int], tuple[int, int, int]] = {}
        for round_, state in ((commit.round, state) for commit in self.commits for state in commit.partitions):
            key = state.topic_id, state.partition
            now = state.controller_epoch, state.leader_epoch, state.partition_epoch
            before = epochs.get(key, now)
            assert all(a >= b for a, b in zip(now, before, strict=True)), f"epochs of {key}: {before}, then {now}"
            epochs[key] = now
            assert state.leader in (NO_LEADER, *state.isr)
            if round_ in {"expel", "loaded"} and not state.isr:
                empty.add(key)
            assert state.isr or key in empty
            assert len(set(state.isr)) == len(state.isr)
            assert set(state.isr) <= set(state.replicas)
        zxids = [commit.zxid for commit in self.commits if commit.round != "loaded"]
        assert zxids == sorted(zxids)


def states_of(publication: Publication | Single) -> tuple[PartitionState, ...]:
    """Return the states of partitions that a publication carries."""
    match publication:
        case Order(state=state):
            return (state,)
        case TellLeaderAndIsr(states=states):
            return tuple(states)
        case TellMetadata(partitions=partitions):
            return partitions
        case TellStopReplica() | Stop():
            return ()


def none_rejected(rejected: Sequence[object]) -> None:
    """Fail the test: the store should accept what it commits."""
    pytest.fail(f"rejected: {rejected}")


@define
class _Observer(Observer):
    seen: Recorder

    def committed(self, commit: CommittedRound) -> None:
        self.seen.commits.append(commit)
        self.seen.see(commit.round)

    def published(self, publication: PublishedRound) -> None:
        self.seen.see(f"({publication.round})")


@define
class Bench:
    """One controllership and the store below it."""

    store: MemoryStore
    context: ControllerContext
    runner: RoundRunner
    seen: Recorder
    do_brokers_answer: bool = True
    """Whether brokers that are asked for the room on their disks answer: without it, as Kafka's before 3.3."""

    # --- the controller -----------------------------------------------------------------------------------------

    async def run(self, rounds: Rounds[T]) -> T:
        """Run a handler."""
        return await self.runner.run("test", rounds)

    async def handle(self, event: ControllerEvent) -> object:
        """Process an event and what it calls for; return the answer to the event."""
        answer = await self.run(dispatch.rounds_for(self.context, event, HOST))
        for follow_up in dispatch.follow_ups(self.context, event, answer, CaughtUp()):
            await self.handle(follow_up)
        if self.do_brokers_answer and self.context.rollouts.awaited:
            await self.handle(RoomSeen((), untold=BROKERS))
        return answer

    async def ask(self, request: Request[R], answer: type[R]) -> R:
        """Let the controller answer a request of any api."""
        event = event_of(request)
        event.answer(await self.handle(event))
        result = await event.reply.wait()
        assert isinstance(result, answer)
        return result

    async def move(self, tp: TopicPartition, replicas: tuple[int, ...] | None) -> PartitionError:
        """Ask for a move through the admin API, or with None for a cancel."""
        request = AlterPartitionReassignmentsRequest((ReassignablePartition(*tp, replicas),))
        [result] = (await self.ask(request, AlterPartitionReassignmentsResponse)).partitions
        return result

    async def start(
        self, *partitions: Sequence[int], brokers: Sequence[int] = BROKERS, storage_id: str | None = None
    ) -> None:
        """Take office in a cluster of `brokers` with one topic, and forget how."""
        await self.register(*brokers, storage_id=storage_id)
        if partitions:
            await self.write_topic("orders", *partitions)
        await self.run(failover(self.context, iter(())))
        self.seen.clear()

    async def begin_move(
        self, origin: tuple[int, ...], target: tuple[int, ...], brokers: Sequence[int] = BROKERS
    ) -> PartitionError:
        """Take office in a cluster with one partition, forget how, and begin to move it."""
        await self.start(origin, brokers=brokers)
        return await self.move(TP, target)

    async def fail_over(self) -> None:
        """Replace the controllership by the next one."""
        epoch = self.context.epoch + 1
        await self.store.multi([Set(paths.CONTROLLER_EPOCH, formats.encode_controller_epoch(epoch), -1)])
        self.context = ControllerContext(ENDPOINT, epoch, epoch, config=self.context.config)
        self.runner.context = self.context
        await self.run(failover(self.context, dispatch.new_ids(HOST)))

    async def crash(self, happening: Awaitable[object], *, after: str) -> None:
        """Let the controller die while it processes something: as soon as "B3" is committed, or "(B3)" published."""
        self.seen.crash_after = after
        with pytest.raises(Crashed):
            await happening

    # --- brokers ------------------------------------------------------------------------------------------------

    async def register(self, *broker_ids: int, storage_id: str | None = None) -> None:
        """Register brokers."""
        for broker_id in broker_ids:
            broker = BrokerRegistration(broker_id, "127.0.0.1", 9000 + broker_id % 10_000, -1, storage_id=storage_id)
            data = formats.encode_broker(broker, 0)
            await self.store.multi([Create(paths.broker(broker_id), data, ephemeral=True)])

    async def unregister(self, *broker_ids: int) -> None:
        """Take brokers' registrations away."""
        for broker_id in broker_ids:
            await self.store.multi([Delete(paths.broker(broker_id))])

    async def kill(self, *broker_ids: int) -> None:
        """Let brokers die together, and let the controller see it."""
        await self.unregister(*broker_ids)
        await self.handle(BrokerChange())

    async def revive(self, *broker_ids: int, storage_id: str | None = None) -> None:
        """Let brokers come back, and let the controller see it."""
        await self.register(*broker_ids, storage_id=storage_id)
        await self.handle(BrokerChange())

    async def alter_isr(self, tp: TopicPartition, *isr: int) -> AlterPartitionResult:
        """Let a partition's leader ask for an ISR; it must be granted."""
        now = self.context.leadership[tp]
        topic_id = self.context.topics[tp.topic].znode.topic_id or ""
        item = AlterPartitionItem(tp.topic, topic_id, tp.partition, now.leader_epoch, isr, now.partition_epoch)
        request = AlterPartitionRequest(now.leader, self.context.brokers[now.leader].epoch, (item,))
        [result] = (await self.ask(request, AlterPartitionResponse)).partitions
        assert result.error is ErrorCode.NONE
        return result

    # --- the store ----------------------------------------------------------------------------------------------

    async def write_topic(self, name: str, *replicas: Sequence[int]) -> None:
        """Write a new topic's znode."""
        partitions = {number: ReplicaAssignment(tuple(item)) for number, item in enumerate(replicas)}
        data = formats.encode_topic(formats.TopicZnode(partitions, "id-of-" + name))
        await self.store.multi([Create(paths.topic(name), data)])

    async def delete_topic(self, name: str, partitions: int) -> None:
        """Delete a topic's znodes behind the controller's back."""
        await self.store.multi(delete_topic(name, partitions))

    async def change_topic(self, name: str, partition: int, assignment: ReplicaAssignment) -> None:
        """Write one partition's assignment behind the controller's back."""
        znode = await self.znode(paths.topic(name))
        topic = formats.decode_topic(name, znode.data)
        topic = evolve(topic, partitions={**topic.partitions, partition: assignment})
        await self.store.multi([Set(paths.topic(name), formats.encode_topic(topic), znode.stat.version)])

    async def read(self, path: str) -> Znode | None:
        """Read a znode."""
        [znode] = await self.store.read([path])
        return znode

    async def znode(self, path: str) -> Znode:
        """Read a znode that must be there."""
        znode = await self.read(path)
        assert znode is not None
        return znode

    async def read_state(self, tp: TopicPartition) -> LeaderAndIsr:
        """Read a partition's state from the store."""
        znode = await self.znode(paths.partition_state(tp))
        return formats.decode_partition_state(tp, znode.data, znode.stat.version)

    async def leader_and_isr(self, tp: TopicPartition = TP) -> tuple[int, tuple[int, ...]]:
        """Read a partition's leader and ISR from the store."""
        state = await self.read_state(tp)
        return state.leader, state.isr

    async def read_assignment(self, tp: TopicPartition) -> ReplicaAssignment:
        """Read a partition's assignment from the store."""
        znode = await self.znode(paths.topic(tp.topic))
        return formats.decode_topic(tp.topic, znode.data).partitions[tp.partition]

    async def write_state(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """Write a partition's state behind the controller's back."""
        await self.store.multi([Set(paths.partition_state(tp), formats.encode_partition_state(state), -1)])

    async def request_moves(self, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
        """Write `/admin/reassign_partitions`, as Kafka's tools do."""
        data = formats.encode_reassign_partitions(targets)
        await self.store.multi([Create(paths.REASSIGN_PARTITIONS, data)])

    async def requested_moves(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """Read `/admin/reassign_partitions`; None if it is not there."""
        znode = await self.read(paths.REASSIGN_PARTITIONS)
        return None if znode is None else formats.decode_reassign_partitions(znode.data)


@pytest.fixture
def clock() -> Callable[[], int]:
    """Tell the store what time it is, in ms since 1970: always 0."""
    return lambda: 0


@asynccontextmanager
async def new_bench(clock: Callable[[], int]) -> AsyncIterator[Bench]:
    """Make controllership 1 of a cluster without brokers or topics."""
    zookeeper = MemoryZooKeeper(clock)
    async with zookeeper.session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        await store.multi([Create(paths.CONTROLLER_EPOCH, b"0")])
        await store.multi([Set(paths.CONTROLLER_EPOCH, b"1", 0)])
        context = ControllerContext(ENDPOINT, 1, 1)
        seen = Recorder(zookeeper)
        yield Bench(store, context, RoundRunner(store, context, seen, _Observer(seen)), seen)
        seen.require_invariants()


@pytest.fixture
async def bench(clock: Callable[[], int]) -> AsyncIterator[Bench]:
    """Give the test controllership 1 of a cluster without brokers or topics."""
    async with new_bench(clock) as bench:
        yield bench


@pytest.fixture
def all_transitions_are_legal() -> Iterator[None]:
    """Fail a test in which a partition or a replica was to go into a state that may not follow."""
    with capture_logs() as logs:
        yield
    assert [line for line in logs if line["event"].startswith("illegal")] == []
