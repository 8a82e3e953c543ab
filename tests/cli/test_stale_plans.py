"""`klamm reassignment execute` of a plan that was made from an assignment other than the current one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from klamm.cli.demo.task_cluster import task_cluster
from klamm.cli.reassignment.preview import stale
from tests.cli.shell import Shell, bootstrap_of, run_klamm
from transport.messages import PartitionState
from transport.metadata import TopicPartition

pytestmark = pytest.mark.requirement("A2")

PLANNED = {TopicPartition("orders", p): (3, 4) for p in range(2)}
STARTS = {TopicPartition("orders", p): (1, 2) for p in range(2)}


def state(
    partition: int, replicas: Sequence[int], adding: Sequence[int] = (), removing: Sequence[int] = ()
) -> PartitionState:
    return PartitionState("orders", "id", partition, 1, 1, 1, (1,), 1, tuple(replicas), tuple(adding), tuple(removing))


def faults(
    *states: PartitionState, starts: Mapping[TopicPartition, tuple[int, ...]] = STARTS
) -> Mapping[TopicPartition, str]:
    found = {each.tp: each for each in states}
    return stale(found, PLANNED, starts)


@pytest.mark.parametrize(
    ("now", "fault"),
    [
        (state(0, (1, 2)), None),
        (state(0, (3, 4)), None),
        (state(0, (3, 4, 1, 2), (3, 4), (1, 2)), None),
        (state(0, (2, 1)), "has replicas [2, 1], not [1, 2]"),
        (state(0, (1, 5)), "has replicas [1, 5], not [1, 2]"),
        (state(0, (1, 2, 5), (5,)), "is being moved to [1, 2, 5], not [1, 2]"),
        # A plan counts a partition that moves with its target.
        (state(0, (1, 2, 5), (1, 2), (5,)), None),
        (state(0, (5, 1, 2), (5,), (1, 2)), "is being moved to [5], not [1, 2]"),
    ],
)
def test_a_partition_is_as_it_was_or_on_its_way(now: PartitionState, fault: str | None) -> None:
    found = faults(now, state(1, (1, 2)))
    assert found == ({} if fault is None else {TopicPartition("orders", 0): fault})


def test_what_names_no_start_is_not_held_to_one() -> None:
    assert faults(state(0, (9,)), state(1, (1, 5)), starts={}) == {}


# --- the command ------------------------------------------------------------------------------------------------


async def planned(klamm: Shell, tmp_path: Path, *options: str) -> Path:
    """Plan from what topics are like now."""
    snapshot, file = tmp_path / "snapshot.json", tmp_path / "plan.json"
    partitions = json.loads(await klamm("topic", "describe", "-o", "json"))
    brokers = [{"id": broker} for broker in range(1, 7)]
    snapshot.write_text(json.dumps({"brokers": brokers, "partitions": partitions}))
    done = await run_klamm("plan", *options, "--snapshot", str(snapshot), "--out", str(file))
    assert done.returncode == 0, done.stderr
    return file


async def test_a_plan_is_carried_out_once_again_and_not_after_other_changes(klamm: Shell, tmp_path: Path) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", ",".join(["1:2"] * 6))
    file = await planned(klamm, tmp_path, "remove-brokers", "--brokers", "1")
    execute = ("reassignment", "execute", "--reassignment-json-file", str(file))
    first = await klamm(*execute)
    assert first.count(": complete\n") == 6
    # The same command again, as after an interruption.
    assert (await klamm(*execute)).count(": complete\n") == 6
    moves = [{"topic": "orders", "partition": p, "replicas": [5, 6]} for p in range(5)]
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps({"version": 1, "partitions": moves}))
    await klamm("reassignment", "execute", "--reassignment-json-file", str(elsewhere))
    for options in ((), ("--dry-run",), ("--throttle", "1000")):
        said = await klamm(*execute, *options, fails=True)
        assert said == (
            "Error: orders-0, orders-1, orders-2 and 2 more partitions have changed since the plan was made "
            "(orders-0 has replicas [5, 6], not [1, 2]): "
            "plan again, or use --force to begin with the current replicas\n"
        )
        states = json.loads(await klamm("topic", "describe", "-o", "json"))
        assert [each["replicas"] for each in states[:5]] == [[5, 6]] * 5
    forced = await klamm(*execute, "--force")
    assert forced.count(": complete\n") == 6


async def test_the_way_back_of_a_plan_is_held_to_its_start_as_well(klamm: Shell, tmp_path: Path) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2,1:2")
    await planned(klamm, tmp_path, "remove-brokers", "--brokers", "1")
    done = await run_klamm(
        *("plan", "remove-brokers", "--brokers", "1", "--snapshot", str(tmp_path / "snapshot.json")),
        *("--out", str(tmp_path / "folder")),
    )
    assert done.returncode == 0, done.stderr
    back = ("reassignment", "execute", "--reassignment-json-file", str(tmp_path / "folder" / "rollback.json"))
    # Nothing was carried out: all is as the way back leaves it.
    assert (await klamm(*back)).count(": complete\n") == 2
    await klamm("reassignment", "execute", "--reassignment-json-file", str(tmp_path / "folder" / "plan.json"))
    assert (await klamm(*back)).count(": complete\n") == 2
    states = json.loads(await klamm("topic", "describe", "-o", "json"))
    assert [each["replicas"] for each in states] == [[1, 2]] * 2


@pytest.mark.parametrize(
    ("before", "fault"),
    [
        ("1", "partitions[0].before must be a list of broker ids, is 1"),
        ("[]", "partitions[0].before must be a list of broker ids, is []"),
        ('["1"]', "partitions[0].before must be a list of broker ids, is ['1']"),
        ("[1, true]", "partitions[0].before must be a list of broker ids, is [1, True]"),
        ("[1, -1]", "partitions[0].before must be a list of broker ids, is [1, -1]"),
    ],
)
async def test_a_start_that_cannot_be_meant_is_refused(before: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(f'{{"version":1,"partitions":[{{"topic":"t","partition":0,"replicas":[1],"before":{before}}}]}}')
    done = await run_klamm("reassignment", "execute", "--reassignment-json-file", str(file))
    assert (done.returncode, done.stderr.decode()) == (1, f"Error: {file}: {fault}\n")


# --- who leads afterwards -----------------------------------------------------------------------------------------


@pytest.fixture
async def unbalanced(tmp_path: Path) -> AsyncIterator[Shell]:
    """Run a cluster that elects preferred leaders only when it is asked to."""
    async with task_cluster(tmp_path / "cluster", auto_leader_rebalance_enable=False) as cluster:
        yield Shell(await bootstrap_of(cluster.store))


async def test_a_leader_that_stays_is_told_with_the_election_that_lets_the_first_lead(
    unbalanced: Shell, tmp_path: Path
) -> None:
    klamm = unbalanced
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2,1:2,1:2")
    file = tmp_path / "move.json"
    targets = ([3, 1], [1, 3], [3, 2])
    moves = [{"topic": "orders", "partition": p, "replicas": replicas} for p, replicas in enumerate(targets)]
    file.write_text(json.dumps({"version": 1, "partitions": moves}))
    execute = ("reassignment", "execute", "--reassignment-json-file", str(file), "--bootstrap-server", klamm.bootstrap)
    told = "1 of 3 partitions keep a leader that is not the first of their new replicas: `"
    command = ""
    for options in ((), ("--no-wait",)):
        done = await run_klamm(*execute, *options)
        assert done.returncode == 0
        [line] = [line for line in done.stderr.decode().splitlines() if line.startswith(told)]
        command, _, does = line.removeprefix(told).partition("`")
        assert does == " elects the first once they are complete"
    elect = await klamm(*command.removeprefix("klamm ").split())
    assert elect
    states = json.loads(await klamm("topic", "describe", "orders", "-o", "json"))
    assert [each["leader"] for each in states] == [3, 1, 3]
    assert "keep a leader" not in (await run_klamm(*execute)).stderr.decode()
