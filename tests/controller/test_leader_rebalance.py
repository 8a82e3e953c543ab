"""Leadership that returns to the preferred leaders automatically."""

from __future__ import annotations

import pytest
import structlog
from attrs import evolve
from msgspec.structs import replace

from controller.config import ControllerConfig
from controller.events import AutoPreferredReplicaLeaderElection, ControllerEvent
from controller.node import alarms
from tests.controller.conftest import TP, Bench
from transport.metadata import TopicPartition

SECOND = TopicPartition("orders", 1)


def due(bench: Bench) -> ControllerEvent:
    return AutoPreferredReplicaLeaderElection(bench.context.epoch)


def leaders(bench: Bench) -> list[int]:
    return [bench.context.leadership[tp].leader for tp in sorted(bench.context.leadership)]


async def bounce(bench: Bench, broker_id: int) -> None:
    """Let a broker go and come back into all ISRs."""
    await bench.kill(broker_id)
    await bench.revive(broker_id)
    for tp in bench.context.partitions_on([broker_id]):
        await bench.alter_isr(tp, *(r for r in bench.context.assignment(tp).replicas if r != broker_id), broker_id)
    bench.seen.clear()


@pytest.mark.requirement("D9")
async def test_a_preferred_leader_that_is_back_leads_again(bench: Bench) -> None:
    await bench.start((1, 2, 3), (1, 3), (2, 1))
    await bounce(bench, 1)
    assert leaders(bench) == [2, 3, 2]
    await bench.handle(due(bench))
    assert leaders(bench) == [1, 1, 2]
    # One round for all of a broker's partitions.
    assert bench.seen.rounds == ["elect", "(elect)"]


@pytest.mark.requirement("D9")
@pytest.mark.parametrize(("percentage", "leads"), [(50, 2), (49, 1), (100, 2), (0, 1)])
async def test_a_share_up_to_the_percentage_is_left_alone(bench: Bench, percentage: int, leads: int) -> None:
    await bench.start((1, 2), (1, 2))
    # One of two goes elsewhere: half.
    state = await bench.read_state(SECOND)
    await bench.write_state(SECOND, replace(state, leader=2))
    await bench.fail_over()
    bench.context.config = evolve(ControllerConfig(1001), leader_imbalance_per_broker_percentage=percentage)
    await bench.handle(due(bench))
    assert leaders(bench) == [1, leads]


@pytest.mark.requirement("D9")
async def test_nothing_is_tried_that_cannot_succeed(bench: Bench) -> None:
    """KAFKA-9866: the preferred leader is dead, or outside the ISR, or shuts down."""
    await bench.start((1, 2), (3, 2), (4, 2))
    await bench.kill(1, 3)
    await bench.revive(3)
    bench.seen.clear()
    with structlog.testing.capture_logs() as logs:
        await bench.handle(due(bench))
    assert (bench.seen.rounds, logs) == ([], [])


@pytest.mark.requirement("D9")
async def test_a_reassignment_keeps_only_its_own_partitions_where_they_are(bench: Bench) -> None:
    """KAFKA-10149: up to Kafka 3.3 one reassignment stopped everything."""
    await bench.start((1, 2), (1, 3))
    await bounce(bench, 1)
    await bench.move(TP, (1, 2, 4))
    assert bench.context.assignment(TP).is_being_reassigned
    await bench.handle(due(bench))
    assert leaders(bench) == [2, 1]


@pytest.mark.requirement("D7", "D9")
async def test_each_controllership_has_a_timer_of_its_own(bench: Bench) -> None:
    await bench.start((1, 2))
    await bounce(bench, 1)
    assert alarms.first_alarms(bench.context) == [(5.0, due(bench))]
    assert alarms.alarms(bench.context, due(bench)) == [(300, due(bench))]
    earlier = due(bench)
    await bench.fail_over()
    assert alarms.alarms(bench.context, earlier) == []
    assert alarms.first_alarms(bench.context) == [(5.0, due(bench))] != [(5.0, earlier)]


async def test_without_the_setting_there_is_no_timer(bench: Bench) -> None:
    bench.context.config = ControllerConfig(1001, auto_leader_rebalance_enable=False)
    assert alarms.first_alarms(bench.context) == []
