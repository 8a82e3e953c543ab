"""`klamm reassignment` and `klamm rollout` by the conventions of output: documents, dry runs, patterns, units."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
import trio
import yaml

from controller.admin.client import AdminClient
from klamm.cli.formats import schema_of
from klamm.cli.names import RATE, SIZE
from klamm.cli.reassignment import reassignment
from klamm.cli.rollout import rollout
from klamm.cli.rollout.options import AUTO, RateOrAuto
from tests.cli.rollout_place import DEAF, START, TARGET, RolloutPlace, moves_in_a_plan, rollout_place, write_plan
from tests.cli.shell import register_deaf_broker, run_klamm
from transport.host import Host
from transport.network import TcpNetwork

GROUPS: Mapping[str, click.Group] = {"reassignment": reassignment, "rollout": rollout}
UNCHANGED = "Nothing was changed: this was a dry run.\n"


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[RolloutPlace]:
    async with rollout_place(RolloutPlace, tmp_path, "monday") as place:
        await register_deaf_broker(place.store, DEAF)
        yield place


async def document(place: RolloutPlace, *words: str) -> Any:  # noqa: ANN401  a document of JSON
    printed = await place.klamm(*words, "-o", "json")
    msgspec.json.decode(printed, type=vars(GROUPS[words[0]].commands[words[1]].callback)["document"])
    return json.loads(printed)


async def moving(place: RolloutPlace, *names: str) -> None:
    """Begin moves of these topics that get stuck."""
    for name in names:
        await place.klamm("topic", "create", name, "--replica-assignment", "1:2")
    file = place.plan.with_name("stuck.json")
    entries = [{"topic": name, "partition": 0, "replicas": [1, DEAF]} for name in names]
    file.write_text(json.dumps({"version": 1, "partitions": entries}))
    await place.klamm("reassignment", "execute", "--reassignment-json-file", str(file), "--no-wait")


# --- reassignments ----------------------------------------------------------------------------------------------


async def test_moves_are_listed_and_described_with_times_and_nulls(place: RolloutPlace) -> None:
    before = Host().now_ms() / 1000
    await moving(place, "orders-1", "orders-2", "bills")
    listed = await document(place, "reassignment", "list", "--topic", "orders-*")
    assert [row["topic"] for row in listed] == ["orders-1", "orders-2"]
    assert listed[0].keys() >= {"replicas", "adding_replicas", "removing_replicas", "leader", "isr"}
    started = datetime.fromisoformat(listed[0]["start_time"])
    assert started.tzinfo is not None
    assert abs(started.timestamp() - before) < 600
    [described] = await document(place, "reassignment", "describe", "--topic", "bill?")
    assert described["start_time"].endswith("Z")
    assert {described[name] for name in ("leader_throttle", "eta_seconds")} == {None}
    assert {replica["throttle"] for replica in described["progress"]} == {None}
    assert not [name for name in described if name.endswith("_ms")]
    assert yaml.safe_load(await place.klamm("reassignment", "list", "-o", "yaml"))[0]["topic"] == "bills"
    wide = await place.klamm("reassignment", "list", "-o", "wide")
    assert "waits for" in wide.splitlines()[0]
    assert (await place.klamm("reassignment", "list", "--no-headers")).startswith("bills-0")
    nothing = "no reassignment of partition 4 of x-* is in progress\n"
    assert await place.klamm("reassignment", "describe", "--topic", "x-*", "--partition", "4") == nothing
    ended = await place.klamm("reassignment", "describe", "--topic", "gone", "--watch")
    assert ended == "no reassignment of gone is in progress\n"


async def test_a_cancel_is_tried_and_one_by_a_pattern_is_confirmed(place: RolloutPlace) -> None:
    await moving(place, "orders-1", "orders-2", "bills")
    by_pattern = ("reassignment", "cancel", "--topic", "orders-*")
    tried = await place.klamm(*by_pattern, "--dry-run")
    assert tried == (
        "orders-1-0: would be cancelled, and have replicas [1, 2] again\n"
        f"orders-2-0: would be cancelled, and have replicas [1, 2] again\n{UNCHANGED}"
    )
    [row, _] = await document(place, *by_pattern, "--dry-run")
    assert (row["outcome"], row["replicas"]) == ("checked", [1, 2])
    refused = await place.klamm(
        "reassignment", "cancel", "--topic", "none", "--partition", "0", "--dry-run", fails=True
    )
    assert refused == "none-0: refused: none-0 is not being reassigned: there is nothing to cancel\n"
    asked = await place.klamm(*by_pattern, fails=True)
    assert "Cancel the moves of orders-1-0, orders-2-0? Confirm it with --yes." in asked
    assert len(await document(place, "reassignment", "list")) == 3
    at = ("--bootstrap-server", place.klamm.bootstrap)
    done = await run_klamm(*by_pattern, "--yes", "-o", "json", *at, whole=True)
    assert [row["outcome"] for row in json.loads(done.stdout)] == ["cancelled", "cancelled"]
    said = done.stderr.decode()
    assert said.count("cluster ") == 1
    assert said.startswith("cluster at ")
    assert [row["topic"] for row in await document(place, "reassignment", "list")] == ["bills"]
    assert await document(place, "reassignment", "cancel", "--topic", "x-*") == []
    assert (await document(place, "reassignment", "cancel", "--all"))[0]["outcome"] == "cancelled"


async def test_a_file_with_an_impossible_move_is_one_document(place: RolloutPlace, tmp_path: Path) -> None:
    await place.create(START, START)
    file = tmp_path / "moves.json"
    write_plan(file, moves_in_a_plan([[3, 4], [1, 77]]))
    words = ("reassignment", "execute", "--reassignment-json-file", str(file), "-o", "json")
    done = await run_klamm(*words, "--bootstrap-server", place.klamm.bootstrap)
    assert done.returncode == 1
    assert [(row["partition"], row["outcome"]) for row in json.loads(done.stdout)] == [(1, "refused"), (0, "not_begun")]
    write_plan(file, moves_in_a_plan([TARGET, TARGET]))
    begun = await run_klamm(*words, "--throttle", "20MB/s", "--bootstrap-server", place.klamm.bootstrap)
    assert [row["outcome"] for row in json.loads(begun.stdout)] == ["complete", "complete"]
    assert "Save this to use as the --reassignment-json-file" in begun.stderr.decode()
    verified = await place.klamm("reassignment", "verify", "--reassignment-json-file", str(file), "-o", "json", "-w")
    [line] = verified.splitlines()
    assert [row["outcome"] for row in json.loads(line)] == ["complete", "complete"]


# --- rollouts ---------------------------------------------------------------------------------------------------


def planned(place: RolloutPlace, *targets: list[int]) -> str:
    place.plan.mkdir()
    write_plan(place.plan / "plan.json", moves_in_a_plan(targets))
    return str(place.plan)


async def test_orders_to_a_controller_are_tried_and_are_documents(place: RolloutPlace) -> None:
    await place.create(START, START)
    plan = planned(place, [1, DEAF], TARGET)
    tried = await document(place, "rollout", "start", plan, "--dry-run", "--throttle", "20MB/s")
    assert (tried["outcome"], tried["needs"]["moves"], tried["status"]) == ("checked", 2, None)
    assert await document(place, "rollout", "list") == []
    started = await document(place, "rollout", "start", plan, "--throttle", "20MB/s", "--bytes-in-flight", "5GB")
    assert (started["rollout"], started["outcome"]) == ("monday", "started")
    settings = started["status"]["settings"]
    assert (settings["throttle"], settings["bytes"], settings["pause_file"]) == (20_000_000, 5_000_000_000, None)
    assert started["status"]["started"].endswith("Z")
    with trio.fail_after(60):
        while (await document(place, "rollout", "status", "monday"))["moves"]["done"] < 1:
            await trio.sleep(0.05)
    for verb, effect in {
        "pause": "would begin no more moves, and continue the 1 in flight",
        "resume": "would begin moves again",
        "abort": "would cancel 1 in flight, and keep 1 that are done",
        "undo": "would cancel 1 in flight, and move 1 back",
    }.items():
        assert await place.klamm("rollout", verb, "monday", "--dry-run") == f"rollout monday: {effect}\n{UNCHANGED}"
    changed = await place.klamm("rollout", "set", "monday", "--throttle", "5MB/s", "--in-flight", "7", "--dry-run")
    assert changed == (
        "rollout monday: would have at once 5 in, 5 out, 5 leaders for each broker; 7 in all, 5.0 GB, "
        f"throttle 5.0 MB/s\n{UNCHANGED}"
    )
    found = await place.klamm("rollout", "set", "monday", "--throttle", "auto", "--dry-run")
    assert found.endswith(f"throttle 20.0 MB/s, found by itself\n{UNCHANGED}")
    for mode in ((), ("--dry-run",)):
        refused = await place.klamm("rollout", "remove", "monday", *mode, fails=True)
        assert refused == "Error: rollout monday is not over but running: abort it first\n"
    now = await document(place, "rollout", "status", "monday")
    assert (now["state"], now["paused_by"], now["settings"]["in_all"]) == ("running", [], 500)
    wide = await place.klamm("rollout", "list", "-o", "wide")
    assert wide.splitlines()[0].split()[-3:] == ["in", "flight", "rate"]
    paused = await document(place, "rollout", "pause", "monday")
    assert (paused["outcome"], paused["status"]["paused_by"]) == ("ordered", ["operator"])
    assert (await document(place, "rollout", "start", plan))["outcome"] == "exists"
    await place.klamm("rollout", "abort", "monday")
    assert (
        json.loads((await place.klamm("rollout", "status", "monday", "-w", "-o", "json")).splitlines()[-1])["state"]
        == "aborted"
    )
    refused = await place.klamm("rollout", "abort", "monday", "--dry-run")
    assert refused.startswith("rollout monday: would cancel 0 in flight")
    tried = await document(place, "rollout", "remove", "monday", "--dry-run")
    assert (tried["outcome"], tried["status"]["state"]) == ("checked", "aborted")
    removed = await document(place, "rollout", "remove", "monday")
    assert removed == {"rollout": "monday", "outcome": "removed", "needs": None, "status": None, "partial": None}


async def test_a_run_from_outside_is_one_document_and_its_orders_are_tried(place: RolloutPlace) -> None:
    await place.create(START, START)
    plan = planned(place, TARGET, TARGET)
    tried = await document(place, "rollout", "run", plan, "--dry-run")
    assert (tried["outcome"], tried["needs"]["moves"]) == ("checked", 2)
    done = await run_klamm("rollout", "run", plan, "-o", "json", "--bootstrap-server", place.klamm.bootstrap)
    found = json.loads(done.stdout)
    assert (found["rollout"], found["outcome"], found["status"]["moves"]["done"]) == (plan, "over", 2)
    assert found["status"]["carried_out_by"] is None
    assert "2 moves, 0 bytes to copy" in done.stderr.decode()
    undone = await place.klamm("rollout", "undo", plan, "--dry-run")
    assert undone == f"rollout {plan}: would cancel 0 in flight, and move 2 back\n{UNCHANGED}"
    assert await place.replicas() == [TARGET, TARGET]
    refused = await run_klamm("rollout", "abort", plan, "--dry-run")
    assert refused.stderr == b"Error: the rollout is done: there is nothing to abort\n"
    assert (await document(place, "rollout", "undo", plan))["status"]["state"] == "undone"
    admin = AdminClient(TcpNetwork(), (), place.store, 30)
    assert await admin.list_partition_reassignments() == ()


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_each_document_has_a_schema_without_milliseconds(group: click.Group) -> None:
    for command in group.commands.values():
        schema = json.dumps(schema_of(command))
        assert '_ms"' not in schema
        assert {"$defs", "anyOf", "$ref", "type"} & schema_of(command).keys()


# --- units ------------------------------------------------------------------------------------------------------


def test_rates_and_sizes_have_units() -> None:
    either = RateOrAuto()
    for text, number in {"20MB/s": 20_000_000, "64KiB": 65_536, "5000": 5000}.items():
        assert (either.convert(text, None, None), RATE.convert(text, None, None)) == (number, number)
    assert either.convert(AUTO, None, None) == AUTO
    assert SIZE.convert("50GB", None, None) == 50_000_000_000
