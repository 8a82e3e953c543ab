"""Leaders of Kafka's releases 2.7 to 3.1 get a higher epoch after changes of their ISR that would hold them up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.config import ControllerConfig
from controller.events import BrokerChange, BrokerReleaseSeen, OvertakenLeader
from controller.node import alarms
from tests.controller.conftest import ENDPOINT, TP, Bench
from transport.errors import ErrorCode
from transport.kafka.releases import Release
from transport.messages import AlterPartitionItem, AlterPartitionRequest, AlterPartitionResponse
from transport.metadata import LeaderAndIsr

OLD = Release(needs_registration=True, needs_epochs=True)
NEW = Release(needs_registration=False)


async def start(bench: Bench, release: Release = OLD, isr: tuple[int, ...] = (1, 2, 3), leader: int = 1) -> None:
    """Take office where a broker leads a partition of brokers 1 to 3 with an ISR, and 4 is alive."""
    await bench.start((1, 2, 3), brokers=(1, 2, 3, 4))
    await bench.write_state(TP, replace(await bench.read_state(TP), isr=isr, leader=leader))
    await bench.fail_over()
    await bench.handle(BrokerReleaseSeen(1, bench.context.brokers[1].epoch, release))
    bench.seen.clear()


def proposal(bench: Bench, *isr: int) -> AlterPartitionItem:
    now = bench.context.leadership[TP]
    return AlterPartitionItem("orders", "id-of-orders", 0, now.leader_epoch, isr, now.partition_epoch)


async def propose(bench: Bench, item: AlterPartitionItem) -> ErrorCode:
    """Let broker 1 propose an ISR; return the answer."""
    bench.context.config = ControllerConfig(ENDPOINT.id, kafka=True)
    request = AlterPartitionRequest(1, bench.context.brokers[1].epoch, (item,))
    [result] = (await bench.ask(request, AlterPartitionResponse)).partitions
    return result.error


def renewed(before: LeaderAndIsr, isr: tuple[int, ...], writes: int) -> LeaderAndIsr:
    """Return a leadership one leader epoch later, after a number of writes."""
    return LeaderAndIsr(before.leader, before.leader_epoch + 1, isr, before.partition_epoch + writes, 2)


async def test_after_a_granted_shrink(bench: Bench) -> None:
    await start(bench)
    before = bench.context.leadership[TP]
    assert await propose(bench, proposal(bench, 1, 2)) is ErrorCode.NONE
    assert await bench.read_state(TP) == renewed(before, (1, 2), writes=2)
    [order] = bench.seen.leader_and_isr()
    assert (order.brokers, order.state.leader_epoch, order.state.isr) == ((1, 2, 3), before.leader_epoch + 1, (1, 2))


async def test_after_a_refusal_which_the_refused_replica_does_not_hear_of(bench: Bench) -> None:
    await start(bench, isr=(1, 2))
    await bench.kill(3)
    before = bench.context.leadership[TP]
    bench.seen.clear()
    assert await propose(bench, proposal(bench, 1, 2, 3)) is ErrorCode.INELIGIBLE_REPLICA
    assert await bench.read_state(TP) == renewed(before, (1, 2), writes=1)
    [order] = bench.seen.leader_and_isr()
    assert (order.brokers, order.state.leader_epoch) == ((1, 2), before.leader_epoch + 1)


@pytest.mark.parametrize("isr", [(1, 2, 3, 4), (2, 3)])
async def test_after_every_other_refusal(bench: Bench, isr: tuple[int, ...]) -> None:
    await start(bench)
    before = bench.context.leadership[TP]
    assert await propose(bench, proposal(bench, *isr)) is not ErrorCode.NONE
    assert await bench.read_state(TP) == renewed(before, (1, 2, 3), writes=1)


async def test_after_a_write_that_came_first(bench: Bench) -> None:
    await start(bench)
    await bench.write_state(TP, replace(bench.context.leadership[TP], isr=(1, 3)))
    before = await bench.read_state(TP)
    assert await propose(bench, proposal(bench, 1, 2)) is ErrorCode.INVALID_UPDATE_VERSION
    assert await bench.read_state(TP) == renewed(before, (1, 3), writes=1)


async def test_not_for_an_isr_that_is_complete_again(bench: Bench) -> None:
    await start(bench, isr=(1, 2))
    before = bench.context.leadership[TP]
    assert await propose(bench, proposal(bench, 1, 2, 3)) is ErrorCode.NONE
    assert bench.context.leadership[TP].leader_epoch == before.leader_epoch
    assert bench.seen.leader_and_isr() == []


async def test_after_a_proposal_that_crossed_its_next_epoch(bench: Bench) -> None:
    # The answer makes a leader of 2.8.2 forget the proposal of its next epoch: seen when a move never ended.
    await start(bench)
    before = bench.context.leadership[TP]
    late = replace(proposal(bench, 1, 2), leader_epoch=before.leader_epoch - 1)
    assert await propose(bench, late) is ErrorCode.FENCED_LEADER_EPOCH
    assert await bench.read_state(TP) == before
    [(_, due)] = alarms.alarms(bench.context, BrokerChange())
    assert due == OvertakenLeader(TP, before)
    await bench.handle(due)
    assert await bench.read_state(TP) == renewed(before, (1, 2, 3), writes=1)
    # Once is enough.
    assert alarms.alarms(bench.context, due) == []


async def test_not_after_a_proposal_that_was_not_forgotten(bench: Bench) -> None:
    await start(bench)
    before = bench.context.leadership[TP]
    late = replace(proposal(bench, 1, 2, 3), leader_epoch=before.leader_epoch - 1)
    assert await propose(bench, late) is ErrorCode.FENCED_LEADER_EPOCH
    [(_, due)] = alarms.alarms(bench.context, BrokerChange())
    assert await propose(bench, proposal(bench, 1, 2)) is ErrorCode.NONE
    after = await bench.read_state(TP)
    await bench.handle(due)
    assert await bench.read_state(TP) == after
    assert alarms.alarms(bench.context, due) == []


async def test_not_for_a_leader_that_is_none_any_more(bench: Bench) -> None:
    await start(bench, leader=2)
    before = bench.context.leadership[TP]
    late = replace(proposal(bench, 1, 2), leader_epoch=before.leader_epoch - 1)
    assert await propose(bench, late) is ErrorCode.FENCED_LEADER_EPOCH
    assert await bench.read_state(TP) == before


@pytest.mark.parametrize("isr", [(1, 2), (1, 2, 3, 4)])
async def test_not_for_later_releases(bench: Bench, isr: tuple[int, ...]) -> None:
    await start(bench, NEW)
    before = bench.context.leadership[TP]
    await propose(bench, proposal(bench, *isr))
    assert bench.context.leadership[TP].leader_epoch == before.leader_epoch
    assert bench.seen.leader_and_isr() == []
