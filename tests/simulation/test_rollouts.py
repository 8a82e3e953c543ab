"""Rollouts that simulated controllers carry out: killed in the middle, and within their limits at every commit."""

from __future__ import annotations

from typing import TypeVar

import pytest
import trio
from msgspec.structs import replace

from controller.rollout.adapting import FIRST, LEAST
from klamm.testing import SimulatedCluster, open_cluster
from klamm.testing.actions import BreakPage, LimitDisks, MendPage, RemoveFile, ResumeFetching, StopFetching, TouchFile
from simulator.safety.invariants import Violation
from tests.simulation.planted.edits import edit
from transport.messages import (
    ChangeRolloutRequest,
    DescribeRolloutsRequest,
    Request,
    RolloutChanges,
    RolloutDescription,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    UploadRolloutRequest,
)
from transport.store import paths
from transport.store.formats import decode_topic

pytestmark = pytest.mark.usefixtures("autojump_clock")

R = TypeVar("R")

PARTITIONS, IN_FLIGHT = 20, 3
USUAL = RolloutSettings(in_all=IN_FLIGHT)


async def ask(c: SimulatedCluster, request: Request[R]) -> R:
    """Ask the active controller."""
    await c.until(lambda: c.active_controller is not None)
    assert c.active_controller is not None
    return await c.ask(c.active_controller, request)


async def start(c: SimulatedCluster, settings: RolloutSettings = USUAL) -> None:
    """Start a rollout that moves all partitions from broker 1 to broker 3."""
    await c.create_topic("orders", [(1, 2)] * PARTITIONS)
    for number in range(PARTITIONS):
        await c.produce(f"orders-{number}", [bytes(1000)] * 10)
    moves = tuple(RolloutMove("orders", number, (3, 2), (1, 2), size=10_000) for number in range(PARTITIONS))
    answer = await ask(c, UploadRolloutRequest("monday", "digest", 0, moves))
    assert answer.left_out == ()
    await ask(c, StartRolloutRequest("monday", "digest", PARTITIONS, settings))


async def describe(c: SimulatedCluster) -> RolloutDescription:
    [found] = (await ask(c, DescribeRolloutsRequest())).rollouts
    return found


def moving(c: SimulatedCluster) -> int:
    """Return how many partitions are being moved, as the store says."""
    topics = c.durable.tree.children(paths.REASSIGNMENTS)
    return sum(len(c.durable.tree.children(f"{paths.REASSIGNMENTS}/{name}") or ()) for name in topics or ())


async def end(c: SimulatedCluster) -> RolloutDescription:
    """Wait until the rollout is over, and see that never more is in flight than it allows."""
    while (found := await describe(c)).place >= 0:
        assert moving(c) <= IN_FLIGHT
        await trio.sleep(0.1)
    return found


def replicas(c: SimulatedCluster) -> set[tuple[int, ...]]:
    """Return the replicas of the partitions."""
    found = [c.durable.tree.read(paths.topic("orders"))]
    return {
        each.replicas for znode in found if znode for each in decode_topic("orders", znode.data).partitions.values()
    }


@pytest.mark.parametrize("round_", ["marks", "U1", "ISR", "B6"])
async def test_a_controller_killed_in_the_middle_is_followed_by_one_that_carries_on(round_: str) -> None:
    async with open_cluster() as c:
        killed = c.active_controller
        c.crash_at(round_)
        await start(c)
        await c.until(lambda: c.active_controller not in (None, killed))
        found = await end(c)
        assert (found.phase, found.counts) == ("done", (("done", PARTITIONS),))
        assert replicas(c) == {(3, 2)}


@pytest.mark.parametrize(("order", "phase"), [(RolloutOrder.ABORT, "aborted"), (RolloutOrder.UNDO, "undone")])
async def test_an_order_is_carried_out_by_the_next_controller(order: RolloutOrder, phase: str) -> None:
    async with open_cluster() as c:
        await start(c)
        await c.until(lambda: any(state == (3, 2) for state in replicas(c)))
        killed = c.active_controller
        assert killed is not None
        await ask(c, ChangeRolloutRequest("monday", order))
        c.crash(killed)
        await c.until(lambda: c.active_controller not in (None, killed))
        found = await end(c)
        assert found.phase == phase
        assert moving(c) == 0
        assert replicas(c) == ({(1, 2)} if order is RolloutOrder.UNDO else {(1, 2), (3, 2)})


async def test_a_broker_that_does_not_answer_lowers_a_throttle_that_is_found_by_itself() -> None:
    async with open_cluster() as c:
        c.pause(3, keeps_session=True)
        await start(c, replace(USUAL, throttle=FIRST, adapts=True))
        await trio.sleep(40)
        assert LEAST <= (await describe(c)).settings.throttle <= FIRST // 4
        c.wake(3)
        assert (await end(c)).counts == (("done", PARTITIONS),)


