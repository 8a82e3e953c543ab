"""Concurrent writes while the controller decides: seen, adopted where possible, never waited for in vain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

import pytest
import trio
from attrs import define
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.events import BrokerChange, PartitionModifications, TopicChange, ZkPartitionReassignment
from controller.handlers.failover import failover
from controller.handlers.leadership import ControllerMoved, refresh
from controller.model.state_machines import PartitionPhase
from tests.controller.conftest import TP, Bench
from tests.controller.meddler import Meddler, delete_topic, set_assignments, set_state
from tests.kit.passing_store import PassingStore
from transport.errors import ErrorCode
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.commit import Fenced
from transport.store.protocol import Committed, ConnectionLost, Create, Delete, Op, Set, Znode

ORIGIN, TARGET, BOTH = (1, 2, 3), (4, 5, 6), (4, 5, 6, 1, 2, 3)
SECOND = TopicPartition("orders", 1)


async def meddle(bench: Bench, path: str, *ops: Op, during: Awaitable[object], earlier: int = 0) -> None:
    """Let `ops` come before a write of `path` (the first, but for `earlier` ones) while something is processed.

    That must come to an end.
    """
    meddler = Meddler(bench.store, path, ops, earlier)
    bench.runner.store = meddler
    with trio.fail_after(20):
        await during
    bench.runner.store = bench.store
    assert not meddler.ops, f"nobody wrote {path}"


# --- states of partitions ---------------------------------------------------------------------------------------


@pytest.mark.requirement("D10")
async def test_a_state_that_changed_is_read_and_decided_again(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN)
    behind = replace(await bench.read_state(TP), isr=(1, 3))
    await bench.unregister(1)
    await meddle(bench, paths.partition_state(TP), set_state(TP, behind), during=bench.handle(BrokerChange()))
    state, other = await bench.read_state(TP), await bench.read_state(SECOND)
    assert (state.leader, state.isr) == (3, (3,))
    assert (other.leader, other.isr, other.leader_epoch) == (2, (2, 3), 1)
    assert bench.context.leadership == {TP: state, SECOND: other}
    # The one that had not changed went through at once.
    elected = [[s.partition for s in commit.partitions] for commit in bench.seen.commits if commit.round == "leave"]
    assert elected == [[1], [0]]


@pytest.mark.requirement("D1")
async def test_a_state_that_a_later_controller_wrote_ends_this_one(bench: Bench) -> None:
    await bench.start(ORIGIN)
    later = replace(await bench.read_state(TP), controller_epoch=2)
    await bench.unregister(1)
    elected = [set_state(TP, later), Set(paths.CONTROLLER_EPOCH, b"2", -1)]
    with pytest.raises(Fenced):
        await meddle(bench, paths.partition_state(TP), *elected, during=bench.handle(BrokerChange()))
    with pytest.raises(ControllerMoved):
        await bench.run(refresh(bench.context, [TP]))
    assert await bench.read_state(TP) == replace(later, partition_epoch=1)
    assert bench.seen.leader_and_isr() == []


async def test_a_state_of_an_epoch_that_nobody_had_is_decided_on_all_the_same(bench: Bench) -> None:
    await bench.start(ORIGIN)
    damaged = replace(await bench.read_state(TP), controller_epoch=1_000_000)
    await bench.unregister(1)
    await meddle(bench, paths.partition_state(TP), set_state(TP, damaged), during=bench.handle(BrokerChange()))
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.controller_epoch) == (2, (2, 3), 1)


@pytest.mark.parametrize(
    "op",
    [Delete(paths.partition_state(TP)), Set(paths.partition_state(TP), b"{", -1)],
    ids=["gone", "cannot be decoded"],
)
async def test_a_state_that_cannot_be_read_is_not_waited_for(bench: Bench, op: Op) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await bench.unregister(1)
    with capture_logs() as logs:
        await meddle(bench, op.path, op, during=bench.handle(BrokerChange()))
    assert (await bench.read_state(SECOND)).leader == 2
    assert {log["partition"] for log in logs if log["log_level"] == "error"} == {"orders-0"}


@pytest.mark.parametrize("leader_epoch", [0, 7])
async def test_a_state_that_exists_already_is_adopted_and_told(bench: Bench, leader_epoch: int) -> None:
    await bench.start(brokers=(1, 2, 3))
    await bench.write_topic("orders", ORIGIN)
    theirs = LeaderAndIsr(2, leader_epoch, (2, 3), 0, 1)
    create = [
        Create(paths.partition(TP)),
        Create(paths.partition_state(TP), formats.encode_partition_state(theirs)),
    ]
    await meddle(bench, paths.partition_state(TP), *create, during=bench.handle(TopicChange()))
    assert await bench.read_state(TP) == theirs == bench.context.leadership[TP]
    assert bench.context.partition_phases[TP] is PartitionPhase.ONLINE
    told = {broker_id: tell.is_new for tell in bench.seen.leader_and_isr() for broker_id in tell.brokers}
    # A replica of a later epoch has data, which a broker would replace by an empty log if it were told that it is new.
    assert told == dict.fromkeys((1, 2, 3), leader_epoch == 0)
    assert bench.seen.latest_metadata(TP).leader == 2


async def test_a_state_that_is_adopted_from_a_dead_leader_is_elected(bench: Bench) -> None:
    await bench.start(brokers=(1, 2, 3))
    await bench.write_topic("orders", (1, 2, 9))
    create = [
        Create(paths.partition(TP)),
        Create(paths.partition_state(TP), formats.encode_partition_state(LeaderAndIsr(9, 7, (9, 2), 0, 1))),
    ]
    await meddle(bench, paths.partition_state(TP), *create, during=bench.handle(TopicChange()))
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2,), 8)


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("path", [paths.topic_partitions("orders"), paths.partition(TP)], ids=["parents", "states"])
async def test_a_new_topic_that_is_gone_again_is_not_waited_for(bench: Bench, path: str) -> None:
    await bench.start(brokers=(1, 2, 3))
    await bench.write_topic("orders", ORIGIN)
    await bench.write_topic("others", ORIGIN)
    gone = [Delete(paths.topic("orders"))]
    if path != paths.topic_partitions("orders"):
        gone = [Delete(paths.topic_partitions("orders")), *gone]
    await meddle(bench, path, *gone, during=bench.handle(TopicChange()))
    assert (await bench.read_state(TopicPartition("others", 0))).leader == 1
    await bench.handle(TopicChange())
    assert list(bench.context.topics) == ["others"]
    assert TP not in bench.context.partition_phases


# --- topics -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("last_round", ["U1", "B6"])
async def test_partitions_added_while_a_move_is_written_are_kept_and_started(bench: Bench, last_round: str) -> None:
    await bench.start(ORIGIN)
    happening = bench.move(TP, TARGET)
    if last_round == "B6":
        await happening
        happening = bench.alter_isr(TP, *ORIGIN, *TARGET)  # type: ignore[assignment]  # both are only awaited
    topic = paths.topic("orders")
    added = set_assignments("orders", await bench.read(topic), {1: ReplicaAssignment((2, 3, 1))})
    await meddle(bench, topic, added, during=happening)

    expected = ReplicaAssignment(BOTH, TARGET, ORIGIN) if last_round == "U1" else ReplicaAssignment(TARGET)
    assert await bench.read_assignment(TP) == expected
    assert await bench.read_assignment(SECOND) == ReplicaAssignment((2, 3, 1))
    # The watch says so later.
    await bench.handle(PartitionModifications("orders"))
    assert (await bench.read_state(SECOND)).leader == 2


@define
class Unanswered(PassingStore):
    """A session that loses the answer of the first multi that writes `path`, and whose znode others write then."""

    path: str
    edit: Callable[[Znode | None], Op]
    done: bool = False

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Do all of `ops` or nothing."""
        committed = await super().multi(ops, known=known)
        if not self.done and any(isinstance(op, Set) and op.path == self.path for op in ops):
            self.done = True
            [znode] = await self.store.read([self.path])
            await self.store.multi([self.edit(znode)])
            raise ConnectionLost("the answer is lost")
        return committed


