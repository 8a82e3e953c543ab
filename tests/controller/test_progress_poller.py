"""Requests for the progress of moves: of limited size, to each broker by itself, where it listens now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from attrs import define, evolve, field

from controller.progress.poller import ANSWER_SECONDS, MAX_PARTITIONS, SURVEYED_AT_ONCE, ProgressPoller
from controller.progress.tracker import Moves, MovingPartition
from controller.rollout.room import Disk
from tests.controller.conftest import HOST
from transport.errors import ErrorCode
from transport.messages import (
    UNKNOWN,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeReassignmentsResponse,
    LogDir,
    LogDirReplica,
)
from transport.metadata import BrokerRegistration, TopicPartition
from transport.network import TcpNetwork
from transport.wire import Handlers, serve

LOOPBACK = "127.0.0.1"


@define
class Broker:
    """Has logs of 100 bytes, or answers nothing."""

    id: int
    is_silent: bool = False
    tells_sizes: bool = True
    is_old: bool = False
    """Whether it does not know the request."""

    asked: list[int] = field(factory=list)
    """For how many partitions, request by request."""

    async def listen(self, nursery: trio.Nursery) -> BrokerRegistration:
        handlers: Handlers = {} if self.is_old else {DescribeLogDirsRequest: self._answer}
        port: int = await nursery.start(partial(serve, TcpNetwork(), handlers, LOOPBACK, 0))
        return BrokerRegistration(self.id, LOOPBACK, port, 1)

    async def _answer(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        if self.is_silent:
            await trio.sleep_forever()
        assert request.partitions is not None
        self.asked.append(len(request.partitions))
        replicas = tuple(LogDirReplica(topic, "id", number, 100, 10, 0) for topic, number in request.partitions)
        sizes = (1_000, 400) if self.tells_sizes else ()
        return DescribeLogDirsResponse((LogDir("/d", ErrorCode.NONE, replicas, *sizes),))


def moves(count: int, *brokers: BrokerRegistration) -> Moves:
    """Return moves from broker 1 to 2."""
    tps = [TopicPartition("orders", number) for number in range(count)]
    return Moves(tuple(MovingPartition(tp, "id", 1, (1,), (2,)) for tp in tps), brokers)


@asynccontextmanager
async def polling() -> AsyncIterator[tuple[ProgressPoller, trio.Nursery]]:
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            yield ProgressPoller(nursery, TcpNetwork(), HOST, "controller-1001"), nursery
            nursery.cancel_scope.cancel()


async def until_known(poller: ProgressPoller, number: int, broker_id: int) -> None:
    while poller.progress.sizes(TopicPartition("orders", number), broker_id) == (UNKNOWN, UNKNOWN):
        await trio.sleep(0.01)


@pytest.mark.requirement("B5")
async def test_many_moves_are_asked_about_in_requests_of_limited_size() -> None:
    async with polling() as (poller, nursery):
        leader = Broker(1)
        poller.follow(moves(2 * MAX_PARTITIONS + 5, await leader.listen(nursery)))
        await until_known(poller, 2 * MAX_PARTITIONS + 4, 1)
        assert leader.asked == [MAX_PARTITIONS, MAX_PARTITIONS, 5]


async def test_the_totals_of_many_moves_hold_nobody_up() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with polling() as (poller, nursery):
        poller.follow(moves(10 * SURVEYED_AT_ONCE))
        nursery.start_soon(count)
        await poller.add_to(DescribeReassignmentsResponse(()))
        assert turns > 5


async def test_a_silent_broker_holds_up_no_other() -> None:
    async with polling() as (poller, nursery):
        leader, target = Broker(1, is_silent=True), Broker(2)
        poller.follow(moves(1, await leader.listen(nursery), await target.listen(nursery)))
        await until_known(poller, 0, 2)
        while len(target.asked) < 2:
            await trio.sleep(0.01)
        assert poller.progress.sizes(TopicPartition("orders", 0), 1) == (UNKNOWN, UNKNOWN)
        assert list(poller.answers) == [2]
        assert poller.answers[2] < ANSWER_SECONDS


async def test_a_broker_that_listens_elsewhere_is_asked_there() -> None:
    async with polling() as (poller, nursery):
        before, after = Broker(1, is_silent=True), Broker(1)
        first = await before.listen(nursery)
        poller.follow(moves(1, first))
        await trio.testing.wait_all_tasks_blocked()
        poller.follow(moves(1, evolve(await after.listen(nursery), epoch=first.epoch)))
        await until_known(poller, 0, 1)


async def test_a_broker_that_is_to_have_room_is_asked_for_it_alone() -> None:
    async with polling() as (poller, nursery):
        broker = Broker(3)
        poller.follow(evolve(moves(0, await broker.listen(nursery)), asked=frozenset({3})))
        while not broker.asked:
            await trio.sleep(0.01)
        await trio.testing.wait_all_tasks_blocked()
        assert (broker.asked[0], poller.disks) == (0, {3: Disk(400, 400, {"/d": 400})})
        # It copies nothing: how quick it is does not matter.
        assert (poller.answers, len(poller.untold)) == ({}, 0)


@pytest.mark.parametrize(
    "broker", [Broker(3, tells_sizes=False), Broker(3, is_silent=True), Broker(3, is_old=True)], ids=str
)
async def test_a_broker_that_does_not_tell_its_room_is_not_waited_for(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.progress.poller.ANSWER_SECONDS", 0.05 if broker.is_silent else 60)
    async with polling() as (poller, nursery):
        poller.follow(evolve(moves(0, await broker.listen(nursery)), asked=frozenset({3})))
        assert poller.untold == set()
        while not poller.untold:
            await trio.sleep(0.01)
        assert poller.untold == {3}
        assert poller.disks == {}


async def test_a_broker_that_copies_no_more_is_not_judged_by_its_answers() -> None:
    async with polling() as (poller, nursery):
        leader, target = Broker(1), Broker(2)
        both = await leader.listen(nursery), await target.listen(nursery)
        poller.follow(moves(1, *both))
        await until_known(poller, 0, 1)
        await until_known(poller, 0, 2)
        poller.follow(evolve(moves(0, *both), asked=frozenset({1})))
        assert poller.answers == {}


async def test_nobody_is_asked_when_nothing_moves_or_nobody_is_in_office() -> None:
    async with polling() as (poller, nursery):
        brokers = [await Broker(id_).listen(nursery) for id_ in (1, 2, 3)]

        def asking() -> list[str]:
            return sorted(task.name for task in nursery.child_tasks if task.name.startswith("progress-"))

        poller.follow(moves(1, *brokers))
        assert asking() == ["progress-1", "progress-2"]
        poller.follow(moves(0, *brokers))
        await trio.testing.wait_all_tasks_blocked()
        assert asking() == []
        poller.follow(moves(1, *brokers))
        poller.close()
        await trio.testing.wait_all_tasks_blocked()
        assert asking() == []
