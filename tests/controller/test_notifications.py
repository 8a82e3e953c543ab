"""Sequential znodes by which brokers notify the controller of ISRs that they wrote, and of lost log directories."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.events import IsrChangeNotification, LogDirEventNotification
from controller.handlers.leadership import ControllerMoved
from controller.model.state_machines import PartitionPhase
from tests.controller.conftest import TP, Bench
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set, StoreEvent, WatchFired, WatchKind

SECOND = TopicPartition("orders", 1)
UNKNOWN = TopicPartition("nowhere", 0)


async def notify_isr_change(bench: Bench, *tps: TopicPartition) -> None:
    path = f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_"
    await bench.store.multi([Create(path, formats.encode_partitions(tps), sequence=True)])


async def notify_log_dir_failure(bench: Bench, data: bytes) -> None:
    path = f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
    await bench.store.multi([Create(path, data, sequence=True)])


async def shrink(bench: Bench, tp: TopicPartition, *isr: int) -> None:
    """Write an ISR as Kafka's leaders did before AlterPartition."""
    now = await bench.read_state(tp)
    await bench.write_state(tp, replace(now, isr=isr))


async def left(bench: Bench, parent: str) -> list[str] | None:
    [names] = await bench.store.children([parent])
    return names


# --- /isr_change_notification -----------------------------------------------------------------------------------


@pytest.mark.requirement("D9")
async def test_an_isr_that_a_leader_wrote_is_taken_over_and_told_to_everyone(bench: Bench) -> None:
    await bench.start((1, 2, 3), (2, 3, 1), (3, 1, 2))
    await shrink(bench, TP, 1, 2)
    await shrink(bench, SECOND, 2)
    await notify_isr_change(bench, TP, UNKNOWN)
    await notify_isr_change(bench, SECOND, TP)
    await bench.handle(IsrChangeNotification())
    assert bench.context.leadership[TP] == await bench.read_state(TP)
    assert bench.context.leadership[SECOND].isr == (2,)
    assert [state.isr for tell in bench.seen.metadata() for state in tell.partitions] == [(1, 2), (2,)]
    assert {tell.brokers for tell in bench.seen.metadata()} == {None}
    assert bench.seen.leader_and_isr() == []
    assert await left(bench, paths.ISR_CHANGE_NOTIFICATION) == []
    # The next election goes on from the version that the leader wrote.
    await bench.kill(1)
    assert (await bench.read_state(TP)).leader == 2


@pytest.mark.requirement("D9", "A5")
async def test_a_move_that_waits_for_such_an_isr_goes_on(bench: Bench) -> None:
    """KAFKA-10521: leaders may write ISRs themselves though this controller answers AlterPartition."""
    await bench.begin_move((1, 2, 3), (4, 5, 6))
    await shrink(bench, TP, 1, 2, 3, 4, 5, 6)
    await notify_isr_change(bench, TP)
    await bench.handle(IsrChangeNotification())
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 5, 6))
    assert (await bench.read_state(TP)).leader == 4


@pytest.mark.requirement("D9")
async def test_what_cannot_be_decoded_or_is_gone_spoils_no_other_and_is_deleted(bench: Bench) -> None:
    await bench.start((1, 2), (2, 1))
    await bench.store.multi([Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_0000000000", b"{")])
    await bench.store.multi([Set(paths.partition_state(SECOND), b"damaged", -1)])
    await shrink(bench, TP, 1)
    await notify_isr_change(bench, SECOND, TP)
    known = bench.context.leadership[SECOND]
    with capture_logs() as logs:
        await bench.handle(IsrChangeNotification())
    assert [log["event"] for log in logs] == [
        "notification removed: it cannot be decoded",
        "partition set aside: its state cannot be decoded",
    ]
    assert bench.context.leadership[TP].isr == (1,)
    assert bench.context.leadership[SECOND] == known
    assert await left(bench, paths.ISR_CHANGE_NOTIFICATION) == []


@pytest.mark.requirement("D1")
async def test_an_isr_of_a_later_controller_ends_this_controllership(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.store.multi([Set(paths.CONTROLLER_EPOCH, b"2", -1)])
    await bench.write_state(TP, replace(await bench.read_state(TP), controller_epoch=2))
    await notify_isr_change(bench, TP)
    with pytest.raises(ControllerMoved):
        await bench.handle(IsrChangeNotification())


# --- /log_dir_event_notification --------------------------------------------------------------------------------


@pytest.mark.requirement("D9")
async def test_a_broker_that_lost_a_directory_is_told_again_what_it_holds_with_unchanged_epochs(bench: Bench) -> None:
    await bench.start((1, 2), (2, 3), (3, 4))
    before = dict(bench.context.leadership)
    await notify_log_dir_failure(bench, formats.encode_log_dir_event(2))
    await notify_log_dir_failure(bench, formats.encode_log_dir_event(2))
    await notify_log_dir_failure(bench, formats.encode_log_dir_event(99))
    await notify_log_dir_failure(bench, b"{}")
    await bench.handle(LogDirEventNotification())
    told = [(tell.brokers, tell.state) for tell in bench.seen.leader_and_isr()]
    assert told == [((2,), bench.context.describe(TP)), ((2,), bench.context.describe(SECOND))]
    assert not any(tell.is_new for tell in bench.seen.leader_and_isr())
    assert bench.context.leadership == before
    assert set(bench.context.partition_phases.values()) == {PartitionPhase.ONLINE}
    assert await left(bench, paths.LOG_DIR_EVENT_NOTIFICATION) == []


@pytest.mark.requirement("D9")
async def test_only_an_added_replica_that_has_not_caught_up_may_begin_with_an_empty_log(bench: Bench) -> None:
    """KAFKA-10314, but one in the ISR that lost its log must not seem to have it still."""
    await bench.begin_move((1, 2), (4, 5))
    await bench.alter_isr(TP, 1, 2, 4)
    bench.seen.clear()
    for broker_id in (4, 5):
        await notify_log_dir_failure(bench, formats.encode_log_dir_event(broker_id))
    await bench.handle(LogDirEventNotification())
    told = sorted((tell.brokers, tell.is_new) for tell in bench.seen.leader_and_isr())
    assert told == [((4,), False), ((5,), True)]


# --- both -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D7", "D9")
async def test_a_new_controller_deletes_notifications_unread_and_watches_for_more(bench: Bench) -> None:
    await bench.start((1, 2))
    await notify_isr_change(bench, TP)
    await notify_log_dir_failure(bench, formats.encode_log_dir_event(2))
    await shrink(bench, TP, 1)
    fired: list[StoreEvent] = []
    bench.store.subscribe(fired.append)
    await bench.fail_over()
    assert await left(bench, paths.ISR_CHANGE_NOTIFICATION) == []
    assert await left(bench, paths.LOG_DIR_EVENT_NOTIFICATION) == []
    assert bench.context.leadership[TP].isr == (1,)
    # Its own deletions call it, for nothing but to watch again.
    parents = (paths.LOG_DIR_EVENT_NOTIFICATION, paths.ISR_CHANGE_NOTIFICATION)
    calls = [WatchFired(path, WatchKind.CHILDREN) for path in parents]
    assert fired == calls
    bench.seen.clear()
    await bench.handle(IsrChangeNotification())
    await bench.handle(LogDirEventNotification())
    assert bench.seen.published == []
    fired.clear()
    await notify_log_dir_failure(bench, formats.encode_log_dir_event(2))
    await notify_isr_change(bench, TP)
    assert fired == calls
