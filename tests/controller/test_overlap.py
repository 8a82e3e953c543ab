"""While the store writes a chunk, the one before is applied and the next is decided, unless a conflict prevents it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count

import pytest
import trio.testing
from attrs import define, field, frozen

from controller.model.facts import BrokerGone, BrokerRegistered, BrokerUnusable, LeadershipsWritten
from controller.model.rounds import Decision, Publication, Rounds, Step, TellMetadata, commit
from controller.node import round_runner
from controller.node.round_runner import RoundRunner
from controller.observation.observer import CommittedRound, Observer
from tests.controller.conftest import Bench, none_rejected
from transport.metadata import LeaderAndIsr, TopicPartition
from transport.store import formats, paths
from transport.store.commit import Fenced
from transport.store.protocol import ANY_VERSION, Committed, MetadataStore, Op, Set
from transport.store.timed import TimedStore

NEW = LeaderAndIsr(2, 9, (2, 1), 1, 1)
CHUNK = 500


@define
class Events(Observer):
    """Channels and observer that remember, together with a store, what happens in which order."""

    seen: list[str] = field(factory=list)
    is_faulty: bool = False

    def committed(self, commit: CommittedRound) -> None:
        """Remember that a chunk has been applied."""
        if self.is_faulty:
            raise ValueError("a fault")
        self.seen.append(f"applied {commit.partitions[0].partition // CHUNK}")

    def follow(self, fact: BrokerRegistered | BrokerUnusable | BrokerGone) -> None:
        """Ignore brokers."""

    def publish(self, publications: Sequence[Publication]) -> None:  # noqa: ARG002
        """Remember that something has been published."""
        self.seen.append("published")


@frozen
class Slow(TimedStore):
    """A store that says when a multi is sent and answered; `before` is called with the number of each."""

    events: Events
    before: Callable[[int], None]
    numbers: Iterator[int] = field(factory=count)

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Apply all of `ops` or none."""
        number = next(self.numbers)
        self.before(number)
        self.events.seen.append(f"sent {number}")
        await trio.testing.wait_all_tasks_blocked()
        committed = await self.store.multi(ops, known=known)
        self.events.seen.append(f"answered {number}")
        return committed


def slowed(bench: Bench, before: Callable[[int], None] = lambda _: None) -> Events:
    """Let the bench's store and runner say what they do."""
    events = Events()
    store: MetadataStore = Slow(bench.store, lambda _: None, events, before)
    bench.runner = RoundRunner(store, bench.context, events, events)
    return events


def steps(bench: Bench, tps: Sequence[TopicPartition]) -> list[Step]:
    """Return steps that write a state each."""
    return [_step(bench, tp, 0) for tp in tps]


def _step(bench: Bench, tp: TopicPartition, version: int) -> Step:
    told = TellMetadata(None, (bench.context.describe(tp, leadership=NEW),))
    write = Set(paths.partition_state(tp), formats.encode_partition_state(NEW), version)
    return Step((tp,), (write,), (LeadershipsWritten([tp], [NEW]),), (told,))


@pytest.mark.requirement("D10")
@pytest.mark.parametrize("overlaps", [True, False])
async def test_a_chunk_is_applied_while_the_next_one_is_committed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, overlaps: bool
) -> None:
    monkeypatch.setattr(round_runner, "OVERLAPS", overlaps)
    monkeypatch.setattr(round_runner, "PUBLISHED_TOGETHER", 2 * CHUNK)
    await bench.start(*[(1, 2)] * (3 * CHUNK))
    events = slowed(bench)
    await bench.run(commit("B3", steps(bench, bench.context.partitions()), on_rejected=none_rejected))
    one_by_one = [
        *("sent 0", "answered 0", "applied 0"),
        *("sent 1", "answered 1", "applied 1", "published"),
        *("sent 2", "answered 2", "applied 2", "published"),
    ]
    overlapping = [
        *("sent 0", "answered 0"),
        *("sent 1", "applied 0", "answered 1"),
        *("sent 2", "applied 1", "published", "answered 2"),
        *("applied 2", "published"),
    ]
    assert events.seen == (overlapping if overlaps else one_by_one)


async def test_who_reads_between_two_chunks_sees_all_that_the_store_has(bench: Bench, nursery: trio.Nursery) -> None:
    await bench.start(*[(1, 2)] * (3 * CHUNK))
    tps = bench.context.partitions()

    async def read() -> None:
        async with bench.runner.turn:
            led = list(map(bench.context.leadership.__getitem__, tps))
            events.seen.append(f"read {led.count(NEW) // CHUNK}")

    def before(number: int) -> None:
        if number == 1:
            nursery.start_soon(read)

    events = slowed(bench, before)
    await bench.run(commit("B3", steps(bench, tps), on_rejected=none_rejected))
    assert events.seen == [
        *("sent 0", "answered 0"),
        *("sent 1", "applied 0", "answered 1", "applied 1", "read 2"),
        *("sent 2", "answered 2", "applied 2", "published"),
    ]


