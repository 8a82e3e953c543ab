"""The record beside a file of moves: on the disk before anything changes, and what it restores."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import pytest
from attrs import define, field

from controller.admin.move_record import ListBefore, MoveRecord, RateBefore, replicas_before
from klamm.cli.reassignment.files import encode_targets
from klamm.cli.reassignment.record_file import RecordFile, decode, encode
from tests.cli.shell import run_klamm, without_cluster
from tests.kafka.scripted_nodes import ScriptedNodes, scripted_nodes
from tests.kafka.test_kafka_admin import NO_MOVES, moving
from tests.kafka.test_kafka_throttles import BROKER, TOPIC, TP, Settings
from transport.dynamic_configs import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.alter_partition_reassignments_response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from transport.kafka.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from transport.messages import PartitionState

RECORD = MoveRecord(
    {TP: (2, 1)},
    {("orders", LEADER_THROTTLED_REPLICAS): ListBefore("5:1", frozenset({(0, 1), (0, 2)}))},
    {(3, FOLLOWER_THROTTLED_RATE): RateBefore(None, "4000")},
)
MOVE = {"topic": "orders", "partition": 0, "replicas": [3, 1]}


def moves(folder: Path) -> Path:
    """Write a file that moves the partition."""
    file = folder / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": [MOVE]}))
    return file


def answered(code: int = 0, text: str | None = None) -> kafka.AlterPartitionReassignmentsResponse:
    """Return an answer about the partition."""
    rows = (ReassignablePartitionResponse(0, code, text),)
    return kafka.AlterPartitionReassignmentsResponse(responses=(ReassignableTopicResponse("orders", rows),))


async def output(nodes: ScriptedNodes, *words: str, stdin: bytes = b"", code: int = 0) -> str:
    """Run a command on the nodes, and return all that it prints."""
    at = ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)
    done = await run_klamm("reassignment", *words, "--bootstrap-server", at, stdin=stdin)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode() + without_cluster(done.stderr.decode())


# --- the file -----------------------------------------------------------------------------------------------------


def test_a_record_is_read_as_written(tmp_path: Path) -> None:
    file = RecordFile(moves(tmp_path))
    assert file.read() is None
    file.write(RECORD)
    assert file.path == tmp_path / "plan.json.before-execute.json"
    assert file.read() == decode(json.loads(encode(RECORD, None))) == RECORD
    file.replace(RECORD, None)
    assert file.read() is None


def test_a_record_is_on_the_disk_before_it_replaces_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RecordFile(moves(tmp_path))
    synced: list[tuple[str, bool]] = []
    sync = os.fsync

    def watched(fd: int) -> None:
        synced.append((Path(f"/proc/self/fd/{fd}").readlink().name, file.path.exists()))
        sync(fd)

    monkeypatch.setattr(os, "fsync", watched)
    file.write(RECORD)
    assert synced == [("part", False), (tmp_path.name, True)]


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2}', '{"version": 1, "partitions": [{}]}', "[1]"])
def test_anything_else_is_no_record(text: str, tmp_path: Path) -> None:
    file = RecordFile(moves(tmp_path))
    file.path.write_text(text)
    with pytest.raises(click.ClickException, match=r"before-execute\.json is no record of what was before moves: "):
        file.read()


@pytest.mark.parametrize(
    ("now", "adding", "expected"),
    [
        ((3, 1, 2), (3,), (2, 1)),
        ((3, 1), (), (2, 1)),
        ((1, 2), (), (2, 1)),
        ((4, 1), (), (4, 1)),
    ],
    ids=["under way", "complete", "in another order", "somewhere else"],
)
def test_an_earlier_record_counts_where_its_moves_are(
    now: tuple[int, ...], adding: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    state = PartitionState("orders", "id", 0, 1, 1, 1, now, 1, now, adding, (2,) if adding else ())
    assert replicas_before({TP: state}, {TP: (3, 1)}, {TP: (2, 1)}) == {TP: expected}
    assert replicas_before({TP: state}, {TP: (3, 1)}, {}) == {TP: state.origin_replicas}


# --- commands -----------------------------------------------------------------------------------------------------


async def test_what_was_before_is_recorded_before_a_setting_changes(tmp_path: Path) -> None:
    file, settings = moves(tmp_path), Settings()
    settings.of[TOPIC, "orders"][LEADER_THROTTLED_REPLICAS] = "5:1"
    recorded: list[MoveRecord | None] = []

    def alter(request: kafka.IncrementalAlterConfigsRequest) -> kafka.IncrementalAlterConfigsResponse:
        recorded.append(RecordFile(file).read())
        return settings.alter(request)

    async with scripted_nodes(1, 2, 3) as nodes:
        for node in nodes.nodes.values():
            node.answers[kafka.DescribeConfigsRequest] = settings.describe
            node.answers[kafka.IncrementalAlterConfigsRequest] = alter
            node.answers[kafka.AlterPartitionReassignmentsRequest] = lambda _: None
        nodes.show("orders", (2, 1))
        execute = ("execute", "--reassignment-json-file", str(file), "--throttle", "4000", "--no-wait")
        await output(nodes, *execute)
    assert recorded[0] is not None
    assert recorded[0].replicas == RECORD.replicas
    assert (
        recorded[0].lists[*("orders", LEADER_THROTTLED_REPLICAS)] == RECORD.lists["orders", LEADER_THROTTLED_REPLICAS]
    )
    assert recorded[0].rates[3, FOLLOWER_THROTTLED_RATE] == RateBefore(None, "4000")


@define
class Scene:
    """A throttled move whose second replica is dead at first, and comes back while it is under way."""

    nodes: ScriptedNodes
    settings: Settings
    at_the_end: dict[str, str] = field(factory=dict)
    """The settings of the broker when the move ends."""

    def moves(self, _: kafka.ListPartitionReassignmentsRequest) -> kafka.ListPartitionReassignmentsResponse:
        """Let the broker come back, and the move end once it is throttled."""
        own = self.settings.of[BROKER, "2"]
        if own.get(LEADER_THROTTLED_RATE) == "4000":
            self.at_the_end = dict(own)
            self.nodes.show("orders", (3, 1))
        if self.at_the_end:
            return NO_MOVES
        return moving(3, 1, 2, adding=3, removing=2)


@pytest.mark.parametrize("before", [None, "77"])
async def test_a_dead_broker_is_throttled_when_it_is_back_and_gets_its_rate_back(
    before: str | None, tmp_path: Path
) -> None:
    file, settings = moves(tmp_path), Settings()
    own = {} if before is None else {LEADER_THROTTLED_RATE: before}
    async with scripted_nodes(1, 2, 3, answers=settings.answers()) as nodes:
        nodes.show("orders", (1, 2))
        dead, scene = nodes.nodes.pop(2), Scene(nodes, settings)

        def reassign(_: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
            assert LEADER_THROTTLED_RATE not in settings.of[BROKER, "2"]
            settings.of[BROKER, "2"].update(own)
            nodes.show("orders", (3, 1, 2))
            for node in nodes.nodes.values():
                node.answers[kafka.ListPartitionReassignmentsRequest] = scene.moves
            nodes.nodes[2] = dead
            return answered()

        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        said = await output(nodes, "execute", "--reassignment-json-file", str(file), "--throttle", "4000")
    assert "broker 2 does not answer, and is not throttled: it will be if it is back while this command waits\n" in said
    assert "broker 2 is back, and is throttled from now on\n" in said
    assert scene.at_the_end[LEADER_THROTTLED_RATE] == "4000"
    assert settings.of[BROKER, "2"] == own
    assert [settings.of[BROKER, name] for name in ("1", "3")] == [{}, {}]
    assert not RecordFile(file).path.exists()


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("verify", "orders-0: complete\n"),
        ("cancel", "orders-0: refused: No partition reassignment is in progress\n"),
        ("execute", "orders-0: complete\n"),
    ],
)
async def test_a_broker_that_is_back_loses_its_throttle_by_the_next_command_for_the_plan(
    verb: str, said: str, tmp_path: Path
) -> None:
    file, settings = moves(tmp_path), Settings()
    RecordFile(file).write(MoveRecord({TP: (2, 1)}, {}, {(3, FOLLOWER_THROTTLED_RATE): RateBefore("77", "4000")}))
    settings.of[BROKER, "3"][FOLLOWER_THROTTLED_RATE] = "4000"

    def reassign(request: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
        if request.topics[0].partitions[0].replicas is None:
            return answered(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress")
        return answered()

    async with scripted_nodes(1, 2, 3, answers=settings.answers()) as nodes:
        nodes.show("orders", (3, 1))
        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        printed = await output(nodes, verb, "--reassignment-json-file", str(file), code=int(verb == "cancel"))
    assert said in printed
    assert settings.of[BROKER, "3"] == {FOLLOWER_THROTTLED_RATE: "77"}
    assert not RecordFile(file).path.exists()


@pytest.mark.parametrize("verb", ["execute", "verify"])
async def test_a_new_order_leaves_no_record(verb: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{**MOVE, "replicas": [1, 2]}]}))
    async with scripted_nodes(1, 2, 3) as nodes:
        nodes.show("orders", (2, 1))

        def reassign(_: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
            nodes.show("orders", (1, 2))
            return answered()

        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        if verb == "verify":
            RecordFile(file).write(MoveRecord({TP: (2, 1)}))
            nodes.show("orders", (1, 2))
        assert "orders-0: complete\n" in await output(nodes, verb, "--reassignment-json-file", str(file))
    assert not RecordFile(file).path.exists()


async def test_a_move_that_is_picked_up_has_the_rollback_of_the_first_time(tmp_path: Path) -> None:
    file, rollback = moves(tmp_path), tmp_path / "rollback.json"
    RecordFile(file).write(MoveRecord({TP: (2, 1)}))
    rollback.write_text(f"{encode_targets({TP: (2, 1)})}\n")
    async with scripted_nodes(1, 2, 3) as nodes:
        nodes.show("orders", (3, 1, 2))
        nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = moving(3, 1, 2, adding=3, removing=2)
        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = answered()
        execute = ("execute", "--reassignment-json-file", str(file), "--rollback-json-file", str(rollback))
        assert "orders-0: begun\n" in await output(nodes, *execute, "--no-wait")
    assert RecordFile(file).read() == MoveRecord({TP: (2, 1)})


@pytest.mark.parametrize("verb", ["execute", "verify", "cancel"])
async def test_a_record_of_another_cluster_is_refused_before_anything(verb: str, tmp_path: Path) -> None:
    file = moves(tmp_path)
    RecordFile(file, "first").write(RECORD)
    async with scripted_nodes(1, 2, 3) as nodes:
        nodes.cluster_id = "second"
        nodes.show("orders", (2, 1))
        said = await output(nodes, verb, "--reassignment-json-file", str(file), code=1)
        asked = {type(one) for node in nodes.nodes.values() for one in node.asked}
    path = RecordFile(file).path
    assert said == (
        f"Error: {path} is the record of moves on cluster first, and this is cluster second: name that one with "
        f"--bootstrap-server, or give a copy of {file} another name\n"
    )
    assert asked == {kafka.MetadataRequest}
    assert RecordFile(file, "first").read() == RECORD


@pytest.mark.parametrize("recorded", ["this", None], ids=["of this cluster", "of an earlier release"])
async def test_a_record_of_this_cluster_is_taken_and_names_it_from_then_on(
    recorded: str | None, tmp_path: Path
) -> None:
    file = moves(tmp_path)
    RecordFile(file, recorded).write(MoveRecord({TP: (2, 1)}))
    if recorded is None:
        path = RecordFile(file).path
        old = json.loads(path.read_text())
        del old["cluster_id"]
        path.write_text(json.dumps(old))
    async with scripted_nodes(1, 2, 3) as nodes:
        nodes.cluster_id = "this"
        nodes.show("orders", (3, 1, 2))
        nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = moving(3, 1, 2, adding=3, removing=2)
        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = answered()
        await output(nodes, "execute", "--reassignment-json-file", str(file), "--no-wait")
    assert json.loads(RecordFile(file).path.read_text())["cluster_id"] == "this"
    assert RecordFile(file, "this").read() == MoveRecord({TP: (2, 1)})


async def test_nothing_is_throttled_without_a_place_for_the_record() -> None:
    settings = Settings()
    async with scripted_nodes(1, 2, 3, answers=settings.answers()) as nodes:
        nodes.show("orders", (2, 1))
        plan = json.dumps({"partitions": [MOVE]}).encode()
        execute = ("execute", "--reassignment-json-file", "/dev/stdin", "--throttle", "4000")
        said = await output(nodes, *execute, stdin=plan, code=1)
    assert "nothing was begun, as what is there before it could not be recorded: /dev/stdin is not a file" in said
    assert settings.of == defaultdict(dict, {key: {} for key in settings.of})


async def test_a_cancel_whose_order_was_not_restored_is_made_good(tmp_path: Path) -> None:
    file = moves(tmp_path)
    RecordFile(file).write(MoveRecord({TP: (2, 1)}))
    async with scripted_nodes(1, 2, 3) as nodes:
        nodes.show("orders", (1, 2))
        asked: list[tuple[int, ...] | None] = []

        def reassign(request: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
            wanted = request.topics[0].partitions[0].replicas
            asked.append(wanted)
            if wanted is None:
                return answered(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress")
            nodes.show("orders", tuple(wanted))
            return answered()

        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        said = await output(nodes, "cancel", "--reassignment-json-file", str(file))
    assert said == "orders-0: cancelled, has replicas [2, 1] again\n"
    assert asked == [None, (2, 1)]
    assert not RecordFile(file).path.exists()


async def test_without_a_record_a_cancel_goes_by_the_plan(tmp_path: Path) -> None:
    file = moves(tmp_path)
    file.write_text(json.dumps({"version": 1, "partitions": [{**MOVE, "before": [2, 1]}]}))
    settings = Settings()
    settings.of[TOPIC, "orders"][LEADER_THROTTLED_REPLICAS] = "0:1"
    answers: dict[Any, Any] = {kafka.DescribeConfigsRequest: settings.describe}
    async with scripted_nodes(1, 2, 3, answers=answers) as nodes:
        nodes.show("orders", (3, 1, 2))
        nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = moving(3, 1, 2, adding=3, removing=2)

        def reassign(request: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
            nodes.show("orders", tuple(request.topics[0].partitions[0].replicas or (1, 2)))
            nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = NO_MOVES
            return answered()

        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        said = await output(nodes, "cancel", "--reassignment-json-file", str(file))
    assert said == "orders-0: cancelled, has replicas [2, 1] again\n"
    assert settings.of[TOPIC, "orders"] == {LEADER_THROTTLED_REPLICAS: "0:1"}


@pytest.mark.parametrize("is_recorded", [False, True])
async def test_a_cancel_tells_of_another_order_of_the_replicas(tmp_path: Path, *, is_recorded: bool) -> None:
    file = moves(tmp_path)
    async with scripted_nodes(1, 2, 3, answers=Settings().answers()) as nodes:
        if is_recorded:
            RecordFile(file).write(MoveRecord({TP: (2, 1)}))
        nodes.show("orders", (3, 1, 2))
        nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = moving(3, 1, 2, adding=3, removing=2)

        def reassign(request: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
            if request.topics[0].partitions[0].replicas is not None:
                return answered(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            nodes.show("orders", (1, 2))
            nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = NO_MOVES
            return answered()

        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        said = await output(nodes, "cancel", "--all", *(("--plan", str(file)) if is_recorded else ()))
    lines = said.splitlines()
    order = "not in their order before, [2, 1]" if is_recorded else "perhaps in another order than before"
    assert f"orders-0: cancelled, has replicas [1, 2], {order}" in lines
    refusal = "orders-0: the order [2, 1] is not restored: our principal needs Alter on the cluster"
    assert (refusal in lines) is is_recorded


async def test_replicas_that_all_leave_are_restored_in_their_order() -> None:
    async with scripted_nodes(1, 2, 3, answers=Settings().answers()) as nodes:
        nodes.show("orders", (3, 2, 1))
        row = OngoingPartitionReassignment(0, (3, 2, 1), (3,), (2, 1))
        listed = kafka.ListPartitionReassignmentsResponse(topics=(OngoingTopicReassignment("orders", (row,)),))
        nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = listed

        def reassign(_: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
            nodes.show("orders", (2, 1))
            nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = NO_MOVES
            return answered()

        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        said = await output(nodes, "cancel", "--all")
    assert "orders-0: cancelled, has replicas [2, 1] again" in said.splitlines()
