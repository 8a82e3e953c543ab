"""Moves whose replicas catch up at the same time are finished together."""

from __future__ import annotations

import pytest
import trio

from controller.config import ControllerConfig
from controller.node.service import ControllerService
from tests.kit.service import Controllers, until
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterPartitionResponse,
    CreateTopicsRequest,
    NewTopic,
    ReassignablePartition,
)
from transport.metadata import BrokerRegistration, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.limits import RequestLimits
from transport.store.protocol import Create, ensure_paths

MOVES = {1: (1, 3), 2: (2, 3), 3: (3, 1)}
"""The targets of a topic's partitions, by their leaders: each partition is named after its leader."""


async def moving(controllers: Controllers) -> ControllerService:
    """Return a controller that waits for the new replica of each partition."""
    async with controllers.memory.session() as tool:
        await ensure_paths(tool, paths.PERSISTENT)
        for broker_id in MOVES:
            data = formats.encode_broker(BrokerRegistration(broker_id, "127.0.0.1", 1, -1), 0)
            await tool.multi([Create(paths.broker(broker_id), data)])
    service = await controllers.start_active(auto_leader_rebalance_enable=False)
    await service.answer(CreateTopicsRequest((NewTopic("orders", 4, 2, ((1, 2), (1, 2), (2, 1), (3, 2))),)))
    await until(lambda: service.is_idle)
    moves = [ReassignablePartition("orders", number, target) for number, target in MOVES.items()]
    await service.answer(AlterPartitionReassignmentsRequest(tuple(moves)))
    return service


def with_all(service: ControllerService, broker_id: int) -> AlterPartitionRequest:
    """Return a leader's request to let the new replica of its partition join the ISR."""
    assert service.office is not None
    context, tp = service.office.context, TopicPartition("orders", broker_id)
    now = context.leadership[tp]
    item = AlterPartitionItem(
        *(tp.topic, context.topic_id(tp.topic), tp.partition, now.leader_epoch),
        context.assignment(tp).replicas,
        now.partition_epoch,
    )
    return AlterPartitionRequest(broker_id, context.brokers[broker_id].epoch, (item,))


async def test_leaders_that_wait_are_answered_first_and_then_all_moves_are_finished_together(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await moving(controllers)
    answers: dict[int, object] = {}

    async def ask(broker_id: int) -> None:
        answers[broker_id] = await service.answer(with_all(service, broker_id))

    def hold(_event: str) -> None:
        monkeypatch.undo()
        service.hold_events()

    monkeypatch.setattr(service.observer, "processing", hold)
    await ask(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, 2)
        nursery.start_soon(ask, 3)
        await until(lambda: service.queue_size() == 3)  # the two, and what the first one calls for
        service.release_events()
    isrs = {n: answer.partitions[0].isr for n, answer in answers.items() if isinstance(answer, AlterPartitionResponse)}
    assert isrs == {1: (1, 3, 2), 2: (2, 3, 1), 3: (3, 1, 2)}
    await until(lambda: service.is_idle)
    statistics = service.statistics()
    assert (statistics["AlterPartition"].count, statistics["PartitionReassignmentIsrChange"].count) == (2, 1)
    async with controllers.memory.session() as tool:
        [znode] = await tool.read([paths.topic("orders")])
    assert znode is not None
    assignments = formats.decode_topic("orders", znode.data).partitions
    assert {number: assignments[number] for number in MOVES} == {n: ReplicaAssignment(to) for n, to in MOVES.items()}


async def test_many_moves_begin_and_end_in_several_events(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ControllerConfig, "request_limits", RequestLimits(operations=1))
    service = await moving(controllers)
    service.hold_events()
    async with trio.open_nursery() as nursery:
        for broker_id in MOVES:
            nursery.start_soon(service.answer, with_all(service, broker_id))
        await until(lambda: service.queue_size() == len(MOVES))
        service.release_events()
    await until(lambda: service.is_idle)
    counts = {name: statistics.count for name, statistics in service.statistics().items()}
    assert (counts["AlterPartitionReassignments"], counts["PartitionReassignmentIsrChange"]) == (2, 2)
    assert service.office is not None
    assert service.office.context.reassigning == {}
