"""What the page is told of a cluster: brokers, partitions at risk, moves, and decisions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from controller.model.notable import KINDS
from controller.monitoring.controller_states import STATE_OF
from controller.monitoring.page import partitions
from controller.monitoring.page.decisions import REASONS
from tests.kit.live_page import LivePage
from tests.kit.service import Controllers
from transport.metadata import TopicPartition

TP = TopicPartition("orders", 0)


@pytest.fixture
async def page(controllers: Controllers) -> AsyncIterator[LivePage]:
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
    brokers = (await page.snapshot())["cluster"]["brokers"]
    named = ("id", "state", "leaders", "replicas", "rack")
    assert column(brokers["rows"], *named) == [
        (1, "live", 1, 2, "rack 1"),
        (2, "live", 2, 3, "rack 0"),
        (3, "live", 0, 1, "rack 1"),
    ]
    await page.kill(2)
    brokers = (await snapshot_where(page, "cluster", "brokers", "live", is_=2))["cluster"]["brokers"]
    assert brokers["count"] == 3
    assert column(brokers["rows"], "id", "state", "leaders", "replicas") == [
        (2, "not alive", 0, 3),
        (1, "live", 2, 2),
        (3, "live", 1, 1),
    ]


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
    assert {kind.name for kind in KINDS} - {kind.name for kind in partitions._RISKS} == {"IMBALANCED"}  # noqa: SLF001


@pytest.mark.requirement("B5")
async def test_a_move_and_what_it_waits_for_until_it_ends(page: LivePage) -> None:
    await page.create_topic("orders", (1, 2), (2, 1))
    await page.move(TP, (3, 2))
    moves = (await page.snapshot())["cluster"]["moves"]
    assert moves["count"] == 1
    [row] = moves["rows"]
    assert (row["topic"], row["partition"], row["adding"], row["removing"]) == ("orders", 0, [3], [1])
    assert row["waits_for"] == "broker 3 to join the ISR"
    assert (row["done"], row["bytes_left"]) == (None, None)
    await page.catch_up(TP, 1, 2, 3)
    ended = await snapshot_where(page, "cluster", "moves", "count", is_=0)
    assert ended["cluster"]["moves"]["rows"] == []


@pytest.mark.requirement("E1")
async def test_decisions_tell_why_and_what(page: LivePage) -> None:
    await page.create_topic("orders", (1, 2), (2, 1))
    await page.kill(1)
    snapshot = await page.snapshot(lambda told: told["decisions"][0]["brokers"] == {"brokers_gone": [1]})
    decision = snapshot["decisions"][0]
    assert (decision["event"], decision["why"]) == ("BrokerChange", "a broker came or went")
    assert decision["changes"]["leaders"] == 1
    assert decision["examples"] == [
        "orders-0: leader 1 → 2, ISR [1, 2] → [2] (elect)",
        "orders-1: ISR [2, 1] → [2], leader 2 (shrink)",
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