@pytest.mark.requirement("D10")
async def test_after_a_conflict_nothing_is_sent_before_the_rest_is_applied(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * (2 * CHUNK))
    first, *others = bench.context.partitions()
    events = slowed(bench)
    stale = _step(bench, first, 5)
    assert await bench.run(commit("B3", [stale, *steps(bench, others)], on_rejected=none_rejected)) == (stale,)
    # What is left of the first chunk was sent again.
    assert events.seen == [
        "sent 0",
        "sent 1",
        "answered 1",
        "applied 0",
        "sent 2",
        "answered 2",
        "applied 1",
        "published",
    ]
    assert set(bench.context.leadership.values()) == {NEW, bench.context.leadership[first]}


@pytest.mark.requirement("D10")
async def test_chunks_about_the_same_partition_do_not_overlap(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * CHUNK)
    tps = bench.context.partitions()
    events = slowed(bench)
    await bench.run(commit("B3", [*steps(bench, tps), _step(bench, tps[-1], 1)], on_rejected=none_rejected))
    assert events.seen[:4] == ["sent 0", "answered 0", "applied 0", "sent 1"]


@pytest.mark.requirement("D1", "D10")
async def test_a_controller_deposed_between_two_chunks_has_applied_what_was_committed_and_no_more(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * (2 * CHUNK))
    tps = bench.context.partitions()
    before = bench.context.leadership[tps[-1]]

    def depose(number: int) -> None:
        if number:
            bench.seen.zookeeper.commit([Set(paths.CONTROLLER_EPOCH, b"2", ANY_VERSION)], bench.store.session_id)

    slowed(bench, depose)
    with pytest.raises(Fenced):
        await bench.run(commit("B3", steps(bench, tps), on_rejected=none_rejected))
    assert {bench.context.leadership[tp] for tp in tps[:CHUNK]} == {NEW}
    assert {bench.context.leadership[tp] for tp in tps[CHUNK:]} == {before}


async def test_a_fault_while_a_chunk_is_applied_comes_out_as_it_is(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * (2 * CHUNK))
    events = slowed(bench)
    events.is_faulty = True
    with pytest.raises(ValueError, match="a fault"):
        await bench.run(commit("B3", steps(bench, bench.context.partitions()), on_rejected=none_rejected))


def in_parts(bench: Bench, events: Events, *, stale: Collection[TopicPartition] = ()) -> Rounds[tuple[Step, ...]]:
    """Write all states in one round, of which all but the first chunk is decided later."""
    tps = bench.context.partitions()

    def deciding(start: int) -> Decision:
        def decide() -> list[Step]:
            events.seen.append(f"decided {start // CHUNK}")
            return [_step(bench, tp, 5 if tp in stale else 0) for tp in tps[start : start + CHUNK]]

        return decide

    first, *later = map(deciding, range(0, len(tps), CHUNK))
    return commit("B3", first(), on_rejected=none_rejected, later=later)


@pytest.mark.requirement("D10")
@pytest.mark.parametrize("overlaps", [True, False])
async def test_a_part_is_decided_while_the_one_before_is_committed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, overlaps: bool
) -> None:
    monkeypatch.setattr(round_runner, "OVERLAPS", overlaps)
    await bench.start(*[(1, 2)] * (3 * CHUNK))
    events = slowed(bench)
    assert await bench.run(in_parts(bench, events)) == ()
    overlapping = [
        *("decided 0", "sent 0", "decided 1", "answered 0"),
        *("sent 1", "applied 0", "decided 2", "answered 1"),
        *("sent 2", "applied 1", "answered 2", "applied 2", "published"),
    ]
    one_by_one = [
        *("decided 0", "sent 0", "answered 0", "decided 1", "applied 0"),
        *("sent 1", "answered 1", "decided 2", "applied 1"),
        *("sent 2", "answered 2", "applied 2", "published"),
    ]
    assert events.seen == (overlapping if overlaps else one_by_one)
    assert set(bench.context.leadership.values()) == {NEW}


@pytest.mark.requirement("D10")
async def test_what_is_refused_of_one_part_does_not_touch_the_next(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * (2 * CHUNK))
    first, *others = bench.context.partitions()
    events = slowed(bench)
    refused = await bench.run(in_parts(bench, events, stale=[first]))
    assert [step.subjects for step in refused] == [(first,)]
    assert {tp for tp, state in bench.context.leadership.items() if state == NEW} == set(others)


async def test_a_fault_while_a_part_is_decided_comes_out_as_it_is(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * (2 * CHUNK))
    events = slowed(bench)

    def decide() -> list[Step]:
        raise ValueError("a fault")

    first = steps(bench, bench.context.partitions())
    with pytest.raises(ValueError, match="a fault"):
        await bench.run(commit("B3", first, on_rejected=none_rejected, later=[decide]))
    assert "published" not in events.seen


async def test_parts_without_writes_are_told_in_few_requests(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * (3 * CHUNK))
    tps = bench.context.partitions()

    def telling(tp: TopicPartition) -> Decision:
        return lambda: [Step((tp,), publications=(TellMetadata(None, (bench.context.describe(tp),)),))]

    await bench.run(commit("B3", [], on_rejected=none_rejected, later=list(map(telling, tps))))
    assert bench.seen.rounds == ["(B3)"]
    assert [state.tp for tell in bench.seen.metadata() for state in tell.partitions] == tps
