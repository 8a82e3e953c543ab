"""A broker that returns with another storage id has lost its data: it is excluded until it has caught up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.events import BrokerChange
from controller.model.state_machines import PartitionPhase
from tests.controller.conftest import TP, Bench
from tests.controller.meddler import Meddler, set_state
from transport.errors import ErrorCode
from transport.messages import AlterPartitionItem, AlterPartitionRequest, AlterPartitionResponse
from transport.metadata import NO_LEADER, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set

SECOND = TopicPartition("orders", 1)
OLD, NEW = "old disk", "new disk"


async def wipe(bench: Bench, *broker_ids: int, storage_id: str = NEW) -> None:
    """Let brokers bounce with empty disks, before the controller looks."""
    await bench.unregister(*broker_ids)
    await bench.register(*broker_ids, storage_id=storage_id)


async def recorded(bench: Bench, broker_id: int) -> str | None:
    znode = await bench.read(paths.storage_id(broker_id))
    return None if znode is None else formats.decode_storage_id(broker_id, znode.data)


async def leader_and_isr(bench: Bench, tp: TopicPartition = TP) -> tuple[int, tuple[int, ...]]:
    state = await bench.read_state(tp)
    assert bench.context.leadership[tp] == state
    assert (bench.context.partition_phases[tp] is PartitionPhase.ONLINE) is (state.leader != NO_LEADER)
    return state.leader, state.isr


def losses(logs: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the partitions whose last replica is said to have lost its data."""
    return [log["partition"] for log in logs if log["log_level"] == "error" and "partition" in log]


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("while_down", [False, True], ids=["bounced", "while nobody was controller"])
async def test_a_broker_without_its_data_leaves_every_isr_before_it_follows_anew(
    bench: Bench, while_down: bool
) -> None:
    await bench.start((1, 2, 3), (2, 3, 1), storage_id=OLD)
    await wipe(bench, 1)
    await (bench.fail_over() if while_down else bench.handle(BrokerChange()))
    assert await leader_and_isr(bench) == (2, (2, 3))
    assert await leader_and_isr(bench, SECOND) == (2, (2, 3))
    assert await recorded(bench, 1) == NEW
    seen = [mark for mark in bench.seen.rounds if mark in {"expel", "(expel)", "storage", "(resend)"}]
    assert seen == ["expel", "(expel)", "storage", "(resend)"]
    to_it = [
        (tell.state.partition, tell.state.leader, tell.is_new)
        for tell in bench.seen.leader_and_isr()
        if 1 in tell.brokers
    ]
    assert to_it == [(0, 2, True), (1, 2, True)]

    await bench.alter_isr(TP, 2, 3, 1)
    await bench.fail_over()
    assert await leader_and_isr(bench) == (2, (2, 3, 1)), "once it caught up it counts"


@pytest.mark.requirement("D5")
async def test_the_same_storage_changes_nothing_and_a_broker_without_any_is_left_alone(bench: Bench) -> None:
    await bench.start((1, 2), storage_id=OLD)
    for broker_id, storage_id in ((1, OLD), (2, None)):
        await bench.unregister(broker_id)
        await bench.register(broker_id, storage_id=storage_id)
    await bench.fail_over()
    assert bench.seen.commits == []
    assert await recorded(bench, 2) == OLD
    assert not any(tell.is_new for tell in bench.seen.leader_and_isr())