@pytest.mark.requirement("D10")
async def test_a_new_order_without_an_answer_is_kept_when_others_add_partitions(bench: Bench) -> None:
    await bench.start(ORIGIN)
    added = {1: ReplicaAssignment(ORIGIN)}
    bench.runner.store = Unanswered(
        bench.store, paths.topic("orders"), lambda znode: set_assignments("orders", znode, added)
    )
    assert (await bench.move(TP, (1, 3, 2))).error is ErrorCode.NONE
    bench.runner.store = bench.store
    expected = ReplicaAssignment((1, 3, 2))
    assert await bench.read_assignment(TP) == bench.context.assignment(TP) == expected
    # Brokers hear of the new order, and nothing writes it or the former one again.
    assert {told.state.replicas for told in bench.seen.leader_and_isr() if told.state.tp == TP} == {(1, 3, 2)}
    assert (await bench.znode(paths.topic("orders"))).stat.version == 2


@pytest.mark.parametrize("event", [True, False], ids=["seen by the watch", "seen by a conflict"])
async def test_what_others_do_to_existing_assignments_is_not_taken_over(bench: Bench, event: bool) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await bench.move(TP, TARGET)
    topic = paths.topic("orders")
    # As Kafka's tools did when they added partitions during a move (KAFKA-9038), losing the topic's id as well.
    wiped = set_assignments("orders", await bench.read(topic), {0: ReplicaAssignment(BOTH)}, topic_id=None)
    if event:
        await bench.store.multi([wiped])
        await bench.handle(PartitionModifications("orders"))
        await bench.move(SECOND, TARGET)
    else:
        await meddle(bench, topic, wiped, during=bench.move(SECOND, TARGET))
    znode = await bench.znode(topic)
    written = formats.decode_topic("orders", znode.data)
    assert written.partitions == dict.fromkeys((0, 1), ReplicaAssignment(BOTH, TARGET, ORIGIN))
    assert written.topic_id == "id-of-orders"
    assert list(bench.context.reassigning) == [TP, SECOND]


