"""The runner that drives an event's rounds against the store, the context and the channels.

Each chunk of a change is committed (fenced by the version of `/controller_epoch`), then applied, while the store writes
the next one. What it tells brokers is published when the round ends, or when many steps have been committed. So memory
never runs ahead of the store, brokers never learn of anything that is not durable, and a large round reaches each
broker in a few large requests. If the controller loses its office between commit and publication, its successor tells
brokers everything anyway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar, assert_never

import trio
from attrs import define, field

from controller.model.batches import Batch, batch_of
from controller.model.context import ControllerContext
from controller.model.facts import BrokerGone, BrokerRegistered, BrokerUnusable
from controller.model.namesakes import without_waiting
from controller.model.rounds import (
    Change,
    ChangeOutcome,
    Children,
    Decision,
    Effect,
    Loaded,
    Publication,
    Read,
    ReadAhead,
    Rounds,
    Step,
)
from controller.node.collector import paused_collector
from controller.observation.instruments import Application, Instrument
from controller.observation.observer import CommittedRound, DecidedRound, Observer, PublishedRound
from transport.log import get_logger
from transport.store import paths
from transport.store.chunks import plan_chunks
from transport.store.commit import ChunkResult, commit_chunk
from transport.store.protocol import Check, MetadataStore, Rejected

T = TypeVar("T")

log = get_logger(__name__)

PUBLISHED_TOGETHER: Final = 10_000
"""The number of committed steps that a round publishes before its end. A request has room for as many partitions."""


OVERLAPS: Final = True
"""Whether a chunk is committed while the one before is applied and published."""


class Publisher(Protocol):
    """The interface through which publications reach the brokers."""

    def follow(self, fact: BrokerRegistered | BrokerUnusable | BrokerGone) -> None:
        """Start or stop sending to a broker that has registered, perhaps under a new epoch, or is gone."""

    def publish(self, publications: Sequence[Publication]) -> None:
        """Accept publications without blocking."""


@define
class RoundRunner:
    """Runs one controllership's handlers, one at a time."""

    store: MetadataStore
    context: ControllerContext
    channels: Publisher
    observer: Observer
    instrument: Instrument = field(factory=Instrument)
    turn: trio.Lock = field(factory=trio.Lock, init=False)
    """Held while a chunk is committed. Nobody who holds it sees less than the store has."""

    _event: str = field(default="", init=False)
    _event_id: str = field(default="", init=False)

    async def run(self, event: str, rounds: Rounds[T], event_id: str = "") -> T:
        """Run the handler of an event to its end and return its result.

        Raises what the handler raises, Fenced if another controller was elected, or another StoreError.
        """
        self._event, self._event_id = event, event_id
        with paused_collector():
            return await self._run(rounds)

    @property
    def event(self) -> str:
        """The name of the event that is being processed, or was last."""
        return self._event

    async def observe(self, rounds: Rounds[T]) -> T:
        """Run rounds that only read, beside those of an event; the caller holds the `turn`."""
        return await self._run(rounds)

    async def _run(self, rounds: Rounds[T]) -> T:
        reply: object = None
        while True:
            try:
                effect = rounds.send(reply)
            except StopIteration as stop:
                result: T = stop.value
                return result
            reply = await self._perform(effect)

    async def _perform(self, effect: Effect) -> object:
        match effect:
            case Read():
                return await self.store.read(effect.paths, watch=effect.watch)
            case ReadAhead():
                await self.store.read_ahead(effect.paths)
                return None
            case Children():
                return await self.store.children(effect.paths, watch=effect.watch)
            case Change():
                return await self._change(effect)
            case Loaded():
                found = Batch(self.context, [Step((effect.tp,))])
                self._commit_seen("loaded", effect.zxid, found)
                return None
            case _:
                assert_never(effect)

    async def _change(self, change: Change) -> ChangeOutcome:
        done = _Round(self, change.round, deque(change.later))
        done.decided(change.steps)
        while (members := done.next_chunk()) is not None:
            if not done.may_overlap(members):
                done.settle()
            async with self.turn:
                done.answered(members, await self._commit(members, done))
                if self.turn.statistics().tasks_waiting:
                    done.settle()
        done.settle()
        done.publish()
        await trio.lowlevel.checkpoint()
        return ChangeOutcome(tuple(done.refused), tuple(done.rejected))

    async def _commit(self, members: Batch, done: _Round) -> ChunkResult:
        """Commit a chunk. While the store writes, the one before is applied and published, and the next is decided."""
        fence = Check(paths.CONTROLLER_EPOCH, self.context.epoch_version)
        commit = commit_chunk(self.store, members.groups, fence, members.known)
        return await (_while(commit, done.go_on) if done.can_go_on else commit)

    def decided(self, name: str, steps: Batch) -> None:
        """Let the observer know what has been decided."""
        self.observer.decided(DecidedRound(self._event, name, self.context.epoch, steps.subjects, self._event_id))

    def apply(self, name: str, steps: Batch, zxid: int | None = None) -> None:
        """Apply the steps of a round that were committed, or that write nothing."""
        facts = tuple(steps.facts())
        self.instrument.applying(self.context, Application(self._event_id, self._event, name, zxid, steps, facts))
        apply = self.context.apply
        for fact in facts:
            apply(fact)
            if isinstance(fact, (BrokerRegistered, BrokerUnusable, BrokerGone)):
                self.channels.follow(fact)
        if zxid is not None:
            self._commit_seen(name, zxid, steps)

    def publish(self, name: str, batches: Sequence[Batch]) -> None:
        """Publish steps of a round that have been applied."""
        publications = [publication for steps in batches for publication in steps.publications()]
        if publications:
            self.channels.publish(without_waiting(self.context, publications))
            subjects = tuple([tp for steps in batches for tp in steps.subjects])
            published = PublishedRound(self._event, name, self.context.epoch, subjects, self._event_id)
            self.observer.published(published)

    def _commit_seen(self, name: str, zxid: int, steps: Batch) -> None:
        context = self.context
        topics = dict.fromkeys([tp.topic for tp in steps.subjects])
        versions = tuple((name, context.topics[name].version) for name in topics if name in context.topics)
        committed = CommittedRound(
            self._event, name, context.epoch, zxid, tuple(steps.states()), versions, self._event_id
        )
        self.observer.committed(committed)


