"""Leaders request ISRs (KIP-497): the table of answers in its order, the write, and the notified brokers."""

from __future__ import annotations

import pytest
from attrs import evolve
from msgspec.structs import replace

from tests.controller.conftest import TP, Bench
from transport.errors import ApiError, ErrorCode
from transport.messages import AlterPartitionItem, AlterPartitionRequest, AlterPartitionResponse, AlterPartitionResult
from transport.metadata import LeaderRecoveryState, TopicPartition

SECOND = TopicPartition("orders", 1)
LEADER_EPOCH, PARTITION_EPOCH = 3, 4
"""The state that `prepare` sets up: leader 1, ISR 1, 2, 3 of replicas 1 to 4, of which only 4 is dead."""

ITEM = AlterPartitionItem("orders", "id-of-orders", 0, LEADER_EPOCH, (1, 2), PARTITION_EPOCH)


async def prepare(bench: Bench, recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED) -> None:
    await bench.start((1, 2, 3, 4), (1, 2), (2, 1))
    state = await bench.read_state(TP)
    isr = (1, 2, 3) if recovery is LeaderRecoveryState.RECOVERED else (1,)
    for leader_epoch in range(PARTITION_EPOCH):
        await bench.write_state(
            TP, replace(state, leader_epoch=leader_epoch, isr=isr, leader_recovery_state=recovery)
        )  # versions 1 to 4
    await bench.unregister(4)
    await bench.fail_over()
    bench.seen.clear()
    now = bench.context.leadership[TP]
    assert (now.leader, now.leader_epoch, now.isr, now.partition_epoch) == (1, LEADER_EPOCH, isr, PARTITION_EPOCH)


async def ask(
    bench: Bench, *items: AlterPartitionItem, broker: int = 1, broker_epoch: int | None = None
) -> list[AlterPartitionResult]:
    epoch = bench.context.brokers[broker].epoch if broker_epoch is None else broker_epoch
    request = AlterPartitionRequest(broker, epoch, items)
    return list((await bench.ask(request, AlterPartitionResponse)).partitions)


@pytest.mark.requirement("D9")
async def test_a_leader_gets_the_isr_it_asks_for(bench: Bench) -> None:
    await prepare(bench)
    [result] = await ask(bench, ITEM)
    assert result == AlterPartitionResult(
        "orders", 0, ErrorCode.NONE, leader=1, leader_epoch=3, isr=(1, 2), partition_epoch=5
    )
    assert await bench.read_state(TP) == bench.context.leadership[TP]
    assert bench.context.leadership[TP].controller_epoch == 2
    # Everyone gets the metadata; who leads and follows has not changed.
    assert bench.seen.latest_metadata(TP).isr == (1, 2)
    assert bench.seen.leader_and_isr() == []


@pytest.mark.requirement("D9")
@pytest.mark.parametrize(("broker", "epoch_off_by"), [(1, -1), (1, 1)])
async def test_a_broker_under_another_epoch_is_refused_whole(bench: Bench, broker: int, epoch_off_by: int) -> None:
    await prepare(bench)
    epoch = bench.context.brokers[broker].epoch + epoch_off_by
    with pytest.raises(ApiError) as refusal:
        await ask(bench, ITEM, broker=broker, broker_epoch=epoch)
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert bench.seen.commits == []


@pytest.mark.requirement("D9")
async def test_an_unknown_broker_is_refused_whole(bench: Bench) -> None:
    await prepare(bench)
    with pytest.raises(ApiError) as refusal:
        await ask(bench, ITEM, broker=4, broker_epoch=-1)
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH


