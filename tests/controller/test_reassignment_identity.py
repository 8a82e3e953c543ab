"""The znode that identifies a reassignment exists exactly as long as the move, whatever else happens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import count

import pytest
from attrs import define, field

from controller.events import PartitionModifications, TopicChange
from controller.handlers import reassignments
from controller.model.reassignment import UNIDENTIFIED, ReassignmentIdentity
from tests.controller.conftest import TP, Bench
from tests.controller.deletions import deleted, mark, replica
from tests.controller.meddler import Meddler
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition as Item,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Committed, Create, Delete, Op, Set

ORIGIN, TARGET, OTHER, ALL_SIX = (1, 2, 3), (4, 5, 6), (4, 3, 2), (1, 2, 3, 4, 5, 6)
MOVING = ReplicaAssignment((*TARGET, *ORIGIN), TARGET, ORIGIN)
SECOND, PARENT = TopicPartition("orders", 1), paths.topic_reassignments("orders")
MANY = 2500


@pytest.fixture
def clock() -> Callable[[], int]:
    """Let a millisecond pass with each commit."""
    return count(1).__next__


async def stored(bench: Bench, tp: TopicPartition = TP) -> ReassignmentIdentity | None:
    """Return the identity of a partition's reassignment as its znode says, None if there is none."""
    znode = await bench.read(paths.reassignment(tp))
    return None if znode is None else ReassignmentIdentity(znode.stat.czxid, znode.stat.ctime_ms)


async def of_topic(bench: Bench) -> ReassignmentIdentity:
    """Return zxid and time of the last write of the topic."""
    znode = await bench.znode(paths.topic(TP.topic))
    return ReassignmentIdentity(znode.stat.mzxid, znode.stat.mtime_ms)


async def below_root(bench: Bench) -> list[str] | None:
    return (await bench.store.children([paths.REASSIGNMENTS]))[0]


async def move_all(bench: Bench, *tps: TopicPartition, to: tuple[int, ...] | None = TARGET) -> None:
    request = AlterPartitionReassignmentsRequest(tuple(Item(*tp, to) for tp in tps))
    response = await bench.ask(request, AlterPartitionReassignmentsResponse)
    assert [result.error for result in response.partitions] == [ErrorCode.NONE] * len(tps)


