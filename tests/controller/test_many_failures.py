"""Many replicas that fail, are tried again and recover: the controller's work grows with their number alone."""

from __future__ import annotations

from typing import ClassVar

import pytest

from controller.gathered import Outcome, ReplicaOrder
from controller.handlers import failed_replicas
from controller.model.facts import BrokerGone
from controller.model.replica_failures import (
    LEAD_AGAIN_SECONDS,
    REPEAT_SECONDS,
    ReplicaFailed,
    ReplicaFailure,
    ReplicaRecovered,
)
from tests.controller.conftest import Bench
from transport.errors import ErrorCode
from transport.metadata import TopicPartition

MANY = 1000
TOPIC_ID = "id-of-orders"
FAILED, DONE = ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE
A_FAILURE = ReplicaFailure(ReplicaOrder.LEAD, FAILED, "as told", 0.0)


class CountedName(str):
    """A topic's name that counts how often it is compared: so it counts comparisons of partitions, too."""

    __slots__ = ()
    comparisons: ClassVar[list[int]] = [0]

    def __eq__(self, other: object) -> bool:
        self.comparisons[0] += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.fixture
def comparisons() -> list[int]:
    """Give the test the number of comparisons, from 0 on."""
    CountedName.comparisons[0] = 0
    return CountedName.comparisons


def partitions() -> list[TopicPartition]:
    return [TopicPartition(CountedName("orders"), number) for number in range(MANY)]


async def test_the_end_of_failures_is_linear_work(bench: Bench, comparisons: list[int]) -> None:
    tps = partitions()
    for tp in tps:
        for broker_id in (1, 2):
            bench.context.apply(ReplicaFailed((tp, broker_id), A_FAILURE))
    for tp in tps[: MANY // 2]:
        bench.context.apply(ReplicaRecovered((tp, 1)))
    bench.context.apply(BrokerGone(2))
    assert len(bench.context.failures) == MANY // 2
    assert comparisons[0] < 10 * MANY, "each comparison with all others would be hundreds of thousands"


async def test_failures_repetitions_and_recoveries_are_linear_work(bench: Bench, comparisons: list[int]) -> None:
    await bench.start(*[(1, 2, 3)] * MANY, brokers=(1, 2, 3))
    tps = partitions()

    async def answered(broker_id: int, error: ErrorCode, order: ReplicaOrder) -> None:
        context = bench.context
        epochs = context.brokers[broker_id].epoch, context.epoch
        outcomes = {(TOPIC_ID, tp): Outcome(order, context.leadership[tp].leader_epoch, error) for tp in tps}
        await bench.run(failed_replicas.orders_answered(context, broker_id, epochs, outcomes, now=0.0))

    async def tried_again(seconds: float) -> None:
        await bench.run(failed_replicas.try_again(bench.context, seconds))

    await answered(1, FAILED, ReplicaOrder.LEAD)
    assert {state.leader for state in bench.context.leadership.values()} == {2}
    await answered(3, FAILED, ReplicaOrder.FOLLOW)
    await tried_again(REPEAT_SECONDS)
    await tried_again(LEAD_AGAIN_SECONDS)
    await answered(3, DONE, ReplicaOrder.FOLLOW)
    await answered(2, FAILED, ReplicaOrder.LEAD)
    assert {state.leader for state in bench.context.leadership.values()} == {1}
    await answered(1, DONE, ReplicaOrder.LEAD)
    assert comparisons[0] < 200 * MANY, "111 for each replica, however many there are"
    assert len(bench.context.failures) == MANY