async def test_a_topic_that_is_gone_is_not_moved(bench: Bench) -> None:
    await bench.start(ORIGIN)
    topic = paths.topic("orders")

    async def move() -> None:
        assert (await bench.move(TP, TARGET)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    await meddle(bench, topic, *delete_topic("orders", 1), during=move())
    assert bench.context.topics == {}
    assert bench.context.leadership == {}


async def test_a_topic_that_cannot_be_decoded_is_not_moved_and_not_waited_for(bench: Bench) -> None:
    await bench.start(ORIGIN)
    topic = paths.topic("orders")

    async def move() -> None:
        assert (await bench.move(TP, TARGET)).error is not ErrorCode.NONE

    with capture_logs() as logs:
        await meddle(bench, topic, Set(topic, b"{", -1), during=move())
    assert [log["topic"] for log in logs if log["log_level"] == "error"] == ["orders"]
    znode = await bench.znode(topic)
    assert znode.data == b"{"


async def test_an_override_of_a_partition_whose_state_is_gone_is_not_waited_for(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    gone = Delete(paths.partition_state(TP))

    async def cancel() -> None:
        assert (await bench.move(TP, None)).error is not ErrorCode.NONE

    await meddle(bench, paths.partition_state(TP), gone, during=cancel())
    assert await bench.read_assignment(TP) == ReplicaAssignment(BOTH, TARGET, ORIGIN)
    assert bench.seen.stopped(delete=True) == set()


@pytest.mark.requirement("A6")
@pytest.mark.parametrize("earlier", [1, 2], ids=["B3", "B4"])
async def test_nothing_is_stopped_when_the_isr_could_not_be_shrunk(bench: Bench, earlier: int) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    path = paths.partition_state(TP)
    caught_up = bench.alter_isr(TP, *ORIGIN, *TARGET)
    await meddle(bench, path, Delete(path), during=caught_up, earlier=earlier)
    assert ("(B3)" in bench.seen.rounds) is (earlier == 2)
    assert bench.seen.stopped(delete=False) == bench.seen.stopped(delete=True) == set()
    assert await bench.read_assignment(TP) == ReplicaAssignment(BOTH, TARGET, ORIGIN)


@pytest.mark.requirement("A6")
async def test_a_state_that_changed_before_the_end_of_a_move_is_read_and_decided_again(bench: Bench) -> None:
    await bench.begin_move((1, 2), (1, 3))
    grown = replace(await bench.read_state(TP), isr=(1, 2, 3))
    smaller = replace(grown, isr=(1, 3), partition_epoch=grown.partition_epoch + 2)
    # The second write of the state is that of the end.
    during = bench.alter_isr(TP, *grown.isr)
    await meddle(bench, paths.partition_state(TP), set_state(TP, smaller), during=during, earlier=1)
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.partition_epoch) == (1, (1, 3), smaller.partition_epoch + 1)
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 3))
    assert bench.seen.stopped(delete=True) == {2}