@pytest.mark.requirement("B2")
async def test_the_znode_comes_with_the_target_and_goes_with_the_last_write(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    identity = await stored(bench)
    assert identity == await of_topic(bench) == bench.context.reassigning[TP]
    assert identity.start_time_ms > 0

    await bench.crash(bench.alter_isr(TP, *ALL_SIX), after="B4")
    assert await stored(bench) == identity
    await bench.crash(bench.fail_over(), after="B6")
    assert await below_root(bench) == []


@pytest.mark.requirement("B2")
async def test_two_moves_of_one_partition_differ_and_two_that_begin_together_share_their_czxid(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await move_all(bench, TP, SECOND)
    first, second = bench.context.reassigning[TP], bench.context.reassigning[SECOND]
    assert first == second
    await bench.alter_isr(TP, *ALL_SIX)
    # The parent stays as long as one of them moves.
    assert (await stored(bench), await stored(bench, SECOND)) == (None, second)
    await bench.move(TP, ORIGIN)
    assert bench.context.reassigning[TP].czxid > first.czxid
    assert bench.context.reassigning[SECOND] == second


@pytest.mark.requirement("B2")
async def test_an_override_is_the_same_reassignment_and_a_cancel_ends_it_at_once(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    identity = bench.context.reassigning[TP]
    await bench.move(TP, OTHER)
    assert await stored(bench) == bench.context.reassigning[TP] == identity
    await bench.crash(bench.move(TP, None), after="U1")
    assert await below_root(bench) == []


@pytest.mark.requirement("B2", "C3")
async def test_another_order_of_the_same_replicas_is_over_before_it_has_a_znode(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, (3, 2, 1))
    assert await below_root(bench) == []


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("crash_after", ["U1", "(U1)", None])
async def test_the_next_controller_knows_the_identity(bench: Bench, crash_after: str | None) -> None:
    await bench.start(ORIGIN)
    if crash_after is None:
        await bench.move(TP, TARGET)
    else:
        await bench.crash(bench.move(TP, TARGET), after=crash_after)
    identity = await stored(bench)
    assert identity is not None
    await bench.fail_over()
    assert bench.context.reassigning == {TP: identity}
    await bench.move(TP, OTHER)
    assert await stored(bench) == bench.context.reassigning[TP] == identity


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("root", [True, False])
async def test_moves_that_a_kafka_controller_began_get_an_identity_from_the_next_one(bench: Bench, root: bool) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await bench.change_topic("orders", 0, MOVING)
    if not root:
        await bench.store.multi([Delete(paths.REASSIGNMENTS)])
    await bench.fail_over()
    assert list(bench.context.reassigning.values()) == [await stored(bench)]
    await bench.move(SECOND, TARGET)
    await bench.alter_isr(TP, *ALL_SIX)
    await bench.alter_isr(SECOND, *ALL_SIX)
    assert await below_root(bench) == []


@pytest.mark.requirement("B2")
async def test_what_is_left_of_no_move_is_removed_at_failover(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await bench.move(TP, TARGET)
    left = [PARENT + "/1", PARENT + "/1/below", PARENT + "/rubbish", paths.topic_reassignments("gone")]
    await bench.store.multi([Create(path, b"by hand") for path in left])
    await bench.fail_over()
    assert await below_root(bench) == ["orders"]
    assert (await bench.store.children([PARENT]))[0] == ["0"]


async def test_a_topic_that_is_set_aside_keeps_the_identity_of_its_moves(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    znode, identity = await bench.read(paths.topic(TP.topic)), await stored(bench)
    assert znode is not None
    await bench.store.multi([Set(paths.topic(TP.topic), b"damaged", -1)])
    await bench.fail_over()
    assert bench.context.reassigning == {}
    await bench.store.multi([Set(paths.topic(TP.topic), znode.data, -1)])
    await bench.fail_over()
    assert bench.context.reassigning == {TP: identity}


DAMAGE: dict[str, list[Op]] = {
    "the znode is gone": [Delete(paths.reassignment(TP))],
    "its parent is gone too": [Delete(paths.reassignment(TP)), Delete(PARENT)],
    "all is gone": [Delete(paths.reassignment(TP)), Delete(PARENT), Delete(paths.REASSIGNMENTS)],
    "it was written": [Set(paths.reassignment(TP), b"by hand", -1)],
    "it has a child": [Create(paths.reassignment(TP) + "/below")],
    "its parent has another child": [Create(PARENT + "/rubbish")],
    "it was made anew": [Delete(paths.reassignment(TP)), Create(paths.reassignment(TP))],
}


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("next_", ["end", "override", "cancel", "failover"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_a_znode_that_somebody_damaged_stops_no_move(bench: Bench, damage: list[Op], next_: str) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await bench.store.multi(damage)
    match next_:
        case "override":
            assert (await bench.move(TP, OTHER)).error is ErrorCode.NONE
        case "cancel":
            assert (await bench.move(TP, None)).error is ErrorCode.NONE
        case "failover":
            await bench.fail_over()
            assert await stored(bench) == bench.context.reassigning[TP]
    if next_ != "cancel":
        await bench.alter_isr(TP, *ORIGIN, *bench.context.assignment(TP).adding_replicas)
    assert bench.context.reassigning == {}
    assert not await below_root(bench)
    assert (await bench.move(TP, TARGET if next_ == "cancel" else ORIGIN)).error is ErrorCode.NONE
    assert await stored(bench) == bench.context.reassigning[TP]


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(
    "left",
    [[Create(PARENT)], [Create(PARENT), Create(paths.reassignment(TP))], [Delete(paths.REASSIGNMENTS)]],
    ids=["a parent", "a znode", "no root"],
)
async def test_what_is_in_the_way_of_a_new_move_is_removed(bench: Bench, left: list[Op]) -> None:
    await bench.start(ORIGIN)
    await bench.store.multi(left)
    await bench.move(TP, TARGET)
    assert await stored(bench) == await of_topic(bench) == bench.context.reassigning[TP]


async def test_a_znode_that_goes_before_it_is_read_is_replaced(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await bench.crash(bench.run(reassignments.begin(bench.context, {TP: TARGET})), after="U1")
    await bench.store.multi([Delete(paths.reassignment(TP)), Delete(PARENT)])
    await bench.run(reassignments.begin(bench.context, {TP: TARGET}))
    assert await stored(bench) == bench.context.reassigning[TP] != UNIDENTIFIED
    await bench.alter_isr(TP, *ALL_SIX)
    assert not await below_root(bench)


@define
class Recording(Meddler):
    """Keeps the operations of each multi."""

    multis: list[list[str]] = field(factory=list)

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        self.multis.append([op.path for op in ops if isinstance(op, Delete)])
        return await super().multi(ops, known=known)


@pytest.mark.requirement("B2", "D8")
@pytest.mark.parametrize("failover", [False, True])
async def test_the_znodes_of_a_deleted_topic_stay_until_its_data_are_gone_and_go_before_it(
    bench: Bench, failover: bool
) -> None:
    await bench.start(ORIGIN, ORIGIN, (1,))
    await move_all(bench, TP, SECOND)
    await mark(bench, "orders")
    assert bench.context.reassigning == {}
    if failover:
        await bench.fail_over()
    recording = bench.runner.store = Recording(bench.store, "", ())
    await deleted(bench, *(replica(broker, number) for number in (0, 1) for broker in ALL_SIX))
    assert await stored(bench) is not None
    await deleted(bench, replica(1, 2))
    deletes = [path for multi in recording.multis for path in multi]
    moves = [paths.reassignment(TP), paths.reassignment(SECOND), PARENT]
    assert deletes.index(paths.topic("orders")) < min(map(deletes.index, moves))
    assert await below_root(bench) == []


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("is_seen_between", [False, True])
async def test_a_topic_that_is_gone_takes_its_znodes_with_it(bench: Bench, is_seen_between: bool) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    before = bench.context.reassigning[TP]
    await bench.delete_topic("orders", 1)
    if is_seen_between:
        await bench.handle(TopicChange())
        assert await below_root(bench) == []
    data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment(ORIGIN)}, "another-id"))
    await bench.store.multi([Create(paths.topic("orders"), data)])
    await bench.handle(TopicChange() if is_seen_between else PartitionModifications("orders"))
    assert await below_root(bench) == []
    await bench.move(TP, TARGET)
    assert bench.context.reassigning[TP].czxid > before.czxid


@pytest.mark.requirement("B2")
async def test_a_topic_that_comes_with_a_move_has_an_identity_for_it(bench: Bench) -> None:
    await bench.start()
    data = formats.encode_topic(formats.TopicZnode({0: MOVING}, "id"))
    await bench.store.multi([Create(paths.topic("orders"), data)])
    await bench.handle(TopicChange())
    assert list(bench.context.reassigning.values()) == [await stored(bench)]


@pytest.mark.requirement("A11", "B2")
async def test_thousands_of_moves_get_their_znodes_in_bulk(bench: Bench) -> None:
    await bench.start(*[ORIGIN] * MANY)
    tps = bench.context.partitions()
    recording = bench.runner.store = Recording(bench.store, "", ())
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(tps, TARGET)))
    identities = dict(bench.context.reassigning)
    assert UNIDENTIFIED not in identities.values()
    left = [Delete(paths.reassignment(tp)) for tp in tps]
    await bench.store.multi([*left, Delete(PARENT)])
    recording.multis.clear()
    await bench.fail_over()
    assert set(bench.context.reassigning) == set(identities)
    assert min(bench.context.reassigning.values()) > max(identities.values())
    assert len(recording.multis) < MANY / 100
