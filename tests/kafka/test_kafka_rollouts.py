"""`klamm rollout run` with nodes of Kafka's that answer from a table: room on disks, moves of others, refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from klamm.cli.rollout.plan_files import PlanFiles
from tests.cli.rollout_place import moves_in_a_plan, write_plan
from tests.cli.shell import run_klamm, without_cluster
from tests.kafka.scripted_nodes import ScriptedNodes, scripted_nodes
from tests.kafka.test_kafka_admin import logs, moving, no_settings
from tests.kafka.test_move_records import answered
from transport.errors import ErrorCode
from transport.kafka import messages as kafka

PAGE = Path(__file__).parents[2] / "docs" / "rollouts.md"


def plan_of(folder: Path, *targets: Sequence[int]) -> Path:
    """Write a plan for partitions on brokers 1 and 2."""
    file = folder / "plan.json"
    write_plan(file, moves_in_a_plan(targets))
    return file


async def output(nodes: ScriptedNodes, plan: Path, *options: str, code: int) -> str:
    at = ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)
    done = await run_klamm("rollout", "run", str(plan), *options, "--bootstrap-server", at)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode() + without_cluster(done.stderr.decode())


def show(nodes: ScriptedNodes, partitions: int, size: int) -> None:
    """Show partitions on brokers 1 and 2; each broker has a disk of 100 bytes, of which 40 are free."""
    nodes.show("orders", *[(1, 2)] * partitions)
    for id_, node in nodes.nodes.items():
        has = [size] * partitions if id_ in {1, 2} else []
        node.answers[kafka.DescribeLogDirsRequest] = logs(*has)
        node.answers[kafka.DescribeConfigsRequest] = no_settings


async def test_a_plan_that_does_not_fit_a_disk_is_refused_with_broker_and_bytes(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [3, 2], [3, 2])
    async with scripted_nodes(1, 2, 3) as nodes:
        show(nodes, 2, 30)
        said = await output(nodes, plan, code=1)
        assert not nodes.nodes[1].questions(kafka.AlterPartitionReassignmentsRequest)
    assert said == (
        "broker 3 lacks 20 bytes: 10 bytes are free for the last 1 move, with both copies there while they move\n"
        "Error: the plan does not fit: broker 3 lacks 20 bytes (20 bytes); plan again with the sizes of disks, or use "
        "--ignore-room to begin nevertheless\n"
    )
    assert not PlanFiles(plan).journal.exists()


async def test_a_partition_that_is_on_its_way_elsewhere_has_changed(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [3, 2])
    async with scripted_nodes(1, 2, 3) as nodes:
        show(nodes, 1, 0)
        nodes.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = moving(4, 1, 2, adding=4, removing=1)
        said = await output(nodes, plan, code=1)
    assert said == (
        "orders-0: is being moved to [4, 2], not [1, 2]\n"
        "Error: 1 partition has changed since the plan was made: plan again, or leave it out with --skip-changed\n"
    )


async def test_a_move_that_is_refused_again_and_again_fails(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [3, 2])
    async with scripted_nodes(1, 2, 3) as nodes:
        show(nodes, 1, 0)
        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = answered(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not there"
        )
        said = await output(nodes, plan, code=1)
        assert len(nodes.nodes[1].questions(kafka.AlterPartitionReassignmentsRequest)) == 3
    assert said.startswith("rollout: done: 1 failed\n")
    assert "orders-0: failed: not there\n" in said


async def test_an_error_without_a_text_is_told_in_words(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [3, 2])
    async with scripted_nodes(1, 2, 3) as nodes:
        show(nodes, 1, 0)
        refused = answered(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = refused
        said = await output(nodes, plan, code=1)
    assert "orders-0: failed: the replicas are not valid\n" in said


async def test_the_second_step_of_the_page_is_the_same_under_kraft(tmp_path: Path) -> None:
    steps = PAGE.read_text(encoding="utf-8").partition("## From plan to verify, and back")[2]
    [words] = re.findall(r"\$ klamm (rollout .* --dry-run) ", steps.partition("\n3. ")[0])
    (tmp_path / "monday").mkdir()
    plan_of(tmp_path / "monday", [3, 2])
    async with scripted_nodes(1, 2, 3) as nodes:
        show(nodes, 1, 30)
        at = ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)
        command = words.replace("monday", str(tmp_path / "monday")).split()
        done = await run_klamm(*command, "--bootstrap-server", at)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == [
        "1 move, 30 bytes to copy, at least 1 window, at least 0 s at the throttle (broker 3 copies most)",
        "Nothing was changed: this was a dry run.",
    ]
    assert not PlanFiles(tmp_path / "monday").journal.exists()
