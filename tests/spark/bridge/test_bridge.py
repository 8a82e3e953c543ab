"""The bridge and its process, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from controller.admin.planning import PlanError, Progress, compute_plan, open_bridge
from tests.spark.bridge.conftest import Asking
from tests.spark.bridge.processes import files_in, is_gone


async def bridge_pid(told: list[Progress]) -> int:
    """Wait until a plan runs, and return the id of the process."""
    with trio.fail_after(20):
        while not told:
            await trio.sleep(0.01)
    assert told[0].left is not None
    return int(told[0].left)


async def test_progress_is_told_in_order_and_one_process_makes_many_plans(ask: Asking, stub: Path) -> None:
    told: list[Progress] = []
    async with open_bridge() as bridge:
        for _ in range(2):
            await bridge.plan(ask("sing"), told.append)
        assert len(files_in(stub)) == 1
    assert told[1:3] == [Progress("moving", 1, 2, "7 replicas"), Progress("moving", 2, 2)]
    assert told[3:] == told[:3]
    assert is_gone(await bridge_pid(told))
    assert files_in(stub) == []


@pytest.mark.usefixtures("stub")
async def test_a_plan_without_spark_starts_none(ask: Asking) -> None:
    assert (await compute_plan(ask("sing"))).notes == ()


@pytest.mark.usefixtures("stub")
async def test_a_refusal_is_its_one_line_and_the_next_plan_is_made(ask: Asking) -> None:
    async with open_bridge() as bridge:
        with pytest.raises(PlanError, match=r"^there is no way: make one$"):
            await bridge.plan(ask("refuse"))
        with pytest.raises(PlanError, match=r"^planning failed, please report: ValueError: odd$"):
            await bridge.plan(ask("fail"))
        await bridge.plan(ask("sing"))


async def test_a_bridge_that_dies_is_told_in_one_line_and_replaced(ask: Asking, stub: Path) -> None:
    async with open_bridge() as bridge:
        with pytest.raises(PlanError, match=r"^planning ended with code -9; its last words: a last gasp$"):
            await bridge.plan(ask("die"))
        assert files_in(stub) == []
        await bridge.plan(ask("sing"))


@pytest.mark.usefixtures("stub")
async def test_a_bridge_that_ends_just_when_it_is_asked_is_replaced_without_a_word(ask: Asking) -> None:
    told: list[Progress] = []
    async with open_bridge() as bridge:
        await bridge.plan(ask("sing"))
        await bridge.plan(ask("die unless first"), told.append)
    assert len(told) == 1


async def test_a_cancelled_plan_leaves_no_process_and_the_next_one_is_made(ask: Asking, stub: Path) -> None:
    told: list[Progress] = []
    async with open_bridge() as bridge:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bridge.plan, ask("be deaf"), told.append)
            pid = await bridge_pid(told)
            nursery.cancel_scope.cancel()
        assert is_gone(pid)
        assert files_in(stub) == []
        await bridge.plan(ask("sing"))


@pytest.mark.usefixtures("stub")
async def test_a_plan_that_takes_too_long_is_stopped_and_says_so(ask: Asking) -> None:
    told: list[Progress] = []
    with pytest.raises(PlanError, match=r"^there was no plan within 0\.5 s: allow more time"):
        await compute_plan(ask("be deaf", timeout=0.5), told.append)
    assert is_gone(await bridge_pid(told))


@pytest.mark.usefixtures("stub")
async def test_what_progress_raises_ends_the_plan(ask: Asking) -> None:
    told: list[Progress] = []

    def tell(made: Progress) -> None:
        told.append(made)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match=r"^enough$"):
        await compute_plan(ask("be deaf"), tell)
    assert is_gone(await bridge_pid(told))