# The first row that applies wins: each one has all the faults of the rows below it.
DEAD_OUTSIDE = (1, 2, 4, 9)
TABLE: list[tuple[str, AlterPartitionItem, ErrorCode]] = [
    ("topic id", replace(ITEM, topic_id="another", partition_epoch=9), ErrorCode.UNKNOWN_TOPIC_ID),
    ("unknown topic", replace(ITEM, topic="nobody", leader_epoch=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("unknown partition", replace(ITEM, partition=7, leader_epoch=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("newer partition epoch", replace(ITEM, partition_epoch=5, leader_epoch=2), ErrorCode.NOT_CONTROLLER),
    ("newer leader epoch", replace(ITEM, leader_epoch=4, partition_epoch=3), ErrorCode.NOT_CONTROLLER),
    (
        "older leader epoch",
        replace(ITEM, leader_epoch=2, partition_epoch=3, new_isr=DEAD_OUTSIDE),
        ErrorCode.FENCED_LEADER_EPOCH,
    ),
    ("older partition epoch", replace(ITEM, partition_epoch=3, new_isr=DEAD_OUTSIDE), ErrorCode.INVALID_UPDATE_VERSION),
    (
        "the same with another recovery state",
        replace(ITEM, partition_epoch=3, leader_recovery_state=1),
        ErrorCode.INVALID_UPDATE_VERSION,
    ),
    ("recovered, then recovering", replace(ITEM, leader_recovery_state=1, new_isr=(1,)), ErrorCode.INVALID_REQUEST),
    ("recovering, two in the ISR", replace(ITEM, leader_recovery_state=1), ErrorCode.INVALID_REQUEST),
    ("no such recovery state", replace(ITEM, leader_recovery_state=25, new_isr=(1,)), ErrorCode.INVALID_REQUEST),
    ("no ISR", replace(ITEM, new_isr=()), ErrorCode.INVALID_REQUEST),
    ("not in its own ISR", replace(ITEM, new_isr=(2, 3)), ErrorCode.INVALID_REQUEST),
    ("twice in the ISR", replace(ITEM, new_isr=(1, 2, 2)), ErrorCode.INVALID_REQUEST),
    ("outside the replica set", replace(ITEM, new_isr=(1, 2, 5)), ErrorCode.INELIGIBLE_REPLICA),
    ("outside and dead", replace(ITEM, new_isr=DEAD_OUTSIDE), ErrorCode.INELIGIBLE_REPLICA),
    ("dead", replace(ITEM, new_isr=(1, 2, 4)), ErrorCode.INELIGIBLE_REPLICA),
]


@pytest.mark.requirement("D9")
@pytest.mark.parametrize(("item", "error"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
async def test_the_table_of_refusals(bench: Bench, item: AlterPartitionItem, error: ErrorCode) -> None:
    await prepare(bench)
    before = await bench.read_state(TP)
    good = AlterPartitionItem("orders", "", 1, 0, (1,), 0)
    refused, granted = await ask(bench, item, good)
    assert refused == AlterPartitionResult(item.topic, item.partition, error)
    assert await bench.read_state(TP) == before == bench.context.leadership[TP]
    assert (granted.partition, granted.error) == (1, ErrorCode.NONE)
    assert (await bench.read_state(SECOND)).isr == (1,)


@pytest.mark.requirement("D9")
async def test_nobody_becomes_leader_by_asking(bench: Bench) -> None:
    await prepare(bench)
    third = TopicPartition("orders", 2)
    [refused] = await ask(bench, AlterPartitionItem("orders", "", 2, 0, (1,), 0))
    assert refused.error is ErrorCode.INVALID_REQUEST
    assert (await bench.read_state(third)).leader == 2


@pytest.mark.requirement("D9")
@pytest.mark.parametrize("partition_epoch", [0, PARTITION_EPOCH, PARTITION_EPOCH + 1])
async def test_asking_again_for_what_was_granted_is_granted_without_a_write(bench: Bench, partition_epoch: int) -> None:
    await prepare(bench)
    [granted] = await ask(bench, ITEM)
    bench.seen.clear()
    [again] = await ask(bench, replace(ITEM, partition_epoch=partition_epoch))
    assert again == granted
    assert bench.seen.commits == []
    assert (await bench.read_state(TP)).partition_epoch == granted.partition_epoch


@pytest.mark.requirement("D9")
async def test_an_isr_in_another_order_is_another_isr(bench: Bench) -> None:
    await prepare(bench)
    [result] = await ask(bench, replace(ITEM, new_isr=(3, 2, 1)))
    assert (result.isr, result.partition_epoch) == ((3, 2, 1), PARTITION_EPOCH + 1)


@pytest.mark.requirement("D9")
async def test_a_recovering_leader_recovers_alone_or_not_at_all(bench: Bench) -> None:
    await prepare(bench, LeaderRecoveryState.RECOVERING)
    [refused] = await ask(bench, replace(ITEM, new_isr=(1,), leader_recovery_state=25))
    assert refused.error is ErrorCode.INVALID_REQUEST
    [refused] = await ask(bench, replace(ITEM, leader_recovery_state=1))
    assert refused.error is ErrorCode.INVALID_REQUEST
    [granted] = await ask(bench, replace(ITEM, new_isr=(1,)))
    assert (granted.error, granted.leader_recovery_state) == (ErrorCode.NONE, LeaderRecoveryState.RECOVERED)


@pytest.mark.requirement("D9")
async def test_a_state_that_changed_behind_the_controllers_back_is_an_old_version(bench: Bench) -> None:
    await prepare(bench)
    behind = replace(await bench.read_state(TP), isr=(1, 3))
    await bench.write_state(TP, behind)
    [refused] = await ask(bench, ITEM)
    assert refused.error is ErrorCode.INVALID_UPDATE_VERSION
    assert bench.context.leadership[TP].isr == (1, 3)
    [granted] = await ask(bench, replace(ITEM, partition_epoch=PARTITION_EPOCH + 1))
    assert granted.error is ErrorCode.NONE


@pytest.mark.requirement("D9")
async def test_who_was_refused_is_told_what_is_in_effect(bench: Bench) -> None:
    await prepare(bench)
    await ask(bench, replace(ITEM, partition_epoch=PARTITION_EPOCH - 1))
    told = [tell.partitions for tell in bench.seen.metadata() if tell.brokers is None or 1 in tell.brokers]
    assert told == [(bench.context.describe(TP),)]


@pytest.mark.requirement("D9")
async def test_a_dead_member_that_others_have_written_may_go_but_not_stay(bench: Bench) -> None:
    await prepare(bench)
    await bench.write_state(TP, replace(await bench.read_state(TP), isr=(1, 2, 4)))
    [refused] = await ask(bench, ITEM)
    assert refused.error is ErrorCode.INVALID_UPDATE_VERSION
    assert bench.context.leadership[TP].isr == (1, 2, 4)
    now = replace(ITEM, partition_epoch=PARTITION_EPOCH + 1)
    [refused] = await ask(bench, replace(now, new_isr=(1, 4)))
    assert refused.error is ErrorCode.INELIGIBLE_REPLICA
    [granted] = await ask(bench, now)
    assert (granted.error, granted.isr) == (ErrorCode.NONE, (1, 2))


@pytest.mark.requirement("D9")
@pytest.mark.parametrize("is_kafkas", [True, False])
async def test_a_leader_of_kafkas_with_an_old_version_gets_a_new_epoch(bench: Bench, is_kafkas: bool) -> None:
    await prepare(bench)
    bench.context.config = evolve(bench.context.config, kafka=is_kafkas)
    await bench.write_state(TP, await bench.read_state(TP))
    [refused] = await ask(bench, ITEM)
    assert refused.error is ErrorCode.INVALID_UPDATE_VERSION
    now = bench.context.leadership[TP]
    assert (now.leader, now.isr) == (1, (1, 2, 3))
    assert now.leader_epoch == LEADER_EPOCH + is_kafkas
    assert [order.state.leader_epoch for order in bench.seen.leader_and_isr()] == [LEADER_EPOCH + 1] * is_kafkas
    assert (await bench.read_state(TP)).leader_epoch == now.leader_epoch


async def test_who_does_not_lead_gives_no_leader_a_new_epoch(bench: Bench) -> None:
    await prepare(bench)
    bench.context.config = evolve(bench.context.config, kafka=True)
    [refused] = await ask(bench, replace(ITEM, partition_epoch=PARTITION_EPOCH - 1), broker=2)
    assert refused.error is ErrorCode.INVALID_UPDATE_VERSION
    assert bench.context.leadership[TP].leader_epoch == LEADER_EPOCH