@pytest.mark.requirement("D4", "D5")
@pytest.mark.parametrize("while_down", [False, True], ids=["bounced", "while nobody was controller"])
async def test_if_it_was_the_last_member_nobody_leads(bench: Bench, while_down: bool) -> None:
    await bench.start((1, 2), (2, 1), storage_id=OLD)
    await bench.alter_isr(TP, 1)
    await wipe(bench, 1)
    with capture_logs() as logs:
        await (bench.fail_over() if while_down else bench.handle(BrokerChange()))
    assert losses(logs) == ["orders-0"]
    assert await leader_and_isr(bench) == (NO_LEADER, ())
    assert bench.seen.latest_metadata(TP).leader == NO_LEADER
    state = await bench.read_state(TP)

    with capture_logs() as logs:
        await bench.revive(7)
        await bench.kill(2, 1)
        await bench.revive(1, storage_id=NEW)
        await bench.revive(2, storage_id=OLD)
        await bench.fail_over()
        await wipe(bench, 1, storage_id="yet another")
        await bench.handle(BrokerChange())
    assert losses(logs) == [], "it is said once"
    assert await leader_and_isr(bench) == (NO_LEADER, ())
    assert (await bench.read_state(TP)).leader_epoch == state.leader_epoch + 1, "only another loss costs an epoch"
    assert (await leader_and_isr(bench, SECOND))[0] == 2


@pytest.mark.requirement("D5")
async def test_of_a_whole_isr_that_died_only_who_has_the_data_leads(bench: Bench) -> None:
    await bench.start((1, 2, 3), storage_id=OLD)
    await bench.kill(1, 2, 3)
    await bench.revive(3, storage_id=NEW)
    assert await leader_and_isr(bench) == (NO_LEADER, (1, 2))
    await bench.revive(2, storage_id=OLD)
    assert await leader_and_isr(bench) == (2, (2,))


@pytest.mark.requirement("D5")
async def test_a_follower_without_its_data_is_not_elected_in_the_event_that_shows_its_leader_dead(bench: Bench) -> None:
    await bench.start((1, 2), storage_id=OLD)
    await bench.unregister(1)
    await wipe(bench, 2)
    await bench.handle(BrokerChange())
    assert await leader_and_isr(bench) == (NO_LEADER, (1,))
    await bench.revive(1, storage_id=OLD)
    assert await leader_and_isr(bench) == (1, (1,))


@pytest.mark.requirement("D1", "D5")
@pytest.mark.parametrize("after", ["expel", "(expel)", "storage"])
async def test_a_controller_that_dies_meanwhile_leaves_the_rest_to_the_next(bench: Bench, after: str) -> None:
    await bench.start((1, 2, 3), storage_id=OLD)
    await wipe(bench, 1)
    await bench.crash(bench.handle(BrokerChange()), after=after)
    assert not any(1 in tell.brokers for tell in bench.seen.leader_and_isr())
    assert await recorded(bench, 1) == (NEW if after == "storage" else OLD)
    await bench.fail_over()
    assert await leader_and_isr(bench) == (2, (2, 3))
    assert await recorded(bench, 1) == NEW
    state = await bench.read_state(TP)
    await bench.fail_over()
    assert await bench.read_state(TP) == state


@pytest.mark.requirement("D5")
async def test_a_broker_that_loses_its_data_twice_is_expelled_twice(bench: Bench) -> None:
    await bench.start((1, 2), storage_id=OLD)
    await wipe(bench, 1)
    await bench.crash(bench.handle(BrokerChange()), after="expel")
    await wipe(bench, 1, storage_id="second new disk")
    await bench.fail_over()
    assert await recorded(bench, 1) == "second new disk"
    await bench.alter_isr(TP, 2, 1)
    await wipe(bench, 1, storage_id="third new disk")
    await bench.handle(BrokerChange())
    assert await leader_and_isr(bench) == (2, (2,))


@pytest.mark.requirement("D5")
async def test_a_leader_that_counts_on_lost_data_is_fenced(bench: Bench) -> None:
    await bench.start((1, 2), storage_id=OLD)
    await bench.alter_isr(TP, 1)
    known = await bench.read_state(TP)
    await wipe(bench, 2)
    await bench.handle(BrokerChange())
    # Sent before the leader heard of it (KIP-903).
    item = AlterPartitionItem("orders", "id-of-orders", 0, known.leader_epoch, (1, 2), known.partition_epoch)
    request = AlterPartitionRequest(1, bench.context.brokers[1].epoch, (item,))
    [result] = (await bench.ask(request, AlterPartitionResponse)).partitions
    assert result.error is ErrorCode.FENCED_LEADER_EPOCH
    assert await leader_and_isr(bench) == (1, (1,))