async def test_a_file_on_the_hosts_of_controllers_holds_a_rollout_up() -> None:
    async with open_cluster() as c:
        TouchFile("/run/stop").on(c)
        await start(c, replace(USUAL, pause_file="/run/stop"))
        await trio.sleep(30)
        assert replicas(c) == {(1, 2)}
        assert (await describe(c)).why == "/run/stop exists"
        RemoveFile("/run/stop").on(c)
        assert (await end(c)).counts == (("done", PARTITIONS),)


@pytest.mark.parametrize(("is_silent", "why"), [(False, "answers 503"), (True, "does not answer: timed out")])
async def test_a_page_that_does_not_say_yes_holds_a_rollout_up(is_silent: bool, why: str) -> None:
    async with open_cluster() as c:
        BreakPage("http://go/", silent=is_silent).on(c)
        await start(c, replace(USUAL, go_url="http://go/"))
        await trio.sleep(30)
        assert replicas(c) == {(1, 2)}
        assert (await describe(c)).why == f"http://go/ {why}"
        MendPage("http://go/").on(c)
        assert (await end(c)).counts == (("done", PARTITIONS),)


ASKED = "broker 3 has been asked for the room on its disks"
SHORT = ("broker 3 has room for 5,000 bytes, and it needs 10,000", PARTITIONS - 1)


async def test_moves_wait_for_room_on_the_disk_that_they_go_to() -> None:
    async with open_cluster() as c:
        LimitDisks({3: 15_000}).on(c)
        StopFetching({3: ["orders-0"]}).on(c)
        await start(c)
        await trio.sleep(15)
        described = await describe(c)
        assert described.counts == (("pending", PARTITIONS - 1), ("in flight", 1))
        assert described.waits == (SHORT,)
        LimitDisks({3: 10**9}).on(c)
        ResumeFetching({3: ["orders-0"]}).on(c)
        assert (await end(c)).counts == (("done", PARTITIONS),)


async def test_the_next_controller_begins_no_more_than_there_is_room_for() -> None:
    async with open_cluster() as c:
        LimitDisks({3: 15_000}).on(c)
        StopFetching({3: ["orders-0"]}).on(c)
        await start(c)
        await c.until(lambda: moving(c) == 1)
        killed = c.active_controller
        assert killed is not None
        c.crash(killed)
        await c.until(lambda: c.active_controller not in (None, killed))
        await trio.sleep(15)
        assert (await describe(c)).waits == (SHORT,)
        assert moving(c) == 1


async def test_moves_begin_as_soon_as_their_broker_has_told_its_room() -> None:
    async with open_cluster() as c:
        StopFetching({3: [f"orders-{number}" for number in range(PARTITIONS)]}).on(c)
        await start(c)
        await trio.sleep(1.5)
        assert moving(c) == IN_FLIGHT


async def test_a_broker_that_does_not_tell_its_room_holds_no_move_up_for_ever() -> None:
    async with open_cluster() as c:
        c.pause(3, keeps_session=True)
        await start(c)
        await trio.sleep(2)
        assert (moving(c), (await describe(c)).waits) == (0, ((ASKED, PARTITIONS),))
        await c.until(lambda: moving(c) == IN_FLIGHT)


async def test_a_move_to_a_broker_that_was_not_asked_for_its_room_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    awaited = "awaited = rollout.unheard(receiving)"
    edit(monkeypatch, "controller.handlers.rollout_moves:_standing", (awaited, "awaited: frozenset[int] = frozenset()"))
    with pytest.raises(Violation, match=r"begins to move .*, though broker 3 has not been asked for its room"):
        await until_it_begins_without_room()


async def until_it_begins_without_room() -> None:
    """Let a second move begin once the first one has taken most of the room."""
    async with open_cluster() as c:
        LimitDisks({3: 15_000}).on(c)
        StopFetching({3: ["orders-0"]}).on(c)
        await start(c, replace(USUAL, in_all=1))
        await trio.sleep(15)
        await ask(c, ChangeRolloutRequest("monday", RolloutOrder.SET, RolloutChanges(in_all=2)))
        await trio.sleep(15)


async def test_a_move_that_begins_without_room_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    await until_it_begins_without_room()
    taken = "taken = [*(part.moves[number] for part, number in rollout.flying), *rollout.landed]"
    edit(monkeypatch, "controller.handlers.rollout_moves:_standing", (taken, "taken: list[Move] = []"))
    with pytest.raises(Violation, match=r"begins to move .*, though broker 3 has told of 15,000 bytes, and 20,000"):
        await until_it_begins_without_room()
