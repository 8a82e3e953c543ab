"""`klamm rollout` on a cluster of ours: moves begin as others end, and all that has to be known is beside the plan."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio
from attrs import frozen

from controller.rollout.adapting import FIRST
from klamm.cli.rollout.plan_files import PlanFiles
from tests.cli.rollout_place import DEAF, START, TARGET, RolloutPlace, moves_in_a_plan, rollout_place, write_plan
from tests.cli.rollout_runs import journal, running, status_of
from tests.cli.shell import register_deaf_broker, run_klamm, without_cluster
from tests.kafka.scripted_nodes import scripted_nodes
from transport.store import paths
from transport.store.protocol import Delete

PARTITIONS = 12


@frozen
class Place(RolloutPlace):
    """The plan is carried out from outside."""

    def planned(self, *targets: Sequence[int], before: Sequence[int] = START) -> None:
        """Write a plan as `klamm plan` does, in two files of a folder."""
        self.plan.mkdir()
        moves = moves_in_a_plan(targets, before=before)
        for number in (1, 2):
            write_plan(self.plan / f"plan-{number:04}.json", moves[number - 1 :: 2])
        (self.plan / "rollback-0001.json").write_text("{}")

    async def rollout(self, verb: str, *options: str, fails: bool = False) -> str:
        return await self.klamm("rollout", verb, str(self.plan), *options, fails=fails)

    async def alone(self, verb: str, *options: str) -> str:
        """Run a verb that asks no cluster."""
        done = await run_klamm("rollout", verb, str(self.plan), *options)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def running(self, *options: str) -> AbstractAsyncContextManager[trio.Process]:
        return running(self.plan, self.klamm.bootstrap, *options)

    async def until(self, kind: str, count: int) -> None:
        """Wait until so many moves have begun or ended, or something else has happened so often."""
        with trio.fail_after(60):
            while sum(len(entry.get("moves", "1")) for entry in journal(self.plan, kind)) < count:
                await trio.sleep(0.02)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with rollout_place(Place, tmp_path, "plan") as place:
        yield place


async def test_a_plan_is_carried_out_in_windows_and_undone(place: Place) -> None:
    await place.create(*[START] * PARTITIONS)
    place.planned(*[TARGET] * PARTITIONS)
    said = await place.rollout("run", "--in-per-broker", "3", "--out-per-broker", "4")
    assert said == "rollout: done: 12 done\n"
    assert await place.replicas() == [TARGET] * PARTITIONS
    windows = [len(entry["moves"]) for entry in journal(place.plan, "begun")]
    assert (sum(windows), max(windows)) == (PARTITIONS, 3)
    found = await status_of(place.plan)
    assert (found["state"], found["moves"]["done"], found["carried_out_by"]) == ("done", PARTITIONS, None)
    assert await place.rollout("run") == "rollout: done: 12 done\n"
    [listed] = json.loads((await run_klamm("rollout", "list", str(place.plan.parent), "-o", "json")).stdout)
    assert listed == found
    assert await place.rollout("undo") == "rollout: undone: 12 back\n"
    assert await place.replicas() == [START] * PARTITIONS


async def test_it_goes_on_from_each_line_that_reached_the_disk(place: Place) -> None:
    await place.create(*[START] * 4)
    place.planned(*[TARGET] * 4)
    await place.rollout("run", "--in-flight", "2")
    journal = PlanFiles(place.plan).journal
    lines = journal.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["is"] for line in lines]
    cuts = (kinds.index("started"), kinds.index("begun"), kinds.index("ended"))
    for cut in cuts:
        journal.write_bytes(b"".join(lines[: cut + 1]) + b'{"is":"torn')
        assert await place.rollout("run") == "rollout: done: 4 done\n"
        assert await place.replicas() == [TARGET] * 4


async def test_a_plan_that_is_out_of_date_is_refused_with_a_list(place: Place) -> None:
    await place.create(*[START] * 3, [5, 6], [2, 1])
    place.planned(*[TARGET] * 5)
    said = await place.rollout("run", fails=True)
    assert said == (
        "orders-3: has replicas [5, 6], not [1, 2]\norders-4: has replicas [2, 1], not [1, 2]\n"
        "Error: 2 partitions have changed since the plan was made: plan again, or leave them out with --skip-changed\n"
    )
    assert not PlanFiles(place.plan).journal.exists()
    await place.rollout("run", "--skip-changed", fails=True)
    assert await place.replicas() == [TARGET, TARGET, TARGET, [5, 6], [2, 1]]
    found = await status_of(place.plan)
    assert (found["moves"]["done"], found["moves"]["skipped"]) == (3, 2)
    assert found["not_as_planned"][0] == {
        "partition": "orders-3",
        "move": "skipped",
        "because": "has replicas [5, 6], not [1, 2]",
    }


async def test_it_is_killed_goes_on_is_paused_and_aborted(place: Place) -> None:
    """The first two moves get stuck; the others go through a window of three."""
    await register_deaf_broker(place.store, DEAF)
    await place.create(*[START] * 8)
    place.planned([DEAF, 2], [DEAF, 2], *[TARGET] * 6)
    options = ("--in-flight", "3", "--pause-file", str(place.plan / "stop"))
    (place.plan / "stop").touch()
    async with place.running(*options):
        await place.until("happened", 1)
        assert journal(place.plan, "begun") == []
        (place.plan / "stop").unlink()
        await place.until("begun", 1)
    async with place.running(*options):
        await place.until("ended", 6)
        said = await place.rollout("run", fails=True)
        assert said.startswith("Error: this plan is being carried out by process ")
        assert said.endswith(f": see `klamm rollout status {place.plan}`\n")
        assert "paused: the rollout is paused by operator, carried out by process " in await place.alone("pause")
        found = await status_of(place.plan)
        assert found["carried_out_by"].startswith("process ")
        assert found["paused_by"] == ["operator"]
        assert "resumed: the rollout is running" in await place.alone("resume", "--ignore-min-isr")
        [told] = journal(place.plan, "min_isr")
        assert told["ignored"]
        assert await place.rollout("abort") == "rollout: aborted: 2 pending, 6 done\n"
    assert await place.replicas() == [START, START, *[TARGET] * 6]
    again = await place.rollout("run", fails=True)
    assert "an aborted rollout does not begin again" in again


async def test_limits_and_throttle_are_changed_while_it_runs(place: Place) -> None:
    """Two moves get stuck and are all that may be in flight, until more may."""
    await register_deaf_broker(place.store, DEAF)
    await place.create(*[START] * 4)
    place.planned([1, DEAF], [1, DEAF], TARGET, TARGET)
    async with place.running("--in-flight", "2"):
        await place.until("begun", 2)
        said = await place.alone("set", "--in-flight", "4", "--throttle", "5000")
        assert said.startswith("changed: the rollout is carried out by process ")
        await place.until("ended", 2)
        words = ("config", "describe", "--entity-type", "topics", "--entity-name", "orders", "-o", "json")
        names = {row["name"] for row in json.loads(await place.klamm(*words)) if row["value"]}
        assert "follower.replication.throttled.replicas" in names
    done = await run_klamm("rollout", "set", str(place.plan), "--in-flight", "4")
    assert b"no process carries the plan out now" in done.stderr
    assert (await place.rollout("abort")).startswith("rollout: aborted: 2 pending, 2 done\n")
    names = {row["name"] for row in json.loads(await place.klamm(*words)) if row["value"]}
    assert "follower.replication.throttled.replicas" not in names


@pytest.mark.parametrize("is_set_later", [False, True])
async def test_a_throttle_that_adapts_begins_low_and_is_lifted(place: Place, is_set_later: bool) -> None:
    await register_deaf_broker(place.store, DEAF)
    await place.create(*[START] * 2)
    place.planned([1, DEAF], [1, DEAF])
    words = ("config", "describe", "--entity-type", "brokers", "--entity-name", "1", "-o", "json")

    async def rate() -> str:
        rates = {row["name"]: row["value"] for row in json.loads(await place.klamm(*words))}
        return str(rates["leader.replication.throttled.rate"])

    auto = ("--throttle", "auto")
    async with place.running(*(() if is_set_later else auto)):
        await place.until("begun", 1)
        if is_set_later:
            await place.rollout("set", *auto)
        with trio.fail_after(60):
            while await rate() != str(FIRST):
                await trio.sleep(0.02)
        await place.rollout("abort")
    assert await rate() != str(FIRST)


async def test_it_does_not_begin_while_others_move_and_is_not_the_second_of_its_kind(place: Place) -> None:
    await register_deaf_broker(place.store, DEAF)
    await place.create(*[START] * 3)
    place.planned(TARGET, TARGET)
    other = place.plan / "other.json"
    other.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 2, "replicas": [DEAF]}]}))
    await place.klamm("reassignment", "execute", "--reassignment-json-file", str(other), "--no-wait")
    said = await place.rollout("run", fails=True)
    assert said == (
        "Error: orders-2 is being moved by somebody else: wait until `klamm reassignment list` shows no more\n"
    )


async def test_a_move_asked_for_by_hand_takes_its_partition_out(place: Place) -> None:
    await register_deaf_broker(place.store, DEAF)
    await place.create(*[START] * 2)
    place.planned([DEAF, 2], TARGET)
    by_hand = place.plan / "by-hand.json"
    by_hand.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0, "replicas": [5, 2]}]}))
    async with place.running() as process:
        await place.until("begun", 1)
        await place.klamm("reassignment", "execute", "--reassignment-json-file", str(by_hand))
        assert await process.wait() == 1
    assert await place.replicas() == [[5, 2], TARGET]
    assert (await status_of(place.plan))["moves"]["overridden"] == 1
    assert await place.rollout("undo") == "rollout: undone: 1 overridden, 1 back\n"
    assert await place.replicas() == [[5, 2], START]


async def test_what_cannot_go_back_is_named_and_holds_up_no_other(place: Place) -> None:
    await register_deaf_broker(place.store, DEAF)
    await place.create([2, DEAF], [1, 2], [1, 2])
    entries = [
        {"topic": "orders", "partition": p, "replicas": [2, 3], "before": before}
        for p, before in enumerate(([2, DEAF], [1, 2]))
    ]
    place.plan.mkdir()
    (place.plan / "plan.json").write_text(json.dumps({"version": 1, "partitions": entries}))
    assert await place.rollout("run") == "rollout: done: 2 done\n"
    await place.store.multi([Delete(paths.broker(DEAF))])
    said = await place.rollout("undo", fails=True)
    assert "orders-0 stays on [2, 3]: broker 9 of [2, 9] not alive\n" in said
    assert await place.replicas() == [[2, 3], [1, 2], [1, 2]]
    assert (await status_of(place.plan))["moves"] == {
        **dict.fromkeys(("pending", "in flight", "overridden", "skipped", "failed", "going back", "deleted"), 0),
        "done": 1,
        "back": 1,
    }


async def test_a_move_back_to_a_broker_that_dies_is_cancelled_and_named(place: Place) -> None:
    await register_deaf_broker(place.store, DEAF)
    await place.create([2, DEAF], [2, 1])
    place.plan.mkdir()
    entries = [*moves_in_a_plan([[3, 2]], before=[2, DEAF]), *moves_in_a_plan([[3, 2]], first=1, before=[2, 1])]
    write_plan(place.plan / "plan.json", entries)
    assert await place.rollout("run") == "rollout: done: 2 done\n"
    said = ""

    async def undo() -> None:
        nonlocal said
        said = await place.rollout("undo", fails=True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(undo)
        await place.until("begun", 4)
        await place.until("ended", 3)
        await place.store.multi([Delete(paths.broker(DEAF))])
    assert "orders-0 stays on [3, 2]: broker 9 of [2, 9] not alive\n" in said
    assert await place.replicas() == [[3, 2], [2, 1]]
    [named] = (await status_of(place.plan))["not_as_planned"]
    assert named == {"partition": "orders-0", "move": "done", "because": "broker 9 of [2, 9] not alive"}


async def test_a_dry_run_changes_nothing(place: Place) -> None:
    await place.create(*[START] * 4)
    place.planned(*[TARGET] * 4)
    said = await place.rollout("run", "--dry-run", "--in-per-broker", "2", "--throttle", "1000")
    assert said == (
        "4 moves, 0 bytes to copy, at least 2 windows, at least 0 s at the throttle\n"
        "Nothing was changed: this was a dry run.\n"
    )
    assert await place.replicas() == [START] * 4
    assert not PlanFiles(place.plan).journal.exists()


@pytest.mark.parametrize("verb", ["pause", "resume", "status", "abort", "undo"])
async def test_there_has_to_be_a_rollout(verb: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}')
    async with scripted_nodes(1) as nodes:
        [(host, port)] = nodes.bootstrap
        done = await run_klamm("rollout", verb, str(tmp_path), "--bootstrap-server", f"{host}:{port}")
        named = await run_klamm("rollout", verb, "monday", "--bootstrap-server", f"{host}:{port}")
    expected = f"Error: no rollout of {tmp_path} has begun: `klamm rollout run` begins one\n"
    assert (done.returncode, without_cluster(done.stderr.decode())) == (1, expected)
    assert named.returncode == 1
    assert (
        b"Error: the controller of this cluster carries out no rollouts of its own: `klamm rollout run`" in named.stderr
    )


async def test_a_folder_without_a_plan_or_with_a_partition_twice_is_refused(tmp_path: Path) -> None:
    done = await run_klamm("rollout", "run", str(tmp_path))
    assert b"there is no plan.json in this folder: name one that `klamm plan` wrote" in done.stderr
    for number in (1, 2):
        text = '{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
        (tmp_path / f"plan-{number}.json").write_text(text)
    done = await run_klamm("rollout", "run", str(tmp_path))
    assert b"plan-2.json: t-0 is in another file of the plan, too" in done.stderr


async def test_a_folder_in_which_a_file_of_the_plan_is_missing_is_refused(tmp_path: Path) -> None:
    for name in ("plan-0001.json", "rollback-0001.json", "rollback-0002.json"):
        (tmp_path / name).write_text('{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}')
    done = await run_klamm("rollout", "run", str(tmp_path))
    expected = f"Error: {tmp_path}: plan-0002.json of the plan is missing: copy the whole folder\n"
    assert (done.returncode, done.stderr.decode()) == (1, expected)
