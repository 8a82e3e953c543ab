"""Snapshots tell the page of a cluster: brokers, partitions at risk, moves, and decisions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import reduce
from operator import getitem
from typing import Any

import pytest
import trio

from controller.model.notable import Notable
from controller.monitoring.controller_states import STATE_OF
from controller.monitoring.measurements import Measurements
from controller.monitoring.page import broadcast, brokers, partitions
from controller.monitoring.page.decisions import REASONS
from controller.monitoring.page.snapshot import Snapshots
from controller.progress import poller
from tests.kit.live_page import LivePage
from tests.kit.scrape import scrape
from tests.kit.service import Controllers, until
from transport.errors import ErrorCode
from transport.messages import LogDir, LogDirReplica, RolloutMove, RolloutOrder
from transport.metadata import TopicPartition

TP = TopicPartition("orders", 0)


@pytest.fixture
async def page(controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LivePage]:
    monkeypatch.setattr(broadcast, "INTERVAL_SECONDS", 0.01)
    async with LivePage.of(controllers, (1, 2, 3)) as page:
        yield page


def column(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


async def snapshot_where(page: LivePage, *path: str, is_: object) -> dict[str, Any]:
    """Return the first snapshot in which something is as expected."""

    def is_wanted(snapshot: dict[str, Any]) -> bool:
        return reduce(getitem, path, snapshot) == is_

    return await page.snapshot(is_wanted)


@pytest.mark.requirement("D11")
async def test_brokers_with_their_leaders_and_replicas_the_dead_first(page: LivePage) -> None:
    await page.create_topic("orders", (1, 2), (2, 1), (2, 3))
    told = (await page.snapshot())["cluster"]["brokers"]
    named = ("id", "state", "leaders", "replicas", "rack")
    assert column(told["rows"], *named) == [
        (1, "live", 1, 2, "rack 1"),
        (2, "live", 2, 3, "rack 0"),
        (3, "live", 0, 1, "rack 1"),
    ]
    await page.kill(2)

    def are_led_by_others(snapshot: dict[str, Any]) -> bool:
        return column(snapshot["cluster"]["brokers"]["rows"], "id", "state", "leaders", "replicas") == [
            (2, "not alive", 0, 3),
            (1, "live", 2, 2),
            (3, "live", 1, 1),
        ]

    told = (await page.snapshot(are_led_by_others))["cluster"]["brokers"]
    assert (told["live"], told["count"]) == (2, 3)


@pytest.mark.requirement("D11")
async def test_partitions_at_risk_the_worst_first(page: LivePage, monkeypatch: pytest.MonkeyPatch) -> None:
    await page.create_topic("orders", (1, 2), (2,), (1, 3), (2, 1), (2,))
    assert (await page.snapshot())["cluster"]["at_risk"]["rows"] == []
    await page.kill(2)
    risks = (await snapshot_where(page, "cluster", "at_risk", "offline", is_=2))["cluster"]["at_risk"]
    assert (risks["offline"], risks["under_min_isr"], risks["under_replicated"]) == (2, 0, 2)
    assert column(risks["rows"], "partition", "risk", "leader", "isr", "dead") == [
        (1, "offline", -1, [2], [2]),
        (4, "offline", -1, [2], [2]),
        (0, "under-replicated", 1, [1], [2]),
        (3, "under-replicated", 1, [1], [2]),
    ]
    monkeypatch.setattr(partitions, "MAX_PARTITIONS", 3)
    assert len((await page.snapshot())["cluster"]["at_risk"]["rows"]) == 3


async def test_every_condition_but_another_leader_is_a_risk() -> None:
    assert {kind.name for kind in Notable} - {kind.name for kind in partitions._RISKS} == {"IMBALANCED"}  # noqa: SLF001


@pytest.mark.requirement("B5")
async def test_a_move_and_what_it_waits_for_until_it_ends(page: LivePage) -> None:
    await page.create_topic("orders", (1, 2), (2, 1))
    await page.move(TP, (3, 2))
    told = (await page.snapshot())["cluster"]["moves"]
    assert told["count"] == 1
    [row] = told["rows"]
    assert (row["topic"], row["partition"], row["adding"], row["removing"]) == ("orders", 0, [3], [1])
    assert row["waits_for"] == "broker 3 to join the ISR"
    assert (row["done"], row["bytes_left"]) == (None, None)
    await page.catch_up(TP, 1, 2, 3)
    ended = await snapshot_where(page, "cluster", "moves", "count", is_=0)
    assert ended["cluster"]["moves"]["rows"] == []


@pytest.mark.requirement("B5")
async def test_the_progress_of_a_move_shows_although_nothing_was_decided(page: LivePage) -> None:
    snapshots = Snapshots(page.service, Measurements())
    await page.create_topic("orders", (1, 2))
    assert snapshots.stamp() is not None
    await page.move(TP, (3, 2))
    assert snapshots.stamp() is None
    assert page.service.office is not None
    tracker = page.service.office.progress.progress
    await until(lambda: TP in tracker.moves)

    def has_half(snapshot: dict[str, Any]) -> bool:
        for broker_id, size in ((1, 200), (3, 100)):
            replica = LogDirReplica("orders", "", 0, size, size, -1)
            tracker.told(broker_id, [TP], [LogDir("/", ErrorCode.NONE, (replica,))], trio.current_time())
        [row] = snapshot["cluster"]["moves"]["rows"]
        return (row["done"], row["bytes_left"]) == (0.5, 100)

    await page.snapshot(has_half)
    assert (await scrape(page.port))["klamm_reassignment_bytes_left"] == 100


@pytest.mark.parametrize(("slices", "pauses"), [((100, 100), 1), ((2, 1), 5)])
async def test_a_large_cluster_is_looked_at_in_slices(
    slices: tuple[int, int], pauses: int, page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await page.create_topic("orders", *[(1, 2)] * 6)
    for number in range(2):
        await page.move(TopicPartition("orders", number), (3, 2))
    assert page.service.office is not None
    office = page.service.office
    await until(lambda: len(office.progress.progress.moves) == 2)
    monkeypatch.setattr(brokers, "SLICE", slices[0])
    monkeypatch.setattr(poller, "SURVEYED_AT_ONCE", slices[1])
    seen = 0

    async def paused() -> None:
        nonlocal seen
        seen += 1

    monkeypatch.setattr(trio.lowlevel, "checkpoint", paused)
    await Snapshots(page.service, Measurements()).take()
    assert seen == pauses


async def rollout_where(page: LivePage, **expected: object) -> dict[str, Any]:
    """Return the first state of the only rollout that has these values."""

    def is_wanted(snapshot: dict[str, Any]) -> bool:
        rollouts = snapshot["cluster"]["rollouts"]
        return len(rollouts) == 1 and {**rollouts[0], **expected} == rollouts[0]

    [rollout] = (await page.snapshot(is_wanted))["cluster"]["rollouts"]
    found: dict[str, Any] = rollout
    return found


async def end_the_move(page: LivePage) -> None:
    [move] = (await page.snapshot())["cluster"]["moves"]["rows"]
    await page.catch_up(TopicPartition("orders", move["partition"]), 1, 2, 3)


async def test_a_rollout_from_its_start_to_its_end(page: LivePage) -> None:
    await page.create_topic("orders", (1, 2), (2, 1), (1, 2))
    assert (await page.snapshot())["cluster"]["rollouts"] == []
    plan = [RolloutMove("orders", number, (1, 3), size=100) for number in range(3)]
    await page.roll_out("monday", *plan, into=1, throttle=5_000)
    rollout = await rollout_where(page, in_flight=1)
    assert (rollout["name"], rollout["phase"], rollout["started_by"]) == ("monday", "running", "alice")
    assert (rollout["ended"], rollout["of"], rollout["bytes_left"], rollout["throttle"]) == (0, 3, 300, 5_000)
    assert rollout["waits"][0][0] == "broker 3 receives 1 replica, the most at once"
    await page.order("monday", RolloutOrder.PAUSE)
    held = await rollout_where(page, is_held=True)
    assert held["why"] == "paused by operator"
    await page.order("monday", RolloutOrder.RESUME)
    assert page.service.office is not None
    page.service.office.context.rollouts.by_name["monday"].time_left.add(10, 100)
    rates = []
    for ended in range(3):
        rates.append((await rollout_where(page, ended=ended, in_flight=1))["rate"])
        await end_the_move(page)
    assert rates[1:] == [20, 20]
    over = await rollout_where(page, phase="done")
    assert (over["ended"], over["is_over"], over["is_held"], over["rate"], over["left_ms"]) == (
        3,
        True,
        False,
        None,
        None,
    )


async def test_an_undone_rollout_counts_what_is_back(page: LivePage) -> None:
    await page.create_topic("orders", (1, 2), (1, 2))
    await page.roll_out("monday", *[RolloutMove("orders", number, (1, 3)) for number in range(2)], into=1)
    await rollout_where(page, in_flight=1)
    await end_the_move(page)
    await rollout_where(page, ended=1)
    await page.order("monday", RolloutOrder.UNDO)
    rollout = await rollout_where(page, phase="undoing", in_flight=1)
    assert (rollout["ended"], rollout["of"], rollout["bytes_left"]) == (0, 1, None)


async def test_the_second_rollout_is_queued_behind_the_first(page: LivePage) -> None:
    await page.create_topic("orders", (1, 2), (1, 2))
    for number, name in enumerate(("monday", "tuesday")):
        await page.roll_out(name, RolloutMove("orders", number, (1, 3), size=1))
    told = (await page.snapshot(lambda snapshot: len(snapshot["cluster"]["rollouts"]) == 2))["cluster"]["rollouts"]
    assert column(told, "name", "phase", "why") == [
        ("monday", "running", ""),
        ("tuesday", "queued", "1 rollout before it"),
    ]


@pytest.mark.requirement("E1")
async def test_decisions_tell_why_and_what(page: LivePage) -> None:
    await page.create_topic("orders", (1, 2), (2, 1))
    await page.kill(1)
    snapshot = await page.snapshot(lambda told: told["decisions"][0]["brokers"] == {"brokers_gone": [1]})
    decision = snapshot["decisions"][0]
    assert (decision["event"], decision["why"]) == ("BrokerChange", "a broker came or went")
    assert decision["changes"]["leaders"] == 1
    assert decision["examples"] == [
        "orders-0: leader 1 → 2, ISR [1, 2] → [2] (leave)",
        "orders-1: ISR [2, 1] → [2], leader 2 (leave)",
    ]


async def test_a_standby_tells_of_itself_alone(page: LivePage, controllers: Controllers) -> None:
    standby = await controllers.start(1002, metrics_port=0)
    snapshot = await snapshot_where(
        LivePage(standby, page.store), "controller", "status", is_="standing by for controller 1001"
    )
    assert snapshot["cluster"] is None
    assert (snapshot["controller"]["is_active"], snapshot["controller"]["epoch"]) == (False, None)


def test_every_event_has_a_reason() -> None:
    assert set(REASONS) == {*STATE_OF, "Failover"}
