"""The runner's order: commit, apply, publish; a deposed controller applies and publishes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import define, field

from controller.model.context import ControllerContext
from controller.model.facts import BrokerGone, BrokerRegistered, BrokerUnusable, LeadershipsWritten, PartitionsMoved
from controller.model.rounds import (
    Publication,
    Rounds,
    Step,
    TellMetadata,
    apply,
    children,
    commit,
    immediately,
    read,
)
from controller.model.state_machines import PartitionPhase
from controller.node import round_runner
from controller.node.round_runner import RoundRunner
from controller.observation.observer import CommittedRound, Observer, Observers, PublishedRound
from tests.controller.conftest import ENDPOINT, TP, Bench, none_rejected
from tests.kit.told import tell_order
from transport.metadata import BrokerRegistration, LeaderAndIsr, TopicPartition
from transport.store import formats, paths
from transport.store.commit import Fenced
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import ANY_VERSION, Create, Set, Znode

NEW = LeaderAndIsr(2, 9, (2, 1), 1, 1)
SECOND = TopicPartition("orders", 1)


def write(tp: TopicPartition, leadership: LeaderAndIsr, context: ControllerContext, version: int = 0) -> Step:
    """Return a step that writes a state and tells everyone."""
    state = context.describe(tp, leadership=leadership)
    return Step(
        subjects=(tp,),
        writes=(Set(paths.partition_state(tp), formats.encode_partition_state(leadership), version),),
        facts=(LeadershipsWritten([tp], [leadership]),),
        publications=(tell_order((1, 2), state), TellMetadata(None, (state,))),
    )


@define
class Witness(Observer):
    """Channels and observer that look at store and context whenever they are called."""

    zookeeper: MemoryZooKeeper
    context: ControllerContext
    seen: list[tuple[str, int, int]] = field(factory=list)
    """The event, the leader epoch in the store, and the one in the context."""

    def look(self, what: str) -> None:
        znode = self.zookeeper.tree.read(paths.partition_state(TP))
        assert znode is not None
        stored = formats.decode_partition_state(TP, znode.data, znode.stat.version)
        self.seen.append((what, stored.leader_epoch, self.context.leadership[TP].leader_epoch))

    def follow(self, fact: BrokerRegistered | BrokerUnusable | BrokerGone) -> None:
        self.look(type(fact).__name__)

    def publish(self, publications: Sequence[Publication]) -> None:
        self.look(f"publish {len(publications)}")

    def committed(self, commit: CommittedRound) -> None:
        self.look(f"committed {commit.round}")

    def published(self, publication: PublishedRound) -> None:
        self.look(f"published {publication.round}")


def watched(bench: Bench) -> Witness:
    """Replace the bench's recorder by a witness."""
    witness = Witness(bench.seen.zookeeper, bench.context)
    bench.runner = RoundRunner(bench.store, bench.context, witness, witness)
    return witness


@pytest.mark.requirement("D10")
async def test_a_change_is_committed_then_applied_then_published(bench: Bench) -> None:
    await bench.start((1, 2))
    witness = watched(bench)
    witness.look("before")
    assert await bench.run(commit("B3", [write(TP, NEW, bench.context)], on_rejected=none_rejected)) == ()
    assert witness.seen == [
        ("before", 0, 0),
        ("committed B3", 9, 9),
        ("publish 2", 9, 9),
        ("published B3", 9, 9),
    ]


@pytest.mark.requirement("D10")
async def test_each_chunk_is_applied_when_it_is_committed_and_a_round_is_published_at_its_end(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * 501)
    steps = [write(tp, NEW, bench.context) for tp in bench.context.partitions()]
    witness = watched(bench)
    await bench.run(commit("B3", steps, on_rejected=none_rejected))
    assert witness.seen == [
        ("committed B3", 9, 9),
        ("committed B3", 9, 9),
        ("publish 1002", 9, 9),
        ("published B3", 9, 9),
    ]


@pytest.mark.requirement("D10")
async def test_a_long_round_is_published_whenever_enough_has_been_committed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_runner, "PUBLISHED_TOGETHER", 1_000)
    await bench.start(*[(1, 2)] * 1_501)
    steps = [write(tp, NEW, bench.context) for tp in bench.context.partitions()]
    await bench.run(commit("B3", steps, on_rejected=none_rejected))
    assert bench.seen.rounds == ["B3", "B3", "(B3)", "B3", "B3", "(B3)"]
    assert [len(commit.partitions) for commit in bench.seen.commits] == [500, 500, 500, 1]
    zxids = [commit.zxid for commit in bench.seen.commits]
    assert zxids == sorted(set(zxids))
    told = [state.partition for tell in bench.seen.metadata() for state in tell.partitions]
    assert told == list(range(1_501))


@pytest.mark.requirement("D10")
@pytest.mark.parametrize("overlaps", [True, False])
async def test_what_a_crash_leaves_unpublished_brokers_hear_of_from_the_next_controller(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, overlaps: bool
) -> None:
    monkeypatch.setattr(round_runner, "OVERLAPS", overlaps)
    await bench.start(*[(1, 2)] * 501)
    first, *_, last = tps = bench.context.partitions()
    before = bench.context.leadership[last]
    steps = [write(tp, NEW, bench.context) for tp in tps]
    await bench.crash(bench.run(commit("B3", steps, on_rejected=none_rejected)), after="B3")
    assert bench.seen.published == []
    await bench.fail_over()
    told = [bench.seen.latest_metadata(tp).leader_epoch for tp in (first, last)]
    # The second chunk was under way when the first one was applied.
    assert told == [NEW.leader_epoch, NEW.leader_epoch if overlaps else before.leader_epoch]


