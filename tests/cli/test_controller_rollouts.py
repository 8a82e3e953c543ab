"""`klamm rollout` of plans that the controller carries out by itself: handed over, watched, and given orders."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import Any

import pytest
import trio
from attrs import frozen

from broker.reference import log_dirs
from controller.rollout.adapting import FIRST
from controller.rollout.states import MoveState
from tests.cli.rollout_place import DEAF, START, TARGET, RolloutPlace, moves_in_a_plan, rollout_place, write_plan
from tests.cli.shell import register_deaf_broker, run_klamm, without_cluster
from tests.cli.test_completion import completed
from transport.store import paths
from transport.store.protocol import Delete, Set

WORDS = ("config", "describe", "--entity-type", "topics", "--entity-name", "orders", "-o", "json")


@frozen
class Place(RolloutPlace):
    """The plan is `monday`."""

    def planned(self, *targets: Sequence[int], name: str = "monday", first: int = 0) -> str:
        """Write a plan, and return its path."""
        folder = self.plan.with_name(name)
        folder.mkdir()
        write_plan(folder / "plan.json", moves_in_a_plan(targets, first=first))
        return str(folder)

    async def status(self, name: str = "monday") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.klamm("rollout", "status", name, "-o", "json"))
        return found

    async def until(self, state: str, name: str = "monday", **moves: int) -> dict[str, Any]:
        """Wait until a rollout is in a state, with so many moves in each of theirs."""
        wanted = {MoveState[key.upper()].value: number for key, number in moves.items()}
        deadline = trio.current_time() + 60
        while True:
            found = await self.status(name)
            if found["state"] == state and wanted.items() <= found["moves"].items():
                return found
            assert trio.current_time() < deadline, json.dumps(found)
            await trio.sleep(0.05)

    async def is_throttled(self) -> bool:
        names = {row["name"] for row in json.loads(await self.klamm(*WORDS)) if row["value"]}
        return "follower.replication.throttled.replicas" in names


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with rollout_place(Place, tmp_path, "monday") as place:
        yield place


async def test_a_plan_is_handed_over_watched_and_undone(place: Place) -> None:
    await place.create(*[START] * 12)
    plan = place.planned(*[TARGET] * 12)
    said = await place.klamm("rollout", "start", plan, "--in-per-broker", "3", "--throttle", "50000000")
    assert said == ("rollout monday: the controller carries out 12 moves: `klamm rollout status monday --watch`\n")
    assert (await place.klamm("rollout", "status", "monday", "--watch")).splitlines()[-1] == "done: 12 done"
    assert await place.replicas() == [TARGET] * 12
    found = await place.status()
    assert (found["carried_out_by"], found["settings"]["into"], found["queued_behind"]) == ("the controller", 3, 0)
    assert found["started_by"]
    [listed] = json.loads(await place.klamm("rollout", "list", "-o", "json"))
    assert {**found, "progress": None} == {**listed, "progress": None}
    assert (await place.klamm("rollout", "undo", plan)).startswith("rollout monday: ")
    await place.until("undone", back=12)
    assert await place.replicas() == [START] * 12
    assert not await place.is_throttled()
    assert await place.klamm("rollout", "remove", "monday") == "rollout monday: removed\n"
    assert (await place.klamm("rollout", "list")).startswith("the controller has no rollouts")


async def test_it_is_paused_changed_and_aborted_while_another_waits(place: Place) -> None:
    """The first two moves get stuck, and are all that may be in flight."""
    await register_deaf_broker(place.store, DEAF)
    await place.create(*[START] * 6)
    plan, other = place.planned([1, DEAF], [1, DEAF], TARGET, TARGET), place.planned(TARGET, name="tuesday", first=5)
    await place.klamm("rollout", "start", plan, "--in-flight", "2", "--throttle", "auto")
    said = await place.klamm("rollout", "start", other)
    assert said.startswith("rollout tuesday: the controller carries out 1 move, after 1 other: ")
    found = await place.until("running", in_flight=2)
    assert (found["settings"]["adapts"], found["settings"]["throttle"]) == (True, FIRST)
    assert (await place.klamm("rollout", "pause", "monday")).startswith("rollout monday: paused by operator")
    assert (await place.status())["paused_by"] == ["operator"]
    said = await place.klamm("rollout", "set", plan, "--in-flight", "4", "--throttle", "5000")
    assert said == ("rollout monday: at once 5 in, 5 out, 5 leaders for each broker; 4 in all, throttle 5.0 kB/s\n")
    assert await place.is_throttled()
    assert not (await place.status())["settings"]["adapts"]
    said = await place.klamm("rollout", "set", plan, "--throttle", "auto")
    assert said.endswith("; 4 in all, throttle 5.0 kB/s, found by itself\n")
    said = await place.klamm("rollout", "resume", "monday", "--ignore-min-isr")
    assert said.startswith("rollout monday: running: ")
    assert (await place.status())["settings"]["ignore_min_isr"]
    await place.until("running", done=2)
    table = await place.klamm("rollout", "status", "tuesday")
    assert "in the queue    behind 1 other\n" in table
    assert (await place.klamm("rollout", "abort", "monday")).startswith("rollout monday: ")
    await place.until("aborted", done=2, pending=2)
    await place.until("done", "tuesday")
    assert await place.replicas() == [START, START, TARGET, TARGET, START, TARGET]
    assert not await place.is_throttled()
    for tuesday in ("tuesday", other):
        said = await place.klamm("rollout", "abort", tuesday, fails=True)
        assert said.endswith("Error: rollout tuesday is done: it cannot abort\n")


async def test_a_plan_that_is_out_of_date_is_refused_with_a_list(place: Place) -> None:
    await place.create(*[START] * 2, [5, 6], [2, 1])
    plan = place.planned(*[TARGET] * 4)
    said = await place.klamm("rollout", "start", plan, fails=True)
    assert said == (
        "orders-2: has replicas [5, 6], not [1, 2]\norders-3: has replicas [2, 1], not [1, 2]\n"
        "Error: 2 partitions have changed since the plan was made: plan again, or leave them out with --skip-changed\n"
    )
    assert json.loads(await place.klamm("rollout", "list", "-o", "json")) == []
    where = ("--skip-changed", "--bootstrap-server", place.klamm.bootstrap)
    done = await run_klamm("rollout", "start", plan, *where)
    assert done.stdout.startswith(b"rollout monday: the controller carries out 2 moves: ")
    assert done.stderr.endswith(
        b"orders-2: has replicas [5, 6], not [1, 2]\norders-3: has replicas [2, 1], not [1, 2]\n"
        b"2 partitions are left out, as they have changed\n"
    )
    await place.until("done", done=2)
    assert await place.replicas() == [TARGET, TARGET, [5, 6], [2, 1]]


async def test_what_is_as_planned_already_is_neither_counted_nor_taken_back(place: Place) -> None:
    await place.create(TARGET, START)
    plan = place.planned(*[TARGET] * 2)
    said = await place.klamm("rollout", "run", plan, "--dry-run")
    assert said.startswith("1 move, 0 bytes to copy, at least 1 window\n")
    done = await run_klamm("rollout", "start", plan, "--bootstrap-server", place.klamm.bootstrap)
    said = without_cluster(done.stderr.decode())
    assert said.startswith("1 partition has the new replicas already\n1 move, 0 bytes to copy")
    assert done.stdout.startswith(b"rollout monday: the controller carries out 1 move: ")
    await place.until("done", done=1)
    assert await place.klamm("rollout", "start", plan, "--name", "again") == "nothing is left to carry out\n"
    await place.klamm("rollout", "undo", "monday")
    await place.until("undone", back=1)
    assert await place.replicas() == [TARGET, START]


async def test_a_plan_that_does_not_fit_is_refused_with_broker_and_bytes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.create(*[START] * 2)
    await place.klamm("produce", "orders", stdin=b"x" * 9_000 + b"\n")
    plan = place.planned(*[TARGET] * 2)

    def nearly_full(path: str) -> object:
        return disk_usage(path)._replace(free=1_000)

    monkeypatch.setattr(log_dirs, "disk_usage", nearly_full)
    said = await place.klamm("rollout", "start", plan, fails=True)
    [first, last] = said.splitlines()
    assert first.startswith("broker 3 lacks 8.0 kB: 1.0 kB are free for the last 1 move")
    assert last.startswith("Error: the plan does not fit: broker 3 lacks 8.0 kB (8,012 bytes); ")
    assert json.loads(await place.klamm("rollout", "list", "-o", "json")) == []
    await place.klamm("rollout", "start", plan, "--ignore-room", "--dry-run")


async def test_a_rollout_is_started_once_and_from_one_side(place: Place) -> None:
    await register_deaf_broker(place.store, DEAF)
    await place.create(*[START] * 2)
    plan, other = place.planned([1, DEAF]), place.planned(TARGET, name="tuesday", first=1)
    await place.klamm("rollout", "start", plan)
    said = await place.klamm("rollout", "start", plan)
    assert said == "rollout monday has started before: see `klamm rollout status monday --watch`\n"
    said = await place.klamm("rollout", "start", other, "--name", "monday", fails=True)
    assert said == ("Error: there is a rollout monday of another plan: give this one another name with --name\n")
    said = await place.klamm("rollout", "run", other, fails=True)
    assert said == (
        "Error: the controller carries out rollout monday itself: wait until it is over, or let it carry out this plan "
        "after that one, with `klamm rollout start`\n"
    )
    said = await place.klamm("rollout", "remove", "monday", fails=True)
    assert "abort it first" in said
    words = f"klamm rollout abort --bootstrap-server {place.klamm.bootstrap} mon"
    assert await trio.to_thread.run_sync(partial(completed, words)) == ["monday"]
    await place.klamm("rollout", "abort", "monday")
    await place.until("aborted")
    said = await place.klamm("rollout", "start", plan, fails=True)
    assert said == (
        "Error: rollout monday is over, aborted: plan again, or start the plan under another name with --name\n"
    )


async def test_a_move_asked_for_by_hand_takes_its_partition_out(place: Place) -> None:
    await register_deaf_broker(place.store, DEAF)
    await place.create(*[START] * 4)
    plan = place.planned([DEAF, 2], TARGET)
    by_hand = place.plan / "by-hand.json"
    by_hand.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0, "replicas": [5, 2]}]}))
    await place.klamm("rollout", "start", plan)
    await place.until("running", in_flight=1, done=1)
    await place.klamm("reassignment", "execute", "--reassignment-json-file", str(by_hand))
    found = await place.until("done", overridden=1, done=1)
    assert await place.replicas() == [[5, 2], TARGET, START, START]
    assert [each["partition"] for each in found["not_as_planned"]] == ["orders-0"]
    watched = await run_klamm("rollout", "status", plan, "--bootstrap-server", place.klamm.bootstrap)
    assert b"orders-0   overridden  " in watched.stdout


async def test_a_rollout_with_a_row_that_makes_no_sense_is_shown_with_its_fault_and_removed(place: Place) -> None:
    await place.create(*[START] * 2)
    plan = place.planned(*[TARGET] * 2)
    await place.klamm("rollout", "start", plan)
    await place.until("done", done=2)
    path = paths.rollout("monday")
    [znode] = await place.store.read([path])
    assert znode is not None
    await place.store.multi([Set(path, znode.data.replace(b'"phase":"done"', b'"phase":"walking"'), -1)])
    await place.store.multi([Delete(paths.CONTROLLER)])  # the next controller reads it
    fault = f"{path}: phase must be one of "
    assert fault in (await place.until("unusable"))["fault"]
    assert "unusable" in await place.klamm("rollout", "list")
    shown = await place.klamm("rollout", "status", "monday")
    assert fault in shown
    assert "`klamm rollout remove monday` removes it" in shown
    for command in (("start", plan), ("pause", "monday"), ("undo", "monday")):
        assert f"rollout monday is set aside: {fault}" in await place.klamm("rollout", *command, fails=True)
    assert await place.klamm("rollout", "remove", "monday") == "rollout monday: removed\n"
    assert json.loads(await place.klamm("rollout", "list", "-o", "json")) == []