@pytest.mark.requirement("A8", "D5")
async def test_a_move_waits_for_a_target_that_lost_its_data(bench: Bench) -> None:
    await bench.start((1,), storage_id=OLD)
    await bench.move(TP, (4,))
    await bench.crash(bench.alter_isr(TP, 1, 4), after="B3")
    await wipe(bench, 4)
    bench.seen.clear()
    await bench.fail_over()
    assert await leader_and_isr(bench) == (1, (1,))
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 1), (4,), (1,))
    assert bench.seen.stopped(delete=False) == bench.seen.stopped(delete=True) == set()
    await bench.alter_isr(TP, 1, 4)
    assert await bench.read_assignment(TP) == ReplicaAssignment((4,))


@pytest.mark.requirement("A11")
async def test_a_move_without_anybody_in_the_isr_is_neither_cancelled_nor_finished(bench: Bench) -> None:
    await bench.start((1,), storage_id=OLD)
    await bench.move(TP, (4,))
    await wipe(bench, 1)
    await bench.handle(BrokerChange())
    assert await leader_and_isr(bench) == (NO_LEADER, ())
    for target in (None, (5,)):
        assert (await bench.move(TP, target)).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    await bench.fail_over()
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 1), (4,), (1,))
    assert bench.seen.stopped(delete=True) == set()


@pytest.mark.requirement("A11")
async def test_a_cancel_that_would_leave_nobody_to_lead_is_refused_at_the_last_moment_too(bench: Bench) -> None:
    await bench.begin_move((1, 2), (4, 5))
    await bench.alter_isr(TP, 1, 2, 4)
    behind = replace(await bench.read_state(TP), isr=(4,), leader=4)
    bench.runner.store = Meddler(bench.store, paths.partition_state(TP), [set_state(TP, behind)])
    assert (await bench.move(TP, None)).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2))
    assert await leader_and_isr(bench) == (4, (4,))
    assert bench.seen.stopped(delete=True) == set()


@pytest.mark.requirement("D5")
async def test_a_storage_id_that_cannot_be_decoded_is_replaced_and_said(bench: Bench) -> None:
    await bench.start((1, 2), storage_id=OLD)
    await bench.store.multi([Set(paths.storage_id(1), b"{", -1)])
    with capture_logs() as logs:
        await bench.fail_over()
    assert [log["fault"].split(":")[0] for log in logs if "fault" in log] == [paths.storage_id(1)]
    assert await recorded(bench, 1) == OLD
    assert await leader_and_isr(bench) == (1, (1, 2))


@pytest.mark.requirement("D10")
async def test_a_storage_id_that_somebody_wrote_meanwhile_is_judged_again(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(2,), storage_id=OLD)
    await bench.register(1, storage_id=NEW)
    theirs = Create(paths.storage_id(1), formats.encode_storage_id(OLD))
    await bench.alter_isr(TP, 2)
    await bench.write_state(TP, replace(await bench.read_state(TP), isr=(2, 1)))
    meddler = Meddler(bench.store, paths.storage_id(1), [theirs])
    bench.runner.store = meddler
    await bench.handle(BrokerChange())
    assert meddler.ops == ()
    assert await recorded(bench, 1) == NEW
    assert await leader_and_isr(bench) == (2, (2,))


@pytest.mark.requirement("D5")
async def test_thousands_of_partitions_leave_in_few_commits(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * 1200, storage_id=OLD)
    await wipe(bench, 1)
    await bench.handle(BrokerChange())
    assert [commit.round for commit in bench.seen.commits if commit.round in {"expel", "storage"}] == [
        *["expel"] * 3,
        "storage",
    ]
    assert {state.isr for state in bench.context.leadership.values()} == {(2,)}