@pytest.mark.requirement("D1", "D10")
@pytest.mark.parametrize("cause", ["epoch", "no epoch"])
async def test_a_deposed_controller_writes_applies_and_publishes_nothing(bench: Bench, cause: str) -> None:
    await bench.start((1, 2))
    before = bench.context.leadership[TP]
    if cause == "epoch":
        await bench.store.multi([Set(paths.CONTROLLER_EPOCH, b"2", ANY_VERSION)])
    else:
        bench.context.epoch_version = 7
    with pytest.raises(Fenced):
        await bench.run(commit("B3", [write(TP, NEW, bench.context)], on_rejected=none_rejected))
    assert await bench.read_state(TP) == before == bench.context.leadership[TP]
    assert bench.seen.published == []
    assert bench.seen.rounds == []


@pytest.mark.requirement("D10")
async def test_a_refused_step_is_neither_applied_nor_published_and_the_others_are(bench: Bench) -> None:
    await bench.start((1, 2), (1, 2))
    before = bench.context.leadership[TP]
    stale, good = write(TP, NEW, bench.context, version=5), write(SECOND, NEW, bench.context)
    assert await bench.run(commit("B3", [stale, good], on_rejected=none_rejected)) == (stale,)
    assert bench.context.leadership == {TP: before, SECOND: NEW}
    assert {tell.state.partition for tell in bench.seen.leader_and_isr()} == {1}
    assert [state.partition for commit in bench.seen.commits for state in commit.partitions] == [1]


async def test_a_change_of_which_all_is_refused_is_no_commit(bench: Bench) -> None:
    await bench.start((1, 2))
    stale = write(TP, NEW, bench.context, version=5)
    assert await bench.run(commit("B3", [stale], on_rejected=none_rejected)) == (stale,)
    assert bench.seen.rounds == []


async def test_a_step_without_writes_is_applied_and_published_without_a_commit(bench: Bench) -> None:
    await bench.start((1, 2))
    offline = Step((TP,), facts=(PartitionsMoved([TP], PartitionPhase.OFFLINE),))
    told = Step((TP,), publications=(TellMetadata(None, (), ()),))
    await bench.run(apply("silent", [offline]))
    await bench.run(apply("told", [told]))
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    assert bench.seen.rounds == ["(told)"]


async def test_channels_hear_of_a_broker_before_anything_is_published_to_it(bench: Bench) -> None:
    await bench.start((1, 2))
    witness = watched(bench)
    broker = BrokerRegistration(9, "h", 1, 77)
    coming = Step(facts=(BrokerRegistered(broker),), publications=(TellMetadata((9,), (), ()),))
    await bench.run(apply("brokers", [coming]))
    await bench.run(apply("brokers", [Step(facts=(BrokerGone(9),))]))
    assert [what for what, _, _ in witness.seen] == ["BrokerRegistered", "publish 1", "published brokers", "BrokerGone"]


async def test_a_handler_gets_what_it_reads_and_returns_its_result(bench: Bench) -> None:
    await bench.start((1, 2))

    def handler() -> Rounds[tuple[list[Znode | None], list[str], list[str], tuple[Step, ...]]]:
        nothing = yield from read([])
        found = yield from read([paths.CONTROLLER_EPOCH, "/nowhere"])
        names = yield from children(paths.TOPICS)
        missing = yield from children("/nowhere")
        refused = yield from commit("empty", [], on_rejected=none_rejected)
        assert nothing == []
        return found, names, missing, refused

    found, names, missing, refused = await bench.run(handler())
    assert [znode and znode.data for znode in found] == [b"1", None]
    assert (names, missing, refused) == (["orders"], [], ())
    assert await bench.run(immediately(42)) == 42
    assert bench.seen.rounds == []


async def test_what_a_handler_raises_comes_out(bench: Bench) -> None:
    def handler() -> Rounds[None]:
        yield from read([paths.CONTROLLER_EPOCH])
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        await bench.run(handler())


@pytest.mark.requirement("A7")
async def test_a_commit_says_what_changed_and_what_versions_it_left(bench: Bench) -> None:
    await bench.start((1, 2))
    create = Step((TP,), writes=(Create("/klamm/any"),))
    await bench.run(commit("U1", [create, write(TP, NEW, bench.context)], on_rejected=none_rejected))
    [seen] = bench.seen.commits
    znode = await bench.znode("/klamm/any")
    assert (seen.event, seen.round, seen.controller_epoch, seen.zxid) == ("test", "U1", 1, znode.stat.czxid)
    assert set(seen.partitions) == {bench.context.describe(TP)}
    assert seen.topic_versions == (("orders", 0),)


async def test_several_observers_see_the_same(bench: Bench) -> None:
    await bench.start((1, 2))
    first, second = Witness(bench.seen.zookeeper, bench.context), Witness(bench.seen.zookeeper, bench.context)
    bench.runner = RoundRunner(bench.store, bench.context, first, Observers((first, second)))
    await bench.run(commit("B3", [write(TP, NEW, bench.context)], on_rejected=none_rejected))
    assert [what for what, _, _ in second.seen] == ["committed B3", "published B3"]
    assert [what for what, _, _ in first.seen] == ["committed B3", "publish 2", "published B3"]
    assert bench.context.controller == ENDPOINT