@pytest.mark.requirement("A6")
async def test_a_move_whose_state_is_gone_before_its_end_stops_nothing(bench: Bench) -> None:
    await bench.begin_move((1, 2), (1, 3))
    gone = Delete(paths.partition_state(TP))
    await meddle(bench, gone.path, gone, during=bench.alter_isr(TP, 1, 2, 3), earlier=1)
    assert bench.seen.stopped(delete=False) == bench.seen.stopped(delete=True) == set()
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 3, 2), (3,), (2,))


async def test_a_stray_that_was_removed_by_hand_does_not_hold_up_a_move_back(bench: Bench) -> None:
    await bench.begin_move((1, 2), (1,))
    [stray] = bench.context.strays
    removed = Delete(paths.stray(stray))
    await meddle(bench, paths.topic("orders"), removed, during=bench.move(TP, (1, 2)))
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2), (2,))
    assert bench.context.strays == {}


async def test_a_topic_that_changes_while_it_gets_its_id_is_loaded_all_the_same(bench: Bench) -> None:
    await bench.register(1)
    topic = paths.topic("orders")
    await bench.store.multi([Create(topic, b'{"version":1,"partitions":{"0":[1]}}')])
    added = Set(topic, b'{"version":1,"partitions":{"0":[1],"1":[1]}}', 0)
    await meddle(bench, topic, added, during=bench.run(failover(bench.context, iter(["first", "second"]))))
    assert bench.context.topics["orders"].znode.topic_id in {"first", "second"}
    assert sorted(bench.context.leadership) == [TP, SECOND]


# --- requests ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A6")
async def test_requests_that_change_while_one_is_removed_keep_their_changes(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await bench.request_moves({TP: TARGET})
    await bench.handle(ZkPartitionReassignment())
    more = Set(paths.REASSIGN_PARTITIONS, formats.encode_reassign_partitions({TP: TARGET, SECOND: TARGET}), 0)
    await meddle(bench, paths.REASSIGN_PARTITIONS, more, during=bench.alter_isr(TP, *ORIGIN, *TARGET))
    assert await bench.requested_moves() == {SECOND: TARGET}


@pytest.mark.requirement("A6")
async def test_a_request_with_another_target_survives_the_end_of_the_move(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await bench.request_moves({TP: TARGET})
    await bench.handle(ZkPartitionReassignment())
    another = Set(paths.REASSIGN_PARTITIONS, formats.encode_reassign_partitions({TP: (1, 2)}), 0)
    await meddle(bench, paths.REASSIGN_PARTITIONS, another, during=bench.alter_isr(TP, *ORIGIN, *TARGET))
    assert await bench.requested_moves() == {TP: (1, 2)}
    assert await bench.read_assignment(TP) == ReplicaAssignment(TARGET)
