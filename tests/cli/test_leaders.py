"""`klamm leader elect`: the notation of partitions on the command line, and the dry run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from controller.admin.election_refusals import failure, refusals
from klamm.cli.demo.task_cluster import task_cluster
from klamm.cli.leaders import Wanted, leader, read_wanted
from tests.cli.shell import Shell, bootstrap_of, run_klamm
from transport.errors import ErrorCode
from transport.messages import ElectionType, PartitionState
from transport.metadata import LEADER_DURING_DELETE, TopicPartition

PREFERRED = ("elect", "--election-type", "preferred")
ONE = ("--topic", "orders", "--partition", "0")


def entries(*items: str) -> str:
    """Return an election file of these entries."""
    return f'{{"partitions":[{",".join(items)}]}}'


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ((), "give either --topic and --partition, --path-to-json-file, or --all-topic-partitions"),
        (("--topic", "orders"), "--topic and --partition go together: give both"),
        (("--partition", "0"), "--topic and --partition go together: give both"),
        (("--topic", "orders", "--partition", "0", "--all-topic-partitions"), "give either --topic and --partition"),
        (("--topic", "orders", "--partition", "-1"), "-1 is not in the range x>=0"),
        (("--all-topic-partitions", "--replicas", "2,1"), "--replicas is the order of one partition: give it with"),
        (
            (*ONE, "--replicas", "2,b"),
            "--replicas 2,b: name broker ids up to 2147483647, the leader",
        ),
        ((*ONE, "--replicas", ""), "name broker ids up to 2147483647, the leader first"),
        ((*ONE, "--replicas", "2,1", "--election-type", "unclean"), "need --election-type preferred"),
    ],
)
def test_partitions_that_are_not_named_well_are_refused_with_the_cure(arguments: tuple[str, ...], cure: str) -> None:
    done = CliRunner().invoke(leader, [*PREFERRED, *arguments])
    assert done.exit_code == 2
    assert cure in done.output


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "not JSON"),
        ('{"partitions":[]}', "the list of partitions is empty"),
        ('{"partitions":[{"topic":"orders"}]}', "partitions[0].partition must be"),
        (
            entries('{"topic":"orders","partition":0}', '{"topic":"orders","partition":0}'),
            "partitions[1]: duplicate partition orders-0",
        ),
        (
            entries('{"topic":"orders","partition":0,"replicas":3}'),
            "partitions[0].replicas must be a list of broker ids",
        ),
        (entries('{"topic":"orders","partition":0,"replicas":[]}'), "partitions[0].replicas must be a list of broker"),
        (entries('{"topic":"orders","partition":0,"replicas":[1,true]}'), "partitions[0].replicas must be a list of"),
        (entries('{"topic":"orders","partition":0,"replicas":[1,-2]}'), "partitions[0].replicas must be a list of"),
        (entries('{"topic":"orders","partition":0,"replicas":[1,2,1]}'), "replicas [1, 2, 1] names a broker twice"),
    ],
)
def test_a_file_that_names_no_partitions_is_refused_with_its_fault(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "election.json"
    file.write_text(text)
    done = CliRunner().invoke(leader, [*PREFERRED, "--path-to-json-file", str(file)])
    assert done.exit_code == 1
    assert fault in done.output


def test_a_file_may_name_orders_for_some_and_leave_others_to_a_plain_election(tmp_path: Path) -> None:
    file = tmp_path / "election.json"
    file.write_text(
        entries(
            '{"topic":"orders","partition":1}',
            '{"topic":"orders","partition":0,"replicas":[3,1,2],"log_dirs":["any","any","any"]}',
            '{"topic":"orders","partition":2,"replicas":null}',
        )
    )
    orders = {TopicPartition("orders", 0): (3, 1, 2)}
    assert read_wanted(file) == Wanted((TopicPartition("orders", 1), TopicPartition("orders", 2)), orders)


async def test_a_dry_run_foresees_refusals_and_ends_as_the_election_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    async with task_cluster(tmp_path, auto_leader_rebalance_enable=False) as cluster:
        bootstrap = await bootstrap_of(cluster.store)
        klamm = Shell(bootstrap)
        await klamm("topic", "create", "orders", "--replica-assignment", "3:1:2,3:1:2,1:2:4")
        await cluster.kill(3)
        with trio.fail_after(30):
            while "3" in json.dumps([p["isr"] for p in json.loads(await klamm("topic", "describe", "-o", "json"))]):
                await trio.sleep(0.05)

        async def elect(*arguments: str) -> tuple[int, str, str]:
            done = await run_klamm("leader", *PREFERRED, *arguments, "--bootstrap-server", bootstrap)
            return done.returncode, done.stdout.decode(), done.stderr.decode()

        refused = [("3,1,2", "PREFERRED_LEADER_NOT_AVAILABLE"), ("1,2", "INVALID_REPLICA_ASSIGNMENT")]
        for replicas, error in refused:
            order = (*ONE, "--replicas", replicas, "-o", "json")
            code, expected, _ = await elect(*order, "--dry-run")
            assert (code, [row["error"] for row in json.loads(expected)]) == (1, [error])
            assert await elect(*order) == (code, expected, "")
        code, table, told = await elect("--all-topic-partitions", "--dry-run")
        lines = table.splitlines()
        assert len(lines) == 4, table
        row, last = lines[2:]
        assert row.split(maxsplit=2)[:2] == ["2", "failed"]
        assert row.endswith("orders-0, orders-1")
        assert last == "Nothing was changed: this was a dry run."
        assert told.startswith("Error: 2 of 2 elections would fail: the preferred leader 3 of orders-0 is not alive")
        assert await elect("--all-topic-partitions") == (
            code,
            table.removesuffix(f"{last}\n"),
            told.replace("would fail", "failed"),
        )


async def test_a_dry_run_shows_each_election_that_can_succeed(klamm: Shell) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3")
    shown = await klamm("leader", *PREFERRED, *ONE, "--replicas", "2,1,3", "--dry-run")
    row, last = shown.splitlines()[-2:]
    assert row.split(maxsplit=3) == ["orders", "0", "needed", "replicas [1, 2, 3], ISR [1, 2, 3]"]
    assert last == "Nothing was changed: this was a dry run."
    assert json.loads(await klamm("leader", *PREFERRED, *ONE, "--replicas", "2,1,3", "--dry-run", "-o", "json")) == [
        {"topic": "orders", "partition": 0, "outcome": "needed", "error": "NONE", "message": None}
    ]


def state(leader: int, isr: tuple[int, ...], adding: tuple[int, ...] = ()) -> PartitionState:
    """Return orders-0 with replicas 1 to 3 and those being added."""
    return PartitionState("orders", "id", 0, 1, leader, 1, isr, 1, (1, 2, 3, *adding), adding)


@pytest.mark.parametrize(
    ("there", "order", "error"),
    [
        (state(1, (1, 2)), (2, 1, 3), None),
        (state(1, (1, 2)), (3, 1, 2), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (state(-1, (2,)), (2, 1, 3), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (state(1, (1,)), (1, 2, 4), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (state(1, (1,), (4,)), (1, 2, 3, 4), ErrorCode.REASSIGNMENT_IN_PROGRESS),
        (state(LEADER_DURING_DELETE, ()), (1, 2, 3), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_orders_that_cannot_be_taken_are_foreseen(
    there: PartitionState, order: tuple[int, ...], error: ErrorCode | None
) -> None:
    live = {1, 3} if there.leader < 0 else {1, 2, 3}
    refused = refusals({there.tp: there}, {there.tp: order}, live)
    assert [one.error for one in refused.values()] == ([] if error is None else [error])


@pytest.mark.parametrize(
    ("kind", "live", "error"),
    [
        (ElectionType.PREFERRED, {1, 2}, None),
        (ElectionType.PREFERRED, {2, 3}, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (ElectionType.UNCLEAN, {3}, None),
        (ElectionType.UNCLEAN, {4}, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_elections_that_cannot_succeed_are_foreseen(
    kind: ElectionType, live: set[int], error: ErrorCode | None
) -> None:
    failed = failure(kind, state(-1, (1, 2)), live)
    assert (None if failed is None else failed.error) is error
