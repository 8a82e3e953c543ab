"""`klamm log-dirs describe`, on Klamm's brokers and on nodes that answer as Kafka's do."""

from __future__ import annotations

import json
from shutil import disk_usage

import pytest

from tests.cli.shell import Shell, run_klamm
from tests.kafka.scripted_nodes import ScriptedNodes, scripted_nodes
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

DESCRIBE = ("log-dirs", "describe")
MOVING = """\
broker  directory  topic   partition  size     lag  future
──────────────────────────────────────────────────────────
     1  /a         orders          0  1.0 kB     0  no
     1  /b         orders          0  8 bytes    3  yes
"""
DIRECTORIES = """\
broker  directory  logs  size     future logs  total    free     error
─────────────────────────────────────────────────────────────────────────────────────────────────────────
     1  /a            1  1.0 kB             0  5.0 kB   2.0 kB   -
     1  /b            0  0 bytes            1  5.0 kB   2.0 kB   -
     1  /c            0  -                  0  unknown  unknown  the disk or the log directory has failed
"""


@pytest.fixture(autouse=True)
def _unlimited_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be as wide as they need, as on a pipe, where the processes of the tests have a width."""
    monkeypatch.delenv("COLUMNS", raising=False)


def told(request: kafka.DescribeLogDirsRequest) -> kafka.DescribeLogDirsResponse:
    """Return a log on its way to a second directory, a failed directory and, if all are asked for, nothing more."""
    assert request.topics is None or [topic.topic for topic in request.topics] == ["orders"]
    here, coming = DescribeLogDirsPartition(0, 1_000), DescribeLogDirsPartition(0, 8, 3, is_future_key=True)
    logs = [(DescribeLogDirsTopic("orders", (log,)),) for log in (here, coming)]
    usable = (DescribeLogDirsResult(0, path, log, 5_000, 2_000) for path, log in zip(("/a", "/b"), logs, strict=True))
    failed = DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, "/c")
    return kafka.DescribeLogDirsResponse(results=(*usable, failed))


def at(nodes: ScriptedNodes) -> str:
    """Return the addresses of nodes."""
    return ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)


async def test_kafkas_brokers_tell_of_disks_and_future_logs() -> None:
    async with scripted_nodes(1, answers={kafka.DescribeLogDirsRequest: told}) as nodes:
        nodes.show("orders", (1,))
        shell = Shell(at(nodes))
        assert await shell(*DESCRIBE) == DIRECTORIES
        assert await shell(*DESCRIBE, "--topic-list", "orders") == MOVING
        [broker] = json.loads(await shell(*DESCRIBE, "-o", "json"))
        assert (broker["broker"], broker["fault"]) == (1, None)
        first, second, failed = broker["log_dirs"]
        log = {"topic": "orders", "partition": 0, "bytes": 1_000, "offset_lag": 0, "is_future": False}
        assert first == {"path": "/a", "error": None, "total_bytes": 5_000, "usable_bytes": 2_000, "logs": [log]}
        assert second["logs"] == [log | {"bytes": 8, "offset_lag": 3, "is_future": True}]
        assert (failed["error"], failed["total_bytes"], failed["logs"]) == ("KAFKA_STORAGE_ERROR", None, [])


async def test_a_broker_that_does_not_tell_is_named() -> None:
    async with scripted_nodes(1, answers={kafka.DescribeLogDirsRequest: told}) as nodes:
        nodes.show("orders", (1,))
        done = await run_klamm(*DESCRIBE, "--broker-list", "7,1", "--bootstrap-server", at(nodes))
        assert (done.returncode, done.stderr.decode()) == (1, "broker 7 is not alive\n")
        assert b"/b" in done.stdout
        said = await Shell(at(nodes))(*DESCRIBE, "--topic-list", "orders,nowhere", fails=True)
        assert said == "Error: there is no topic nowhere: see `klamm topic list`\n"


async def test_klamms_brokers_tell_of_their_logs(klamm: Shell) -> None:
    await klamm("topic", "create", "orders", "--replica-assignment", "1:2,2:3")
    await klamm("topic", "create", "clicks", "--replica-assignment", "1:2")
    await klamm("produce", "orders", stdin=b"first\n")
    listed = (*DESCRIBE, "--broker-list", "1,3", "--topic-list", "orders")
    brokers = json.loads(await klamm(*listed, "-o", "json"))
    logs = {one["broker"]: [log for place in one["log_dirs"] for log in place["logs"]] for one in brokers}
    assert {id_: [(log["topic"], log["partition"]) for log in of_one] for id_, of_one in logs.items()} == {
        1: [("orders", 0)],
        3: [("orders", 1)],
    }
    assert logs[1][0]["bytes"] > logs[3][0]["bytes"] == 0
    table = (await klamm(*DESCRIBE, "--broker-list", "1")).splitlines()
    assert table[0].split() == ["broker", "directory", "logs", "size", "future", "logs", "total", "free", "error"]
    assert (len(table), table[2].split()[2], "unknown" in table[2]) == (3, "2", False)
    [directory] = json.loads(await klamm(*DESCRIBE, "--broker-list", "1", "-o", "json"))[0]["log_dirs"]
    assert directory["total_bytes"] == disk_usage(directory["path"]).total > directory["usable_bytes"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--broker-list", "1;2"), "'1;2' is not a list of broker ids such as 1,2"),
        (("--topic-list", "orders,"), "'orders,' is not a list of topics such as orders,clicks"),
    ],
)
async def test_lists_that_cannot_be_meant(klamm: Shell, words: tuple[str, ...], said: str) -> None:
    assert (await klamm(*DESCRIBE, *words, fails=True)).endswith(f"Error: Invalid value for {words[0]}: {said}\n")