@define
class _Round:
    """A round whose chunks are being committed, one after the other."""

    runner: RoundRunner
    name: str
    _undecided: deque[Decision]
    _chunks: deque[Batch] = field(factory=deque, init=False)
    """The steps that have been decided, and not sent to the store."""

    refused: list[Step] = field(factory=list, init=False)
    rejected: list[Step] = field(factory=list, init=False)
    _unsettled: tuple[Batch, ChunkResult] | None = field(default=None, init=False)
    """The last chunk with its result, while it has not been applied."""

    _unpublished: list[Batch] = field(factory=list, init=False)

    @property
    def can_go_on(self) -> bool:
        """Whether there is something to do while the store writes a chunk."""
        return self._unsettled is not None or (OVERLAPS and bool(self._undecided))

    def go_on(self) -> None:
        """Apply the chunk that the store has answered last, and decide what it is to write next."""
        self.settle()
        self._decide()

    def next_chunk(self) -> Batch | None:
        """Return the next chunk; None if that was all."""
        self._decide()
        return self._chunks.popleft() if self._chunks else None

    def _decide(self) -> None:
        while self._undecided and not self._chunks:
            self.decided(self._undecided.popleft()())

    def decided(self, decision: Sequence[Step]) -> None:
        """Apply the steps of a part that write nothing, and cut the others into chunks."""
        steps = batch_of(self.runner.context, decision)
        self.runner.decided(self.name, steps)
        unwritten, written = _parted(steps)
        self._apply(unwritten)
        limits = self.runner.context.config.request_limits
        chunks = plan_chunks(written.groups, max_ops=limits.operations, max_bytes=limits.chunk)
        self._chunks += map(written.only, chunks)

    def may_overlap(self, later: Batch) -> bool:
        """Return whether a chunk may be committed before the last one has been applied.

        Both must be about different partitions, and all of the last one must have been committed.
        """
        if self._unsettled is None:
            return True
        members, result = self._unsettled
        return OVERLAPS and len(result.committed) == len(members) and set(members.subjects).isdisjoint(later.subjects)

    def answered(self, members: Batch, result: ChunkResult) -> None:
        """Take the store's answer about a chunk."""
        self._unsettled = members, result

    def settle(self) -> None:
        """Apply what is committed of the last chunk, and publish if that is much by now."""
        if self._unsettled is None:
            return
        (members, result), self._unsettled = self._unsettled, None
        self._apply(members.only(result.committed), result.zxid)
        self.refused += [members[i] for i in result.conflicts]
        self.rejected += [members[i] for i in result.rejected]
        _log_rejections(self.name, list(result.rejected.values()))

    def _apply(self, steps: Batch, zxid: int | None = None) -> None:
        """Apply steps, and publish if that is much by now."""
        self.runner.apply(self.name, steps, zxid)
        self._unpublished.append(steps)
        if sum(map(len, self._unpublished)) >= PUBLISHED_TOGETHER:
            self.publish()

    def publish(self) -> None:
        """Publish what has been applied."""
        batches, self._unpublished = self._unpublished, []
        self.runner.publish(self.name, batches)


async def _while(commit: Awaitable[ChunkResult], settle: Callable[[], None]) -> ChunkResult:
    """Return a commit's result, having settled what was before it as soon as it was under way.

    Raises the first error of both: the nursery would raise it in a group.
    """
    errors: list[Exception] = []
    results: list[ChunkResult] = []

    async def settling() -> None:
        try:
            settle()
        except Exception as error:  # noqa: BLE001 - it is raised below
            errors.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(settling)
        try:
            results.append(await commit)
        except Exception as error:  # noqa: BLE001 - it is raised below
            errors.append(error)
    if errors:
        raise errors[0]
    return results[0]


def _parted(steps: Batch) -> tuple[Batch, Batch]:
    """Return the steps without writes, and those with some."""
    unwritten = [i for i, group in enumerate(steps.groups) if not group]
    written = [i for i, group in enumerate(steps.groups) if group]
    return steps.only(unwritten), steps.only(written)


def _log_rejections(name: str, rejections: Sequence[Rejected]) -> None:
    """Log the writes that the store will never accept, one line per batch."""
    if rejections:
        text = "set aside: the store will never accept this"
        log.error(text, round=name, fault=str(rejections[0]), more=len(rejections) - 1)
