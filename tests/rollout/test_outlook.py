"""The room on disks and the load of brokers, which a controller finds out for a rollout outside its queue."""

from __future__ import annotations

import math

import trio

from controller.config import ControllerConfig
from controller.events import ControllerEvent, CopyingSeen, RoomSeen
from controller.model.context import ControllerContext
from controller.model.rollout_facts import MovesChosen, RolloutWritten, RoomTold
from controller.node.rollout_outlook import RolloutOutlook
from controller.progress.poller import ProgressPoller
from controller.progress.tracker import Moves, MovingPartition
from controller.rollout.adapting import SECONDS
from controller.rollout.room import Disk
from tests.controller.conftest import HOST
from transport.errors import ErrorCode
from transport.host import Host
from transport.messages import BrokerEndpoint, LogDir, LogDirReplica, RolloutSettings
from transport.metadata import BrokerRegistration, TopicPartition
from transport.network import TcpNetwork
from transport.store.rollouts import StoredRollout

ISRS = [(1, 2, 3), (1, 2), (1, 2), (1, 2)]
"""The first move is in sync, of the second all bytes are told, of the third none; the last is not the rollout's."""


async def told(context: ControllerContext, *looks: dict[int, float]) -> list[ControllerEvent]:
    """Return what is told in some looks, of which each finds that brokers took so long to answer."""
    found: list[ControllerEvent] = []
    outlook = RolloutOutlook(found.append, Host())
    async with trio.open_nursery() as nursery:
        progress = ProgressPoller(nursery, TcpNetwork(), HOST, "controller-1001")
        progress.disks[3] = Disk(50, 40)
        for answers in looks:
            progress.answers = answers
            outlook.look(nursery, context, progress)
            await trio.sleep(SECONDS / 2)
    return found


def carrying_out(settings: RolloutSettings) -> ControllerContext:
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), 1, 1, config=ControllerConfig(1001))
    context.apply(RolloutWritten("monday", StoredRollout("digest", 1, 0, "", "running", settings, (), ()), 1))
    return context


async def test_the_pace_of_brokers_is_told_as_often_as_a_throttle_may_change(autojump_clock: object) -> None:
    assert autojump_clock
    found = await told(carrying_out(RolloutSettings(adapts=True)), {}, {1: 0.1, 2: 0.3}, {1: 9}, {1: math.inf, 2: 0.2})
    assert [event for event in found if isinstance(event, CopyingSeen)] == [
        CopyingSeen(0.3, (), None),
        CopyingSeen(0.2, (1,), None),
    ]


async def test_nobody_asks_for_the_pace_of_a_rollout_with_a_rate(autojump_clock: object) -> None:
    assert autojump_clock
    assert await told(carrying_out(RolloutSettings()), {1: 0.1}) == [RoomSeen(((3, 50, 40),))]


async def test_room_that_was_told_once_is_not_told_for_ever(autojump_clock: object) -> None:
    assert autojump_clock
    found = list[ControllerEvent]()
    async with trio.open_nursery() as nursery:
        progress = ProgressPoller(nursery, TcpNetwork(), HOST, "controller-1001")
        RolloutOutlook(found.append, Host()).look(nursery, carrying_out(RolloutSettings()), progress)
    assert found == [RoomSeen(())]


async def test_room_that_moves_wait_for_is_told_at_once(autojump_clock: object) -> None:
    assert autojump_clock
    context, found = carrying_out(RolloutSettings()), list[ControllerEvent]()
    context.apply(MovesChosen("monday", {}, asks=frozenset({3, 4})))
    async with trio.open_nursery() as nursery:
        progress = ProgressPoller(nursery, TcpNetwork(), HOST, "controller-1001")
        outlook = RolloutOutlook(found.append, Host())
        progress.disks[2] = Disk(50, 40)
        outlook.hear(context, progress)
        assert found == []
        progress.disks[3] = Disk(50, 40)
        outlook.hear(context, progress)
        assert found == [RoomSeen(((2, 50, 40), (3, 50, 40)))]
        context.apply(RoomTold("monday", progress.disks, untold=frozenset({4})))
        outlook.hear(context, progress)
    assert len(found) == 1


async def test_without_a_rollout_nothing_is_told(autojump_clock: object) -> None:
    assert autojump_clock
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), 1, 1, config=ControllerConfig(1001))
    assert await told(context, {1: 0.1}) == []


async def test_bytes_are_told_of_moves_in_flight_whose_brokers_all_have_told_them(autojump_clock: object) -> None:
    assert autojump_clock
    context, found = carrying_out(RolloutSettings()), list[ControllerEvent]()
    moving = [MovingPartition(TopicPartition("orders", n), "id", 1, isr, (3, 2)) for n, isr in enumerate(ISRS)]
    context.rollouts.flying = {move.tp: ("monday", 0, number) for number, move in enumerate(moving[:-1])}
    async with trio.open_nursery() as nursery:
        progress = ProgressPoller(nursery, TcpNetwork(), HOST, "controller-1001")
        progress.progress.follow(Moves(tuple(moving), (BrokerRegistration(3, "127.0.0.1", 1, 1),)), 0.0)
        for broker, size in ((1, 100), (3, 40)):
            logs = [LogDirReplica("orders", "id", number, size, size, 0) for number in (1, 3)]
            asked = [moving[number].tp for number in (1, 3)]
            progress.progress.told(broker, asked, [LogDir("/data", ErrorCode.NONE, tuple(logs))], 1.0)
        RolloutOutlook(found.append, Host()).look(nursery, context, progress)
    assert found == [RoomSeen((), ((moving[0].tp, 0), (moving[1].tp, 60)))]
