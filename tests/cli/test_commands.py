"""The commands, as processes, against a cluster in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
import trio

from klamm.cli import main
from klamm.cli.formats import DRY_RUN
from tests.cli.shell import Shell, run_klamm
from transport.store import paths
from transport.store.protocol import ensure_paths
from transport.store.zookeeper import open_zookeeper

NAME_OTHERS = "name brokers or controllers with --bootstrap-server"
FIRST_MOVE = """\
Current partition replica assignment

{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3],"log_dirs":["any","any","any"],\
"topic_id":"%s"}]}

Save this to use as the --reassignment-json-file option during rollback
orders-0: complete
"""


async def describe(klamm: Shell, topic: str) -> list[dict[str, object]]:
    described: list[dict[str, object]] = json.loads(await klamm("topic", "describe", topic, "-o", "json"))
    return described


@pytest.mark.requirement("A1", "A2", "B1", "D8")
async def test_a_first_session(klamm: Shell, tmp_path: Path) -> None:
    assert await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3") == "created topic orders\n"
    assert (await klamm("produce", "orders", stdin=b"first\nsecond\n")) == ""
    assert await klamm("consume", "orders") == "first\nsecond\n"
    assert await klamm("consume", "orders", "-o", "yaml", "--from-offset", "1") == "- offset: 1\n  value: second\n"
    plan = tmp_path / "move.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[4,5,6]}]}')
    [dumped] = json.loads(await klamm("state", "dump"))["partitions"]
    said = await klamm("reassignment", "execute", "--reassignment-json-file", str(plan))
    assert said == FIRST_MOVE % dumped["topic_id"]
    [partition] = await describe(klamm, "orders")
    isr = partition.pop("isr")
    assert isinstance(isr, list)
    assert sorted(isr) == [4, 5, 6]
    assert partition == {
        "topic": "orders",
        "partition": 0,
        "replicas": [4, 5, 6],
        "adding_replicas": [],
        "removing_replicas": [],
        "leader": 4,
        "leader_epoch": 4,
        "controller_epoch": 1,
        "partition_state": "OnlinePartition",
        "failed_replicas": [],
        "partial": None,
    }
    assert await klamm("consume", "orders") == "first\nsecond\n"
    assert await klamm("reassignment", "list") == "no reassignment is in progress\n"
    listed = {"topic": "orders", "partitions": 1, "replicas": 3, "marked_for_deletion": False, "partial": None}
    assert json.loads(await klamm("topic", "list", "-o", "json")) == [listed]
    lines = ("- topic: orders", "  partitions: 1", "  replicas: 3", "  marked_for_deletion: false", "  partial: null\n")
    assert await klamm("topic", "list", "-o", "yaml") == "\n".join(lines)
    brokers = json.loads(await klamm("broker", "list", "-o", "json"))
    assert [(broker["id"], broker["leaders"], broker["replicas"]) for broker in brokers] == [
        (1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 1, 1), (5, 0, 1), (6, 0, 1),
    ]  # fmt: skip
    assert await klamm("topic", "delete", "orders") == "deleted topic orders\n"
    assert json.loads(await klamm("topic", "list", "-o", "json")) == []
    said = await klamm("topic", "delete", "orders", fails=True)
    assert said == "orders: refused: there is no topic orders: see `klamm topic list`\n"


async def test_records_are_documents_on_lines(klamm: Shell) -> None:
    await klamm("topic", "create", "bytes", "--replica-assignment", "1:2")
    assert json.loads(await klamm("produce", "bytes", "-o", "json", stdin=b"one\n\xff\n")) == {"acknowledged": 2}
    lines = (await klamm("consume", "bytes", "-o", "json")).splitlines()
    assert list(map(json.loads, lines)) == [
        {"offset": 0, "value": "one"},
        {"offset": 1, "value": None, "base64": "/w=="},
    ]


@pytest.mark.requirement("D8")
async def test_a_topic_grows(klamm: Shell) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3")
    grown = await klamm("topic", "add-partitions", "orders", "--partitions", "3", "--replica-assignment", "4:5:6,6:5:4")
    assert grown == "topic orders has 3 partitions\n"
    assert await klamm("topic", "add-partitions", "orders", "--partitions", "4") == "topic orders has 4 partitions\n"
    partitions = await describe(klamm, "orders")
    assert [item["replicas"] for item in partitions[:3]] == [[1, 2, 3], [4, 5, 6], [6, 5, 4]]
    assert [item["leader"] for item in partitions] == [1, 4, 6, 4]
    lines = (await klamm("topic", "describe", "orders")).splitlines()
    assert lines[0] == "topic   partition  leader  epoch  replicas  isr    offline"
    assert [line.split() for line in lines[2:5]] == [
        ["orders", "0", "1", "0", "1,2,3", "1,2,3", "-"],
        ["orders", "1", "4", "0", "4,5,6", "4,5,6", "-"],
        ["orders", "2", "6", "0", "6,5,4", "6,5,4", "-"],
    ]
    said = await klamm("topic", "add-partitions", "orders", "--partitions", "4", fails=True)
    assert said == "Error: topic orders has 4 partitions: ask for more than that, not for 4\n"


async def test_settings_of_a_broker_are_kept_for_it_though_it_is_not_there(klamm: Shell) -> None:
    for broker_id, warning in (
        ("6", ""),
        ("9", "broker 9 is not registered now: its settings take effect when it registers\n"),
    ):
        entity = ("--entity-type", "brokers", "--entity-name", broker_id)
        change = ("--add-config", "message.max.bytes=1000", "--bootstrap-server", klamm.bootstrap)
        done = await run_klamm("config", "alter", *entity, *change)
        said = (done.returncode, done.stdout.decode(), done.stderr.decode())
        assert said == (0, f"altered the settings of broker {broker_id}\n", warning)
        assert "DYNAMIC_BROKER_CONFIG" in await klamm("config", "describe", *entity)


async def test_there_are_no_settings_of_a_broker_that_nobody_knows(klamm: Shell) -> None:
    said = await klamm("config", "describe", "--entity-type", "brokers", "--entity-name", "99", fails=True)
    assert said == "Error: there is no broker 99, and nothing is known of it: see `klamm broker list`\n"


@pytest.mark.parametrize(
    ("options", "in_sync", "replicas"),
    [
        (("--replication-factor", "1", "--config", "min.insync.replicas=3"), 3, "1 replica"),
        (("--replica-assignment", "1:2,4:5", "--config", "min.insync.replicas=3"), 3, "2 replicas"),
        (("--replication-factor", "3", "--config", "min.insync.replicas=3"), 3, None),
        (("--replication-factor", "1"), 2, "1 replica"),
        (("--replication-factor", "2"), 2, None),
    ],
)
async def test_a_topic_that_no_producer_can_write_to_is_created_with_a_warning(
    klamm: Shell, options: tuple[str, ...], in_sync: int, replicas: str | None
) -> None:
    default = ("--entity-type", "brokers", "--entity-default", "--add-config", "min.insync.replicas=2")
    await klamm("config", "alter", *default)
    done = await run_klamm("topic", "create", "orders", *options, "--bootstrap-server", klamm.bootstrap)
    assert (done.returncode, done.stdout) == (0, b"created topic orders\n")
    warning = (
        f"no producer with acks=all can write to orders: min.insync.replicas is {in_sync}, and a partition has "
        f"{replicas}: lower it with `klamm config alter --entity-type topics --entity-name orders --add-config "
        "min.insync.replicas=...`, or give partitions more replicas\n"
    )
    assert done.stderr.decode() == ("" if replicas is None else warning)


async def test_the_warning_about_a_new_topic_follows_the_line_about_it(klamm: Shell) -> None:
    create = ("topic", "create", "-o", "table", "--config", "min.insync.replicas=2", "--bootstrap-server")
    command = [sys.executable, "-m", "klamm", *create, klamm.bootstrap]
    done = await trio.run_process([*command, "orders"], capture_stdout=True, stderr=subprocess.STDOUT)
    cluster, created, warning = done.stdout.decode().splitlines()
    assert cluster.startswith("cluster at ")
    assert created == "created topic orders"
    assert warning.startswith("no producer with acks=all can write to orders: ")
    document = await run_klamm(*create, klamm.bootstrap, "bills", "-o", "json")
    assert json.loads(document.stdout) == {"topic": "bills", "outcome": "created"}
    assert document.stderr.startswith(b"no producer with acks=all can write to bills: ")


@pytest.mark.requirement("D2", "D11")
async def test_the_cluster_at_a_glance(klamm: Shell) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3,2:3:1")
    found = json.loads(await klamm("cluster", "describe", "-o", "json"))
    assert (found["controller"], found["controller_epoch"], found["topics"], found["partitions"]) == (1001, 1, 1, 2)
    assert (found["offline"], found["being_reassigned"], found["quarantined"]) == (0, 0, [])
    assert [(b["id"], b["leaders"], b["replicas"]) for b in found["brokers"][:4]] == [
        (1, 1, 2),
        (2, 1, 2),
        (3, 0, 2),
        (4, 0, 0),
    ]
    table = await klamm("cluster", "describe")
    assert "without preferred leader" in table
    assert "shutting down" not in table


@pytest.mark.requirement("A2", "A3")
async def test_what_cannot_be_moved_is_refused_with_the_reason(klamm: Shell, tmp_path: Path) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3")
    plan = tmp_path / "move.json"
    moves = [("orders", 0, [4, 99]), ("orders", 7, [1]), ("nowhere", 0, [1])]
    partitions = [{"topic": t, "partition": p, "replicas": r} for t, p, r in moves]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    said = await klamm("reassignment", "execute", "--reassignment-json-file", str(plan), fails=True)
    assert said.splitlines() == [
        "orders-0: refused: replicas cannot be added on brokers [99], which are not alive",
        "orders-7: refused: there is no partition orders-7",
        "nowhere-0: refused: there is no partition nowhere-0",
        "none of the 3 moves was begun: correct the file first",
    ]
    [partition] = await describe(klamm, "orders")
    assert partition["replicas"] == [1, 2, 3]
    assert partition["leader_epoch"] == 0


async def test_mistakes_with_topics_are_told_in_one_line(klamm: Shell) -> None:
    await klamm("topic", "create", "orders")
    for arguments, line in (
        (("create", "orders"), "Error: topic orders exists"),
        (("create", "a/b"), "Error: 'a/b' is not a legal name: up to 249 letters, digits, '.', '_' and '-'"),
        (("create", "x", "--replication-factor", "7"),
         "Error: replication factor 7 is not between 1 and the 6 live brokers"),
        (("create", "x", "--replica-assignment", "1:9"),
         "Error: replicas [1, 9] of partition 0: brokers [9] are not alive"),
        (("add-partitions", "orders", "--partitions", "2", "--replica-assignment", "1:2"),
         "Error: replicas [1, 2] of partition 1: name distinct brokers, 1 as for the others"),
        (("add-partitions", "orders", "--partitions", "3", "--replica-assignment", "1"),
         "Error: give replicas for each partition that is to be added: for 2, not for 1"),
        (("describe", "orders", "nowhere"), "Error: there is no topic nowhere: see `klamm topic list`"),
    ):  # fmt: skip
        assert await klamm("topic", *arguments, fails=True) == line + "\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("state", "dump", "--zookeeper", "127.0.0.1:1"),
         "Error: nothing listens at 127.0.0.1:1: start one with `klamm zookeeper run`"),
        (("broker", "list", "--bootstrap-server", "127.0.0.1:1"),
         f"Error: cannot connect to 127.0.0.1:1: nothing listens there: {NAME_OTHERS}"),
    ],
)  # fmt: skip
async def test_nobody_there_is_told_in_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = await run_klamm(*arguments)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", line + "\n")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the file is empty"),
        ('{"partitions":[]}', "the list of partitions is empty"),
        ('{"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}',
         "partitions[0].partition must be an integer, is '0'"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":1}]}',
         "partitions[0].replicas must be a list of integers, is 1"),
    ],
)  # fmt: skip
async def test_a_malformed_plan_is_told_in_one_line(tmp_path: Path, text: str, fault: str) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    done = await run_klamm("reassignment", "execute", "--reassignment-json-file", str(plan))
    assert (done.returncode, done.stderr.decode()) == (1, f"Error: {plan}: {fault}\n")


async def test_the_state_dump_reads_zookeeper(zookeeper: str) -> None:
    address = f"{zookeeper}/dump"
    async with open_zookeeper(address) as store:
        await ensure_paths(store, [paths.BROKER_IDS])
        done = await run_klamm("state", "dump", "--zookeeper", address)
    assert json.loads(done.stdout) == {
        "controller": {"id": None, "epoch": 0},
        "cluster_id": None,
        "brokers": [],
        "partitions": [],
        "reassign_partitions": [],
        "delete_topics": [],
        "undecodable": [],
    }


async def test_a_command_loads_no_formats_that_few_clusters_have() -> None:
    script = "import sys\nfrom klamm.cli import main\nmain(['topic', 'list', '--help'], standalone_mode=False)\n"
    script += "sys.exit(any(f'transport.security.{name}' in sys.modules for name in ('jks', 'oauthbearer', 'tokens')))"
    done = await trio.run_process([sys.executable, "-c", script], capture_stdout=True, check=False)
    assert done.returncode == 0
    assert b"--bootstrap-server" in done.stdout


async def test_the_help_loads_neither_spark_nor_trio() -> None:
    script = "import sys\nfrom klamm.cli import main\nmain(['--help'], standalone_mode=False)\n"
    script += "sys.exit(any(name in sys.modules for name in ('pyspark', 'trio', 'kazoo')))"
    done = await trio.run_process([sys.executable, "-c", script], capture_stdout=True, check=False)
    assert done.returncode == 0
    assert b"reassignment" in done.stdout


async def test_the_help_of_a_command_loads_nothing_that_only_its_work_needs() -> None:
    script = "import sys\nfrom klamm.cli import main\nmain(['rollout', 'run', '--help'], standalone_mode=False)\n"
    unwanted = ("http.client", "urllib.request", "klamm.cli.rollout.runner")
    script += f"sys.exit(', '.join(name for name in {unwanted} if name in sys.modules) or 0)"
    done = await trio.run_process([sys.executable, "-c", script], capture_stdout=True, capture_stderr=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_help_has_the_commands_in_groups() -> None:
    context = click.Context(main, info_name="klamm", terminal_width=80, max_content_width=80)
    lines = main.get_help(context).splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith((" ", "Usage"))]
    groups = ["Look:", "Change topics and settings:", "Move replicas:", "Run:", "Test and learn:"]
    assert titles == ["Options:", *groups]
    listed = [line for line in lines[lines.index("Look:") :] if line.startswith("  ")]
    assert [line.split()[0] for line in listed] == main.list_commands(context)
    # The lines of all groups begin below each other.
    assert {line[: line.index(line.split()[1])].rstrip() == f"  {line.split()[0]}" for line in listed} == {True}
    assert len({line.index(line.split(maxsplit=1)[1]) for line in listed}) == 1


def test_lists_of_commands_fit_80_columns_without_being_cut() -> None:
    context = click.Context(main, info_name="klamm")
    groups = [
        command
        for name in main.list_commands(context)
        if isinstance(command := main.get_command(context, name), click.Group)
    ]
    assert len(groups) > 5
    for group in groups:
        lines = group.get_help(click.Context(group, info_name=group.name, max_content_width=80, terminal_width=80))
        assert "..." not in lines.partition("Commands:")[2], lines


@pytest.mark.requirement("C1")
async def test_elections(klamm: Shell, tmp_path: Path) -> None:
    preferred = ("leader", "elect", "--election-type", "preferred")
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3")
    file = tmp_path / "election.json"
    file.write_text('{"partitions":[{"topic":"orders","partition":0}]}')
    [outcome] = json.loads(await klamm(*preferred, "--path-to-json-file", str(file), "-o", "json"))
    assert outcome == {
        "topic": "orders",
        "partition": 0,
        "outcome": "not_needed",
        "error": "ELECTION_NOT_NEEDED",
        "message": "broker 1 leads orders-0 already",
    }
    assert await klamm(*preferred, "--all-topic-partitions") == "no partition needs an election\n"
    refused = await klamm(*preferred, "--topic", "orders", "--partition", "7", fails=True)
    assert refused == "Error: 1 of 1 elections failed: there is no partition orders-7\n"


@pytest.mark.requirement("C2")
async def test_elections_with_a_named_order(klamm: Shell, tmp_path: Path) -> None:
    preferred = ("leader", "elect", "--election-type", "preferred")
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3,4:5:6")
    table = await klamm(*preferred, "--topic", "orders", "--partition", "0", "--replicas", "3,1,2")
    assert table.splitlines()[-1].split() == ["orders", "0", "elected", "-"]
    file = tmp_path / "election.json"
    file.write_text(
        '{"partitions":[{"topic":"orders","partition":0},{"topic":"orders","partition":1,"replicas":[6,4,5]}]}'
    )
    outcomes = json.loads(await klamm(*preferred, "--path-to-json-file", str(file), "-o", "json"))
    assert [(item["partition"], item["error"]) for item in outcomes] == [(0, "ELECTION_NOT_NEEDED"), (1, "NONE")]
    partitions = await describe(klamm, "orders")
    assert [(item["replicas"], item["leader"]) for item in partitions] == [([3, 1, 2], 3), ([6, 4, 5], 6)]
    refused = await klamm(*preferred, "--topic", "orders", "--partition", "0", "--replicas", "3,1", fails=True)
    assert "[3, 1] is no order of orders-0's replicas [3, 1, 2]: name each of them once" in refused
    assert await describe(klamm, "orders") == partitions


async def test_every_dry_run_ends_with_the_same_line(klamm: Shell) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3")
    tried = {
        "topic create bills --replication-factor 3": "topic bills can be created",
        "topic add-partitions orders --partitions 2": "topic orders can have 2 partitions",
        "topic delete orders": "would delete topic orders",
        "config alter --entity-type topics --entity-name orders --add-config min.insync.replicas=1": (
            "the settings of topic orders can be altered so"
        ),
    }
    for command, line in tried.items():
        assert await klamm(*command.split(), "--dry-run") == f"{line}\n{DRY_RUN}\n"
