"""`--replan`: a plan that is out of date is made again with what it was made from, from the state of now."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from klamm.cli.planning.made_from import MADE_FROM
from klamm.cli.rollout.plan_files import PlanFiles
from tests.cli.shell import Shell, run_klamm

pytestmark = pytest.mark.requirement("E3")


async def planned(klamm: Shell, folder: Path, *more: str) -> None:
    await klamm("plan", "remove-brokers", "--brokers", "1", *more, "--out", str(folder))


async def replicas(klamm: Shell) -> list[list[int]]:
    return [row["replicas"] for row in json.loads(await klamm("topic", "describe", "orders", "-o", "json"))]


async def moved_by_hand(klamm: Shell, place: Path, *entries: dict[str, Any]) -> None:
    file = place / "by-hand.json"
    file.write_text(json.dumps({"version": 1, "partitions": entries}))
    await klamm("reassignment", "execute", "--reassignment-json-file", str(file))


def entry(partition: int, *to: int) -> dict[str, Any]:
    return {"topic": "orders", "partition": partition, "replicas": to}


async def test_what_has_changed_is_planned_again(klamm: Shell, tmp_path: Path) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", ",".join(["1:2"] * 6))
    folder = tmp_path / "monday"
    await planned(klamm, folder, "--exclude", "6", "--tolerance", "0.2")
    await moved_by_hand(klamm, tmp_path, entry(0, 1, 3), entry(1, 1, 4))
    said = await klamm("rollout", "run", str(folder), fails=True)
    assert "2 partitions have changed since the plan was made" in said
    done = await run_klamm("rollout", "run", str(folder), "--replan", "--bootstrap-server", klamm.bootstrap)
    assert (done.returncode, done.stdout) == (0, b"rollout: done: 6 done\n"), done.stderr.decode()
    assert f"planned again: the plan of before is in {folder}.replaced-1\n" in done.stderr.decode()
    assert not {1, 6} & {broker for each in await replicas(klamm) for broker in each}
    made_from = [json.loads((place / MADE_FROM).read_text()) for place in (folder, tmp_path / "monday.replaced-1")]
    assert made_from[0] == made_from[1]
    assert made_from[0]["options"]["exclude"] == [6]


async def test_a_rollout_that_has_begun_goes_on_and_one_that_was_aborted_is_planned_again(
    klamm: Shell, tmp_path: Path
) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", ",".join(["1:2"] * 4))
    folder = tmp_path / "monday"
    await planned(klamm, folder)
    journal = PlanFiles(folder).journal
    await klamm("rollout", "run", str(folder))
    begun = [line for line in journal.read_text().splitlines() if json.loads(line)["is"] == "started"]
    await klamm("rollout", "undo", str(folder))
    await moved_by_hand(klamm, tmp_path, entry(0, 1, 3))
    journal.write_text(f"{begun[0]}\n")
    said = await klamm("rollout", "run", str(folder), "--replan", fails=True)
    assert "orders-0: overridden: has replicas [1, 3], not [1, 2]" in said
    assert not (tmp_path / "monday.replaced-1").exists()
    await klamm("rollout", "undo", str(folder))
    journal.write_text(f"{begun[0]}\n")
    assert await klamm("rollout", "abort", str(folder)) == "rollout: aborted: 4 pending\n"
    assert await klamm("rollout", "run", str(folder), "--replan") == "rollout: done: 4 done\n"
    assert (tmp_path / "monday.replaced-1" / journal.name).exists()
    assert 1 not in {broker for each in await replicas(klamm) for broker in each}


async def test_it_is_said_if_nothing_is_left_or_the_plan_does_not_say_how_it_was_made(
    klamm: Shell, tmp_path: Path
) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2,1:2")
    folder, loads = tmp_path / "monday", tmp_path / "loads.csv"
    loads.write_text("topic,partition,bytes\norders,0,5\n")
    await planned(klamm, folder, "--loads", str(loads))
    await moved_by_hand(klamm, tmp_path, entry(0, 5, 2), entry(1, 6, 2))
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    assert await klamm("rollout", "run", str(folder), "--replan") == "planned again: nothing is left to be moved\n"
    loads.unlink()
    said = await klamm("rollout", "run", str(folder), "--replan", fails=True)
    assert said == (
        f"Error: {loads}, which the plan was made from, is not there any more: plan again with `klamm plan`\n"
    )
    (kept / MADE_FROM).unlink()
    said = await klamm("rollout", "run", str(kept), "--replan", fails=True)
    assert said.startswith(f"Error: {kept} does not say what the plan was made from")
    (kept / MADE_FROM).write_text('{"version":1}')
    said = await klamm("rollout", "run", str(kept), "--replan", fails=True)
    assert said == f"Error: {kept / MADE_FROM} is damaged: plan again with `klamm plan`\n"
